"""A notebook frozen: what is replaced, what stays, what is never written over."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from comm_wire import decoded
from said import pattern, says

from nbautograd.command import main
from nbautograd.command.freeze import LIVE, STORED, Count, freeze, frozen
from nbautograd.errors import CommandError

ANCHOR = "nbag-0123456789abcdef"
OURS = {
    "model_name": "AnyModel", "model_module": "anywidget", "model_module_version": "~0.11.*",
    "state": {
        "_kind": "gradcheck", "_anchor": ANCHOR, "_labels": {"tabs": "</script>"}, "_colours": {},
        "layout": "IPY_MODEL_lay",
        "_esm": "alert('not ours to repeat')", "state": {"blocks": [{"maps": {}}]}, "tab": "", "selection": {},
    },
    "buffers": [{"path": ["state", "blocks", 0, "maps", "analytical"], "encoding": "base64", "data": "AAAA"}],
}  # fmt: skip
LAYOUT = {"model_name": "LayoutModel", "model_module": "@jupyter-widgets/base", "state": {}}
SLIDER = {"model_name": "IntSliderModel", "model_module": "@jupyter-widgets/controls", "state": {"value": 3}}


def output(html: str, **more: Any) -> Any:
    return nbformat.v4.new_output("display_data", {"text/html": html, "text/plain": "report", **more})


def content(*outputs: Any, models: dict[str, Any] | None = None) -> Any:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("f(x)", outputs=list(outputs))])
    if models is not None:
        stored = {"version_major": 2, "version_minor": 0, "state": models}
        notebook.metadata["widgets"] = nbformat.from_dict({STORED: stored})
    return notebook


def report(anchor: str = ANCHOR) -> str:
    return f'<div class="nbautograd {anchor}" style="margin:0">wrong</div>'


def models(**more: Any) -> dict[str, Any]:
    return json.loads(json.dumps({"one": OURS, "lay": LAYOUT, **more}))


def html_of(notebook: Any) -> str:
    return str(notebook.cells[0].outputs[0]["data"]["text/html"])


def test_the_report_gets_its_script() -> None:
    notebook = content(output(report()), models=models())
    count = frozen(notebook)
    assert (count.frozen, count.unknown, count.large) == (1, 0, 0)
    html = html_of(notebook)
    assert html.startswith(report() + "<script")
    assert html.count("</script>") == 1
    assert "not ours to repeat" not in html
    assert 30_000 < count.size < 60_000


def test_a_widget_displayed_by_itself_becomes_html() -> None:
    shown = output('<div class="nbautograd" style="margin:0">wrong</div>', **{LIVE: {"model_id": "one"}})
    notebook = content(shown, models=models())
    assert frozen(notebook).frozen == 1
    assert LIVE not in notebook.cells[0].outputs[0]["data"]
    assert '<div class="nbautograd nbag-' in html_of(notebook)


def test_widgets_of_others_stay() -> None:
    slider = output("slider", **{LIVE: {"model_id": "slider"}})
    notebook = content(slider, output(report()), models=models(slider=SLIDER))
    frozen(notebook)
    assert notebook.cells[0].outputs[0]["data"][LIVE] == {"model_id": "slider"}
    assert list(notebook.metadata["widgets"][STORED]["state"]) == ["slider"]


def test_without_others_nothing_is_left_of_the_stored_state() -> None:
    notebook = content(output(report()), models=models())
    frozen(notebook)
    assert "widgets" not in notebook.metadata


def test_a_report_whose_state_is_not_stored_stays_readable() -> None:
    notebook = content(output(report("nbag-ffffffffffffffff")), output(report()), models=models())
    count = frozen(notebook)
    assert (count.frozen, count.unknown) == (1, 1)
    assert html_of(notebook) == report("nbag-ffffffffffffffff")


def broken(**more: Any) -> dict[str, Any]:
    return models(one={**OURS, **more})


@pytest.mark.parametrize(
    "stored",
    [
        [1], "text", None, {"m": [1]}, {"m": "text"}, {"m": {"model_module": "anywidget"}},
        {"m": {"model_module": "anywidget", "state": ["_kind", "_anchor"]}},
        {"m": {"model_module": "anywidget", "state": "_kind _anchor"}},
        {"m": {"model_module": "anywidget", "state": {"_kind": 1, "_anchor": [1]}}},
        broken(buffers=None), broken(buffers="abc"), broken(buffers=[{}]), broken(buffers=[{"path": [], "data": "A"}]),
        broken(buffers=[{"path": ["state", "nowhere", 0], "data": "AAAA"}]),
        broken(buffers=[{"path": ["state", "blocks", 7], "data": "AAAA"}]),
        broken(state={**OURS["state"], "_labels": [1]}),
    ],
)  # fmt: skip
def test_what_no_widget_has_stored_and_a_view_whose_state_is_broken_stay_static(stored: Any) -> None:
    notebook = content(output(report()), models=stored)
    if not (isinstance(stored, dict) and "one" in stored):
        notebook.cells[0].outputs[0]["data"][LIVE] = [1]
    assert frozen(notebook) == Count(unknown=1)
    assert html_of(notebook) == report()


@pytest.mark.parametrize("text", ["null", "3", "", "[1]", "[" * 100_000 + "]" * 100_000, "{}"])
def test_what_is_no_notebook_is_one_sentence(text: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "n.ipynb"
    file.write_text(text, encoding="utf-8")
    assert main(["freeze", str(file)]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_what_is_too_large_stays_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nbautograd.widgets.thawing.MOST_LETTERS", 100)
    notebook = content(output(report()), models=models())
    assert frozen(notebook).large == 1
    assert html_of(notebook) == report()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    nbformat.write(content(output(report()), models=models()), tmp_path / "nb.ipynb")
    return tmp_path / "nb.ipynb"


def test_the_copy_lies_beside_and_the_notebook_stays(saved: Path, capsys: Any) -> None:
    before = saved.read_bytes()
    assert main(["freeze", str(saved)]) == 0
    assert saved.read_bytes() == before
    assert says(capsys.readouterr().out, "command.freeze.done", count=1)
    assert "<script" in html_of(nbformat.read(saved.with_suffix(".frozen.ipynb"), 4))
    assert main(["freeze", str(saved)]) == 0  # its own copy is written again


def test_a_page_needs_nothing_from_elsewhere(saved: Path) -> None:
    page = saved.with_suffix(".html")
    assert freeze(saved, page, execute=False) == 0
    text = page.read_text(encoding="utf-8")
    assert '<script type="module">' in text
    assert 'src="http' not in text


@pytest.mark.parametrize(
    ("name", "words"),
    [("nb.ipynb", pattern("command.freeze.itself")), ("other.ipynb", pattern("command.freeze.taken")),
     ("copy.pdf", pattern("command.freeze.kind")), ("other.html", pattern("command.freeze.taken")),
     ("no/where.ipynb", "No such file")],
)  # fmt: skip
def test_what_is_never_written_over(saved: Path, name: str, words: str) -> None:
    nbformat.write(content(), saved.parent / "other.ipynb")
    (saved.parent / "other.html").write_text("mine")
    kept = {path: path.read_bytes() for path in saved.parent.iterdir()}
    with pytest.raises(CommandError, match=words):
        freeze(saved, saved.parent / name, execute=False)
    assert {path: path.read_bytes() for path in saved.parent.iterdir()} == kept


def test_nothing_to_freeze_is_said(tmp_path: Path, capsys: Any) -> None:
    nbformat.write(content(output("<b>3</b>"), models=models()), tmp_path / "plain.ipynb")
    assert main(["freeze", str(tmp_path / "plain.ipynb")]) == 1
    assert says(capsys.readouterr().err, "command.freeze.nothing")
    assert main(["freeze", str(tmp_path / "missing.ipynb")]) == 1
    assert "No such file" in capsys.readouterr().err


RUN = """import torch, nbautograd
x = torch.ones(2, dtype=torch.float64, requires_grad=True)
nbautograd.gradcheck(torch.sin, x)"""


def thawed(html: str) -> dict[str, Any]:
    """The state in a frozen view's script."""
    packed = re.findall(r'unpack\("([^"]+)"\)', html)[-1]
    state: dict[str, Any] = json.loads(zlib.decompress(base64.b85decode(packed)))
    return state


@pytest.mark.slow
def test_a_notebook_that_stores_no_views_is_run(tmp_path: Path, capsys: Any) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (RUN, "1 / 0", "6 * 7")])
    nbformat.write(notebook, tmp_path / "nb.ipynb")
    before = (tmp_path / "nb.ipynb").read_bytes()
    with pytest.raises(CommandError, match=pattern("command.cell_failed", path=tmp_path / "out.ipynb")):
        freeze(tmp_path / "nb.ipynb", tmp_path / "out.ipynb", execute=False)
    assert says(capsys.readouterr().out, "command.freeze.running")
    assert (tmp_path / "nb.ipynb").read_bytes() == before
    copy = nbformat.read(tmp_path / "out.ipynb", 4)
    state = thawed(html_of(copy))
    shown = decoded(base64.b64decode(state["state"]["$b64"]))
    assert shown["check"]["verdict"] == "right"
    assert [key for key in shown["answers"] if "microscope" in key]  # asked while Python was there
    assert copy.cells[1].outputs[-1]["ename"] == "ZeroDivisionError"
    assert "widgets" not in copy.metadata
