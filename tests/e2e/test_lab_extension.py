"""The JupyterLab extension: marks in the cell's own editor, and the change that mends the line.

Most of it is asked of notebooks that are opened with what an earlier run left in them, which needs no torch there.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from fn import typed
from jupyter_app import READY, App, cell, choose_theme, execute, ours, run_all, run_cell, visit, write
from nbformat.sign import NotebookNotary
from playwright.sync_api import expect
from widget_page import button, violations, words

import nbautograd
from nbautograd.messages import catalogue, text
from nbautograd.widgets import notebook_cells
from nbautograd.widgets.marks import MIME, marks_bundle, marks_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LINE, MENDED = "return 3 * x * grad_output", "return 2 * x * grad_output"
CLASS = typed("Square", "x: save(x); return x * x", f"grad_output: x, = saved; {LINE}")
SQUARE = f"import torch\n{CLASS}\n# the end"
SOURCE = "k => window.jupyterapp.shell.currentWidget.content.widgets[k - 1].model.sharedModel.getSource()"
NO_KERNEL = {"name": "none-such", "display_name": "None such", "language": "python"}


def says(code: str, cell_id: str) -> dict[str, Any]:
    """What an output stores after a check of the class in a cell of this text."""
    file = f"/nowhere/{abs(hash(code))}.py"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    notebook_cells._cells[file] = notebook_cells.NotebookCell(cell_id, code)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, file, "exec"), names)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    state = marks_of(nbautograd.gradcheck(names["Square"], (x,)))
    del notebook_cells._cells[file], linecache.cache[file]
    assert state is not None
    return {MIME: asdict(state), "text/plain": "the report"}


@pytest.fixture(scope="module")
def checked() -> dict[str, Any]:
    """What is stored of the wrong class in the cell ``one``."""
    return says(SQUARE, "one")


@pytest.fixture
def opened(page: Any, lab: App) -> Callable[..., Any]:
    """Open a notebook of cells (id, source, stored output) without a kernel."""

    def open_notebook(name: str, *cells: tuple[str, str, dict[str, Any] | None], trusted: bool = True) -> Any:
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": NO_KERNEL})
        notebook.nbformat_minor = 5
        for id_, source, data in cells:
            outputs = [] if data is None else [nbformat.v4.new_output("display_data", data)]
            notebook.cells.append(nbformat.v4.new_code_cell(source, id=id_, outputs=outputs, execution_count=1))
        nbformat.write(notebook, lab.root / name)
        if trusted:
            NotebookNotary(data_dir=str(lab.root.parent / "data")).sign(nbformat.read(lab.root / name, 4))
        page.goto(lab.address(name))
        page.get_by_role("dialog").get_by_role("button", name="No Kernel").click()
        expect(cell(page, 1).locator(".cm-content")).to_be_visible()
        return page

    return open_notebook


def underlined(page: Any, number: int) -> Any:
    return cell(page, number).locator(".nbag-under")


def ghost(page: Any, number: int) -> Any:
    return cell(page, number).locator(".nbag-ghost")


def line(page: Any, number: int, words: str) -> Any:
    return cell(page, number).locator(".cm-line", has_text=words).first


def test_a_notebook_opened_again_has_its_marks_without_a_kernel(opened, checked):
    """Only in the cell of the id; the same text in another cell is another one. What an audit says too is said once."""
    texts, marks = checked[MIME]["checked"], checked[MIME]["marks"]
    audit = {MIME: {**checked[MIME], "checked": [*texts, *texts], "marks": [{**mark, "checked": 1} for mark in marks]}}
    calls = (("three", "Square.apply(x)", checked), ("four", "%autograd_audit model(x)", audit))
    page = opened("again.ipynb", ("one", SQUARE, None), ("two", SQUARE, None), *calls)
    expect(underlined(page, 1)).to_have_text([LINE])
    expect(cell(page, 1).locator(".nbag-sign")).to_have_count(1)
    expect(ghost(page, 1)).to_contain_text(MENDED)
    expect(ghost(page, 1).locator("mark")).to_have_text(["2"])
    expect(underlined(page, 2)).to_have_count(0)
    underlined(page, 1).hover()
    card = page.locator(".nbag-card")
    expect(card).to_contain_text(checked[MIME]["marks"][0]["message"].replace("`", ""))
    assert ours(page.errors) == []


def test_a_mark_follows_its_line_and_goes_with_an_edit_of_it(opened, checked):
    page = opened("edits.ipynb", ("one", SQUARE, checked))
    expect(ghost(page, 1)).to_be_visible()
    line(page, 1, "import torch").click()
    page.keyboard.press("Home")
    page.keyboard.type("import math\n")
    expect(underlined(page, 1)).to_have_text([LINE])
    expect(ghost(page, 1)).to_be_visible()  # the class stands as it was checked, a line further down
    line(page, 1, "return x * x").click()
    page.keyboard.press("End")
    page.keyboard.type("  # forward")
    expect(ghost(page, 1)).to_have_count(0)  # the change was not tried with this
    expect(underlined(page, 1)).to_have_text([LINE])
    underlined(page, 1).hover()
    page.locator(".nbag-card").get_by_role("button", name=text("lab.apply"), exact=True).click()
    expect(page.locator(".nbag-card")).to_contain_text(words("lab.refused_changed"))
    line(page, 1, LINE).click()
    page.keyboard.press("End")
    page.keyboard.type("  # edited")
    expect(underlined(page, 1)).to_have_count(0)
    assert MENDED not in page.evaluate(SOURCE, 1)


def test_an_untrusted_notebook_is_marked_and_nothing_is_applied(opened, checked):
    # trust goes by content: this one has a cell that none has that was signed
    page = opened("untrusted.ipynb", ("one", SQUARE, checked), ("two", "1", None), trusted=False)
    expect(underlined(page, 1)).to_have_text([LINE])
    expect(ghost(page, 1)).to_have_count(0)
    underlined(page, 1).hover()
    expect(page.locator(".nbag-card")).to_contain_text(words("lab.refused_untrusted"))
    expect(page.locator(".nbag-card").get_by_role("button")).to_have_count(0)
    line(page, 1, LINE).click()
    execute(page, "nbautograd:apply")
    assert page.evaluate(SOURCE, 1) == SQUARE


def test_tab_applies_on_the_marked_line_alone_and_is_undone(opened, checked):
    page = opened("tab.ipynb", ("one", SQUARE, checked))
    expect(ghost(page, 1)).to_be_visible()
    line(page, 1, "# the end").click()
    page.keyboard.press("Home")
    page.keyboard.press("Tab")  # indents: another line
    expect(line(page, 1, "# the end")).to_have_text("    # the end")
    page.keyboard.press("Control+z")
    line(page, 1, LINE).click()
    page.keyboard.press("Home")
    page.keyboard.press("Home")  # before the indentation
    page.keyboard.press("Tab")  # indents, since that is what the key does there
    page.keyboard.press("Control+z")
    expect(ghost(page, 1)).to_be_visible()
    line(page, 1, LINE).click()
    page.keyboard.press("End")
    expect(ghost(page, 1).locator("kbd")).to_be_visible()
    page.keyboard.press("Tab")
    expect(line(page, 1, MENDED)).to_have_text(f"        {MENDED}")
    expect(underlined(page, 1)).to_have_count(0)
    old = page.locator('[data-nbag-old]:not([data-nbag-old=""])')
    expect(old).to_have_count(1)  # the output tells of another text
    assert page.evaluate(SOURCE, 1) == SQUARE.replace(LINE, MENDED)
    page.keyboard.press("Control+z")
    expect(underlined(page, 1)).to_have_text([LINE])  # what was checked stands again
    expect(old).to_have_count(0)
    assert page.evaluate(SOURCE, 1) == SQUARE
    page.keyboard.press("End")
    page.keyboard.press("Escape")  # lets go of the key, and stays in the editor
    expect(ghost(page, 1)).to_have_count(0)
    page.keyboard.press("F8")  # offers it again
    expect(ghost(page, 1)).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.type("  ")
    assert page.evaluate(SOURCE, 1) == SQUARE.replace(LINE, f"{LINE}  ")


@pytest.mark.nightly
def test_two_functions_of_one_name_are_marked_each_in_its_own_cell(opened, checked):
    other = SQUARE.replace("3 * x", "5 * x")
    page = opened(
        "two.ipynb", ("one", SQUARE, None), ("two", other, None), ("a", "1", checked), ("b", "2", says(other, "two"))
    )
    expect(underlined(page, 1)).to_have_text([LINE])
    expect(underlined(page, 2)).to_have_text([LINE.replace("3", "5")])
    execute(page, "nbautograd:next-finding")
    expect(page.locator(".nbag-card")).to_be_visible()
    execute(page, "nbautograd:next-finding")
    expect(cell(page, 2)).to_have_class(re.compile("jp-mod-active"))
    page.keyboard.press("Tab")
    expect(line(page, 2, MENDED)).to_be_visible()
    assert page.evaluate(SOURCE, 1) == SQUARE


def test_the_commands_stand_in_the_palette_and_in_the_run_menu(opened, checked):
    page = opened("commands.ipynb", ("one", SQUARE, checked))
    names = [words for key, words in catalogue("en").items() if key.startswith("lab.command.")]
    execute(page, "apputils:activate-command-palette")
    page.keyboard.type("autograd")
    palette = page.get_by_role("dialog").or_(page.locator("#command-palette"))
    for name in names:
        expect(palette.get_by_text(name, exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    entry = page.get_by_role("menuitem", name=text("lab.command.next"))
    expect(entry).to_contain_text("F8")
    entry.click()
    expect(page.locator(".nbag-card")).to_be_visible()
    execute(page, "nbautograd:check")
    expect(cell(page, 1).locator(".cm-line").first).to_have_text("%%autograd_function --inputs ")
    page.keyboard.type("x")  # the caret stands where the inputs go
    expect(cell(page, 1).locator(".cm-line").first).to_have_text("%%autograd_function --inputs x")
    line(page, 1, "return x * x").click()
    page.keyboard.press("End")
    execute(page, "nbautograd:graph")
    assert page.evaluate(SOURCE, 2) == "%load_ext nbautograd\n%autograd_graph x"


@pytest.mark.parametrize("theme", ["JupyterLab Dark", pytest.param("JupyterLab Light", marks=pytest.mark.nightly)])
def test_a_card_can_be_read_in_every_theme(opened, checked, theme, artifacts: Path):
    page = opened(f"theme_{theme.split()[1]}.ipynb", ("one", SQUARE, checked))
    choose_theme(page, theme)
    execute(page, "nbautograd:next-finding")
    expect(page.locator(".nbag-card")).to_be_visible()
    page.screenshot(path=artifacts / f"lab_card_{theme.split()[1]}.png")
    assert violations(page, context=".nbag-card") + violations(page, context=".nbag-ghost") == []


LOAD = "%load_ext nbautograd\nx = torch.randn(4, 5, dtype=torch.float64)"
CALL = "%gradcheck Square.apply(x)"


@pytest.mark.parametrize("reference", ["", " --reference torch.square(x)"])
def test_from_wrong_to_right_without_typing(page, lab, artifacts, reference):
    """The class stands in another cell than the call; the report's own button mends it, and both cells run again."""
    cells = CLASS, CALL + reference, f"import torch\n{LOAD}"
    visit(page, lab, write(lab, "loop.ipynb", *cells))
    run_cell(page, 3)
    run_cell(page, 1)
    run_cell(page, 2)
    expect(ghost(page, 1)).to_be_visible(timeout=60_000)
    page.screenshot(path=artifacts / "lab_wrong.png")
    button(cell(page, 2), "widgets.apply_and_run").click()
    expect(cell(page, 2).locator(".jp-OutputArea .verdict.good").first).to_be_visible(timeout=60_000)
    expect(underlined(page, 1)).to_have_count(0)
    assert MENDED in page.evaluate(SOURCE, 1)
    assert ours(page.errors) == []


@pytest.mark.nightly
def test_keys_alone_in_notebook_7(page, notebook7):
    """F8 goes to the line, Tab mends it, Shift+Enter runs it."""
    visit(
        page, notebook7, write(notebook7, "keys.ipynb", f"import torch\n{LOAD}", f"%%autograd_function -i x\n{SQUARE}")
    )
    run_all(page)
    expect(ghost(page, 2)).to_be_visible(timeout=60_000)
    page.keyboard.press("F8")
    expect(page.locator(".nbag-card .nbag-key")).to_be_visible()  # it lies over the ghost line, which shows it too
    page.keyboard.press("Tab")
    expect(line(page, 2, MENDED)).to_be_visible()
    page.keyboard.press("Shift+Enter")
    expect(cell(page, 2).locator(".jp-OutputArea .verdict.good").first).to_be_visible(timeout=60_000)


IN_PLACE = "def loss():\n    h = w.sigmoid()\n    h.mul_(2)\n    return h.sum()\nloss().backward()"
NAN = "n = (torch.zeros(2, requires_grad=True) / 0).sum()"
CUT = "a = torch.ones(3, requires_grad=True)\nb = a.detach() * 2\n(b * w.clone()).sum().backward()\nout = (b * w).sum()"


def test_the_traceback_of_a_gradient_error_folds_to_the_lines_of_the_cell(page, lab, artifacts):
    """Found, mended and run again by three clicks; a NaN has the same card, and a `.grad` that is None."""
    first = "import torch\n%load_ext nbautograd\nw = torch.ones(3, requires_grad=True)"
    visit(page, lab, write(lab, "wall.ipynb", first, IN_PLACE, NAN, "%autograd_explain n", CUT, "%autograd_explain a"))
    for number in range(1, 7):
        run_cell(page, number)
    card = cell(page, 2).locator(".nbag-wall")
    expect(card.locator("li > code")).to_have_text(["loss().backward()"])
    expect(cell(page, 2).get_by_text("_engine_run_backward").first).to_be_hidden()
    fold = button(card, "lab.traceback", count=3)
    fold.click()
    expect(cell(page, 2).get_by_text("_engine_run_backward").first).to_be_visible()
    fold.click()
    button(card, "lab.find").press("Enter")
    expect(card.locator("li > code")).to_have_text(
        ["h = w.sigmoid()", "h.mul_(2)", "loss().backward()"], timeout=90_000
    )
    expect(ghost(page, 2)).to_contain_text("h = h.mul(2)")
    assert violations(page, context=".nbag-wall") == []
    page.screenshot(path=artifacts / "lab_wall.png")
    page.keyboard.press("F8")  # the keys are the notebook's again, though the button that had them is gone
    expect(page.locator(".nbag-card")).to_be_visible()
    page.keyboard.press("Escape")
    for number, line in ((4, NAN), (6, "b = a.detach() * 2")):
        other = cell(page, number).locator(".nbag-wall")
        button(other, "lab.find").click()
        expect(other.locator("li > code")).to_have_text([line], timeout=90_000)
    button(card, "widgets.apply_and_run").click()
    expect(card).to_have_count(0, timeout=60_000)
    assert "h = h.mul(2)" in page.evaluate(SOURCE, 2)
    assert ours(page.errors) == []


@pytest.mark.nightly
def test_asked_to_always_find_the_line_it_does_without_asking(page, lab):
    """For the session alone: no cell is added, and nothing stands in the notebook."""
    first = "import torch\n%load_ext nbautograd\nw = torch.ones(3, requires_grad=True)"
    visit(page, lab, write(lab, "always.ipynb", first, IN_PLACE, IN_PLACE.replace("h", "k")))
    run_cell(page, 1)
    run_cell(page, 2)
    button(cell(page, 2).locator(".nbag-wall"), "lab.always").click()
    expect(cell(page, 2).locator(".nbag-wall li > code")).to_have_count(3, timeout=90_000)
    run_cell(page, 3)
    expect(cell(page, 3).locator(".nbag-wall li > code")).to_have_count(3, timeout=90_000)
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content.widgets.length === 3")
    execute(page, "docmanager:save")
    assert "--on" not in (lab.root / "always.ipynb").read_text()
    assert ours(page.errors) == []


@pytest.mark.nightly
def test_a_long_check_that_ends_in_another_tab_is_told(page, lab):
    """The wait is the user's own, since the feature begins at ten seconds."""
    slow = f"import time, torch\ntime.sleep(10.2)\n{CALL}"
    name = write(lab, "long.ipynb", f"import torch\n{LOAD}", SQUARE, slow)
    page.goto(lab.address(name).replace("/doc/", "/lab/"))
    page.wait_for_function(READY, timeout=90_000)
    run_cell(page, 1)
    run_cell(page, 2)
    run_cell(page, 3, wait=False)
    execute(page, "launcher:create")
    center = page.locator(".jp-Notification-Status")
    expect(center).to_contain_text("1", timeout=60_000)
    center.click()
    told = page.locator(".jp-Notification-List, .jp-Notification-Center").last
    expect(told).to_contain_text(words("views.headline.wrong_for"))
    button(told, "lab.open").click()
    expect(cell(page, 3)).to_be_visible()


@pytest.mark.nightly
def test_a_card_of_an_error_without_its_kernel(opened):
    """Of a notebook that is opened again: with one that knows nothing of its cells, nothing is run."""
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        x.add_(1)
    said = {**marks_bundle(nbautograd.explain(caught.value), "%autograd_explain @0"), "text/html": "<b>rest</b>"}
    page = opened("card.ipynb", ("one", "x.add_(1)", said))
    card = cell(page, 1).locator(".nbag-wall")
    button(card, "lab.find").click()
    expect(card.get_by_role("status")).to_have_text(text("lab.no_kernel"))
    card.get_by_text(text("widgets.more")).click()
    expect(card.get_by_text("rest")).to_be_visible()
    page = opened("card2.ipynb", ("one", "x.add_(1)", said), ("two", "2", None), trusted=False)
    expect(cell(page, 1).locator(".nbag-answer")).to_be_visible()
    expect(cell(page, 1).locator(".nbag-wall").get_by_role("button")).to_have_count(0)


@pytest.mark.nightly
def test_without_the_extension_the_report_is_as_ever(page, lab):
    page.route("**/extensions/nbautograd/**", lambda route: route.abort())
    visit(page, lab, write(lab, "without.ipynb", f"import torch\n{LOAD}", f"%%autograd_function -i x\n{SQUARE}"))
    run_all(page)
    expect(button(cell(page, 2), "widgets.cell_below")).to_be_visible(timeout=60_000)
    expect(button(cell(page, 2), "widgets.apply_and_run")).to_have_count(0)
    expect(underlined(page, 2)).to_have_count(0)
