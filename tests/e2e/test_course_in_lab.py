"""Notebooks of the course as a student does them: a wrong answer, its sentence, the answer mended, the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jupyter_app import App, cell_with, choose_theme, ours, put, run_all, visit
from playwright.sync_api import Locator, Page, expect
from widget_page import violations, words

from nbautograd.command.places import notebook
from nbautograd.course import source as notebooks
from nbautograd.course.answers import answers_of
from nbautograd.messages import speaking, text

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SWAPPED = """%%exercise multiply
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * a, grad_output * b

multiply = Multiply.apply"""
MENDED = SWAPPED.replace("grad_output * a, grad_output * b", "grad_output * b, grad_output * a")
# sets the cell's text and runs it with its own command, as Shift+Enter does
RUN = """async ([start, source]) => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  const sources = notebook.widgets.map(w => w.model.sharedModel.source);
  const exact = sources.indexOf(start);  // "%exercises" alone, not with names as a guard has it
  const index = exact < 0 ? sources.findIndex(source => source.startsWith(start)) : exact;
  notebook.activeCellIndex = index;
  if (source) notebook.widgets[index].model.sharedModel.setSource(source);
  await window.jupyterapp.commands.execute("notebook:run-cell");
}"""


def run(page: Page, start: str, source: str = "") -> None:
    """Run the cell that begins like this, with this text typed into it."""
    page.evaluate(RUN, [start, source])


def table_of(page: Page) -> Locator:
    """Return the cell that is ``%exercises`` alone, which shows the table."""
    alone = page.locator(".jp-InputArea", has_text=re.compile(r"%exercises\s*$"))
    return page.locator(".jp-CodeCell").filter(has=alone).first


def test_a_wrong_answer_its_sentence_and_the_table(page: Page, lab: App) -> None:
    visit(page, lab, put(lab, notebook("en/01_first_function.ipynb")))
    page.set_viewport_size({"width": 1100, "height": 900})
    run(page, "import ")
    run(page, "%%exercise multiply")  # untouched
    answer = cell_with(page, "%%exercise multiply")
    expect(answer).to_contain_text(words("course.chip.unanswered"), timeout=90_000)
    assert "Traceback" not in answer.inner_text()
    run(page, "%%exercise multiply", SWAPPED)
    expect(answer).to_contain_text(words("causes.mended_exchanged.what"), timeout=60_000)
    assert "grad_output * b" not in answer.locator(".jp-OutputArea").inner_text()  # helps, gives nothing away
    run(page, "%%exercise multiply", MENDED)
    expect(answer).to_contain_text(f"✓ {text('course.chip.passed')}", timeout=60_000)
    run(page, "%exercises")
    expect(table_of(page)).to_contain_text(words("course.progress.title", done=1, count=4), timeout=60_000)
    assert ours(page.errors) == []


ROOT = Path(__file__).resolve().parents[2]
FILL = """answers => {
  for (const widget of window.jupyterapp.shell.currentWidget.content.widgets) {
    const source = widget.model.sharedModel.source;
    const name = /^%%exercise (\\w+)/.exec(source)?.[1];
    if (name) widget.model.sharedModel.setSource(answers[name]);
  }
}"""


def violations_in_both_themes(page: Page, artifacts: Path, name: str) -> list[tuple[str, str]]:
    """Look at what the cells put out, in both themes, and return what axe has against it."""
    found = []
    # a picture of matplotlib has no words that JupyterLab could give it
    where = {"include": [".jp-Cell-outputArea"], "exclude": [".jp-RenderedImage"]}
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        choose_theme(page, theme)
        page.screenshot(path=artifacts / f"course-{name}-{theme[-5:].strip().lower()}.png")
        found += violations(page, context=where)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["zh/14_saving_memory", "en/15_an_operation_of_your_own"])
def test_from_the_first_cell_to_the_last(page: Page, lab: App, artifacts: Path, name: str) -> None:
    """Every exercise first as one may get it wrong, then as it should be; axe looks at what is shown of both."""
    lang, stem = name.split("/")
    written = notebooks.read(ROOT / "notebooks" / "source" / f"{stem}.py")
    answers = answers_of(written, ROOT / "tests" / "course" / "answers" / f"{stem}.diff")
    wrong = {answer.exercise: answer for answer in answers if answer.expected != "right"}
    visit(page, lab, put(lab, notebook(f"{name}.ipynb")))
    page.set_viewport_size({"width": 1100, "height": 900})
    setup = next(cell.text for cell in written.cells if "setup" in cell.tags).replace("# %load_ext", "%load_ext")
    run(page, "import ", f"{setup}\nnbautograd.set_language({lang!r})\n%matplotlib inline")  # the tests' own is agg
    for exercise, answer in wrong.items():
        run(page, f"%%exercise {exercise}", answer.text)
        shown = cell_with(page, f"%%exercise {exercise}").locator(".jp-OutputArea")
        with speaking(lang):
            expect(shown).to_contain_text(f"✗ {text('course.chip.failed')}", timeout=90_000)
    assert violations_in_both_themes(page, artifacts, f"{lang}-{stem[:2]}-wrong") == []

    page.evaluate(FILL, {cell.exercise: notebooks.solved(cell) for cell in written.answers})
    run_all(page)
    table = table_of(page).locator(".jp-OutputArea")
    with speaking(lang):
        said = words("course.progress.title", done=len(wrong), count=len(wrong))
    expect(table).to_contain_text(said, timeout=120_000)
    assert page.locator('[data-mime-type="application/vnd.jupyter.stderr"]').all_inner_texts() == []
    assert page.locator(".jp-RenderedImage img").count() >= 2
    assert violations_in_both_themes(page, artifacts, f"{lang}-{stem[:2]}-right") == []
    assert ours(page.errors) == []
