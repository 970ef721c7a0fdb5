"""What the editor is told of a cell's lines: the text that was checked, the line, what goes and what comes."""

from __future__ import annotations

import dataclasses
import json
import linecache

import pytest
import torch

import nbautograd
from nbautograd import messages
from nbautograd.core.findings import Phrase
from nbautograd.core.recording.call import CallLog
from nbautograd.core.tracing.dispatches import DispatchLog
from nbautograd.core.user_source import read_source
from nbautograd.course.exercise import Failure
from nbautograd.course.result import CheckResult, ExerciseResult
from nbautograd.widgets import notebook_cells
from nbautograd.widgets.marks import CARD, MIME, marks_bundle, marks_of

CELL = """import torch
{above}class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        return {factor} * x * grad_output
"""


@pytest.fixture
def defined(monkeypatch):
    """Run a cell as IPython does, of which the page has sent this id; returns its names."""
    monkeypatch.setattr(notebook_cells, "_cells", {})

    def run(text, cell="a1", file="/nowhere/ipykernel_1/7.py"):
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        if cell:
            notebook_cells._cells[file] = notebook_cells.NotebookCell(cell, text)
        names = {"__name__": "__main__"}
        exec(compile(text, file, "exec"), names)
        return names

    yield run
    linecache.cache.pop("/nowhere/ipykernel_1/7.py", None)


def checked(names):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    return nbautograd.gradcheck(names["Square"], (x,))


@pytest.mark.parametrize("above", ["", "if True:\n  pass\n"])
@pytest.mark.parametrize("cell", ["a1", ""])
def test_a_wrong_line_with_its_change(above, cell, defined):
    text = CELL.format(above=above, factor=3)
    state = marks_of(checked(defined(text, cell)))
    (source,), (mark,) = state.checked, state.marks
    rows = text.split("\n")
    assert source.cell == cell
    assert rows[source.first_line - 1 :][: source.text.count("\n") + 1] == source.text.split("\n")
    assert rows[mark.line - 1].strip() == "return 3 * x * grad_output"
    begin, end = mark.columns
    assert rows[mark.line - 1][begin:end] == "return 3 * x * grad_output"
    assert (mark.tone, mark.change.line, mark.change.before) == ("bug", mark.line, rows[mark.line - 1])
    mended = [*rows[: mark.line - 1], *mark.change.after.split("\n"), *rows[mark.line :]]
    assert checked(defined("\n".join(mended), cell)).verdict == "right"
    lit = [mark.change.after.split("\n")[k][begin:end] for k, begin, end in mark.change.lit]
    assert lit == ["2"]


def test_a_class_that_is_indented_in_its_cell_keeps_its_margin(defined):
    text = CELL.format(above="", factor=3)
    first, *rest = text.rstrip("\n").split("\n")
    text = "\n".join([first, "if True:", *("  " + row for row in rest)])
    (mark,) = marks_of(checked(defined(text))).marks
    rows = text.split("\n")
    assert mark.change.before == rows[mark.line - 1]
    assert mark.change.after == rows[mark.line - 1].replace("3", "2")


def test_what_is_right_marks_nothing_and_says_what_was_checked(defined):
    state = marks_of(checked(defined(CELL.format(above="", factor=2))))
    assert state.marks == ()
    assert "return 2 * x" in state.checked[0].text


@pytest.mark.parametrize(("order", "tone"), [(None, "risk"), (2, "bug")])
def test_second_derivatives_are_marked_once_as_a_risk_unless_they_were_asked_for(order, tone, defined):
    text = CELL.format(above="", factor="g").replace("save_for_backward(x)", "save_for_backward(2 * x)")
    names = defined(text.replace("x, = ", "g, = ").replace("g * x *", "g *"))
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    report = nbautograd.gradcheck(names["Square"], (x,), order=order)
    assert report.verdict == "right"
    assert [mark.tone for mark in marks_of(report).marks] == [tone]


def test_a_class_of_a_file_marks_no_cell(tmp_path):
    file = tmp_path / "square.py"
    file.write_text(CELL.format(above="", factor=3))
    names = {"__name__": "__main__"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert read_source(names["Square"]).file == str(file)
    assert marks_bundle(checked(names)) == {}


def test_a_cell_whose_text_is_not_that_of_the_class_is_not_marked(defined, monkeypatch):
    names = defined(CELL.format(above="", factor=3))
    other = notebook_cells.NotebookCell("a1", "# another\n" + CELL.format(above="", factor=3))
    monkeypatch.setattr(notebook_cells, "_cells", dict.fromkeys(notebook_cells._cells, other))
    assert marks_of(checked(names)) is None


def test_an_explained_error_marks_its_lines_by_their_part(defined):
    text = "import torch\nw = torch.ones(3, requires_grad=True)\nh = w.sigmoid()\nh.mul_(2)\nh.sum().backward()"
    with pytest.raises(RuntimeError) as caught:
        defined(text)
    marks = marks_of(nbautograd.explain(caught.value)).marks
    rows = text.split("\n")
    assert {mark.tone for mark in marks} == {"explained"}
    assert "h.sum().backward()" in [rows[mark.line - 1] for mark in marks]
    assert len({mark.message for mark in marks}) == len(marks)
    card = marks_bundle(nbautograd.explain(caught.value), "%autograd_explain @1")[CARD]
    assert [row["text"] for row in card["rows"]][-1] == "h.sum().backward()"
    assert card["find"] == "%autograd_explain @1"
    assert CARD not in marks_bundle(nbautograd.explain(ValueError("none of torch's")))


def test_what_was_overwritten_is_told_as_saved_overwritten_and_needed(defined):
    lines = ["    h = w.sigmoid()", "    h.mul_(2)", "    h.sum().backward()"]
    text = "\n".join(["import torch", "def step():", "    w = torch.ones(3, requires_grad=True)", *lines])
    rows = marks_bundle(nbautograd.explain(defined(text)["step"]))[CARD]["rows"]
    roles = [messages.text(f"explain.row.{role}") for role in ("saved", "overwritten", "needed")]
    assert [(row["text"], row["role"]) for row in rows] == [(k.strip(), v) for k, v in zip(lines, roles, strict=True)]


@pytest.mark.parametrize("log", [CallLog, DispatchLog])
def test_a_class_that_is_not_recorded_is_offered_the_magic(defined, log):
    text = CELL.format(above="", factor=3)
    defined(text)
    told = Phrase("recording.not_watched", function="Square", file="/nowhere/ipykernel_1/7.py")
    bundle = marks_bundle(log(problems=(told,)))
    assert bundle[CARD]["change"] == bundle[MIME]["marks"][0]["change"]  # which the page looks the button's up by
    change = bundle[CARD]["change"]
    assert text.replace(change["before"], change["after"], 1) == f"%%autograd_function\n{text}"
    assert marks_bundle(log()) == {}


@pytest.mark.parametrize("offered", [True, False])
def test_a_recorded_class_without_calls_is_offered_one_above_the_line_that_asks(defined, monkeypatch, offered):
    text = "x = 1\n%autograd_calls Square"
    cell = notebook_cells.NotebookCell("a1", text)
    monkeypatch.setattr(notebook_cells, "_cells", {"asks": cell})
    told = Phrase("recording.not_called", function="Square", call="Square.apply(x)", offered=offered)
    bundle = marks_bundle(CallLog(problems=(told,)))
    assert bool(bundle) == offered
    if offered:
        change = bundle[CARD]["change"]
        assert text.replace(change["before"], change["after"], 1) == "x = 1\nSquare.apply(x)\n%autograd_calls Square"
        assert bundle[MIME]["marks"][0]["line"] == change["line"] == 2


def test_the_bundle_is_json_and_nothing_is_said_of_other_values(defined):
    report = checked(defined(CELL.format(above="", factor=3)))
    bundle = marks_bundle(report)
    assert json.loads(json.dumps(bundle)) == json.loads(json.dumps({MIME: dataclasses.asdict(marks_of(report))}))
    assert marks_bundle(torch.ones(3)) == {}


def test_an_exercise_marks_the_line_that_its_sentences_name(defined):
    defined("class Answer:\n    ...")
    missing = ExerciseResult("answer", "Answer", "unanswered", line=2)
    (mark,) = marks_of(missing).marks
    assert (mark.tone, mark.line, mark.change) == ("risk", 2, None)
    failure = Failure("raised", Phrase("causes.value_only"), {}, (Phrase("findings.look_at_line", line=1),))
    outcome = CheckResult("value", "failed", (failure,))
    for hints, lines in (("what", []), ("where", [1])):
        result = ExerciseResult("answer", "Answer", "failed", (outcome,), hints=hints)
        assert [line for line, _ in result.marked_lines()] == lines
