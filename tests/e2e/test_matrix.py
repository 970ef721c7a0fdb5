"""Where a saved notebook is opened again: something to read everywhere, never twice, never "model not found" alone.

Three cells: a report shown by itself (static first, then live), its ``.widget()``, and a number. Saved as JupyterLab
saves it, without the state of widgets, and as nbclient does, with it; opened with a fresh kernel, without a kernel,
untrusted, converted by nbconvert, frozen.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from fn import typed
from jupyter_app import App, ours, visit
from playwright.sync_api import expect
from widget_page import tab, words

from nbautograd.command.freeze import freeze
from nbautograd.command.page import run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SQUARE = typed("Square", "x: save(x); return x * x", "g: x, = saved; return (2 * x + (x > 2.5)) * g")
CELLS = (f"""import torch, nbautograd
{SQUARE}
x = torch.linspace(-3, 3, 200, dtype=torch.float64, requires_grad=True)
report = nbautograd.inspect(Square, x)
report""", "report.widget()", "6 * 7")  # fmt: skip
SAYS = words("views.headline.wrong_for", inputs="x")
REPORT = ".nbautograd, .nbag-live"
NO_KERNEL = {"name": "none", "display_name": "None", "language": "none"}


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook, run, with the state of its widgets."""
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    content.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    assert run(content, tmp_path_factory.mktemp("matrix"), 120, keep_widgets=True) == ""
    return content


def saved(app: App, name: str, content: Any, *, state: bool, trusted: bool = True, kernel: bool = True) -> str:
    """Write the notebook into the served folder as somebody's front end would have saved it."""
    from nbformat.sign import NotebookNotary

    copy = nbformat.from_dict(json.loads(json.dumps(content)))
    if not state:
        copy.metadata.pop("widgets", None)
    if not kernel:
        copy.metadata.kernelspec = dict(NO_KERNEL)
        del copy.metadata["language_info"]  # else a kernel of that language is started
    copy.metadata["copy"] = name  # a signature is of the content: this one is its own
    nbformat.write(copy, app.root / name)
    if trusted:
        NotebookNotary(data_dir=str(app.root.parent / "data")).sign(nbformat.read(app.root / name, 4))
    return name


def opened(page: Any, app: App, name: str, *, kernel: bool = True) -> None:
    """Open it; without a kernel when there is none of that name."""
    if kernel:
        visit(page, app, name)
        return
    page.goto(app.address(name))
    dialog = page.locator(".jp-Dialog")
    dialog.get_by_role("button", name="No Kernel").click(timeout=60_000)
    expect(dialog).to_have_count(0)


def one_report_in_each(page: Any, cells: tuple[int, ...] = (0, 1)) -> None:
    """Each of these cells shows the verdict, in one report and in no second one beside it."""
    for number in cells:
        area = page.locator(".jp-CodeCell").nth(number).locator(".jp-OutputArea").first
        seen = area.locator(REPORT)
        expect(seen.filter(has_text=SAYS, visible=True)).to_have_count(1, timeout=60_000)
        expect(seen.filter(visible=True)).to_have_count(1)


OFTEN = [False, pytest.param(True, marks=pytest.mark.nightly)]  # whether the saved state is there


@pytest.mark.parametrize(
    ("app", "state"),
    [("lab", False), *(pytest.param(*one, marks=pytest.mark.nightly) for one in (("lab", True), ("notebook7", False)))],
)
def test_a_fresh_kernel(page: Any, request: Any, executed: Any, app: str, state: bool) -> None:
    served = request.getfixturevalue(app)
    opened(page, served, saved(served, f"fresh-{state}.ipynb", executed, state=state))
    one_report_in_each(page)
    assert ours(page.errors) == []


@pytest.mark.parametrize("state", OFTEN, ids=["state lost", "state saved"])
def test_no_kernel(page: Any, lab: App, executed: Any, state: bool) -> None:
    opened(page, lab, saved(lab, f"none-{state}.ipynb", executed, state=state, kernel=False), kernel=False)
    one_report_in_each(page)


@pytest.mark.parametrize("app", ["lab", pytest.param("notebook7", marks=pytest.mark.nightly)])
def test_untrusted(page: Any, request: Any, executed: Any, app: str) -> None:
    served = request.getfixturevalue(app)
    opened(page, served, saved(served, "untrusted.ipynb", executed, state=True, trusted=False))
    one_report_in_each(page)
    expect(page.locator(".nbag-live")).to_have_count(0)


@pytest.mark.parametrize("state", OFTEN, ids=["state lost", "state saved"])
def test_nbconvert_without_network(page: Any, executed: Any, tmp_path: Path, state: bool) -> None:
    from nbconvert import HTMLExporter

    copy = nbformat.from_dict(json.loads(json.dumps(executed)))
    if not state:
        copy.metadata.pop("widgets", None)
    (tmp_path / "page.html").write_text(HTMLExporter().from_notebook_node(copy)[0], encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    one_report_in_each(page)


@pytest.fixture(scope="module")
def frozen(executed: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The frozen copy."""
    notebook = tmp_path_factory.mktemp("frozen") / "nb.ipynb"
    nbformat.write(executed, notebook)
    freeze(notebook, None, execute=False)
    return notebook.with_suffix(".frozen.ipynb")


def works_alone(page: Any) -> None:
    """Both views are live: tabs turn, hover names entries."""
    expect(page.locator(".nbag-live")).to_have_count(2, timeout=60_000)
    one_report_in_each(page)
    view = page.locator(".nbag-live").first
    tab(view, "jacobian").click()
    view.locator(".maps canvas").first.hover(position={"x": 1, "y": 1})
    expect(view.get_by_role("status")).to_contain_text("d output[0]…[3] / d x[0]…[3]")
    tab(view, "summary").click()


@pytest.mark.nightly
def test_frozen_in_jupyterlab_trusted_and_not(page: Any, lab: App, frozen: Path) -> None:
    content = nbformat.read(frozen, 4)
    opened(page, lab, saved(lab, "frozen.ipynb", content, state=True, kernel=False), kernel=False)
    works_alone(page)
    assert ours(page.errors) == []
    name = saved(lab, "frozen-untrusted.ipynb", content, state=True, kernel=False, trusted=False)
    opened(page, lab, name, kernel=False)
    one_report_in_each(page)
    expect(page.locator(".nbag-live")).to_have_count(0)
    assert page.refused == []


def test_frozen_as_a_page_without_network(page: Any, frozen: Path, tmp_path: Path) -> None:
    from nbconvert import HTMLExporter

    (tmp_path / "page.html").write_text(HTMLExporter().from_notebook_node(nbformat.read(frozen, 4))[0], "utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    works_alone(page)


def test_without_scripts_the_report_is_there(chromium: Any, frozen: Path, tmp_path: Path) -> None:
    assert freeze(frozen.parent / "nb.ipynb", tmp_path / "page.html", execute=False) == 0
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    expect(page.locator(".nbautograd", has_text=SAYS)).to_have_count(2)
    context.close()
