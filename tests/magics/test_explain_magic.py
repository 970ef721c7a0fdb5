"""Beneath the traceback of a gradient error of torch's stands one line, or the answer; the traceback is untouched."""

from __future__ import annotations

import sys

import pytest
import torch

from nbautograd.core.explaining import torch_errors

pytestmark = pytest.mark.usefixtures("saved_tensors_shown")

BROKEN = """\
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
"""
IN_LOOP = """\
w = torch.randn(3, requires_grad=True)
outs = []
for k in range(3):
    y = w.exp()
    outs.append(y)
for out in outs:
    out.mul_(2)
loss = sum(o.sum() for o in outs)
loss.backward()
"""


def test_one_line_stands_beneath_the_traceback(notebook):
    ran = notebook(BROKEN)
    assert "modified by an inplace operation" in ran.stdout
    hint = "nbautograd can say which tensor and which line: `%autograd_explain --run` runs the cell once more, "
    assert " ".join(ran.text.split()) == hint + "in a copy of the process."


def test_the_traceback_is_the_same_with_and_without_the_extension(notebook):
    with_extension = notebook(BROKEN, store_history=False).stdout
    notebook("%unload_ext nbautograd", store_history=False)
    assert notebook(BROKEN, store_history=False).stdout == with_extension


def test_other_errors_get_no_line(notebook):
    for cell in ("1 / 0", "torch.ones(2) @ torch.ones(3)", "raise RuntimeError('a leaf Variable that requires grad')"):
        assert notebook(cell).bundles == []


def test_the_magic_answers(notebook):
    notebook(BROKEN)
    ran = notebook("%autograd_explain")
    found = ran.result.result
    assert (found.code, found.tensor, found.did) == ("in_place", "y", None)
    assert "The memory of `y` was written into" in ran.text
    assert "`%autograd_explain --run`" in ran.text
    assert "<strong>" in ran.html
    found = explained(notebook, "--run")
    assert (found.tensor, found.did.line) == ("y", 3)
    assert found.did.cell is not None


def test_on_answers_at_once_and_off_no_longer(notebook):
    assert "beneath every gradient error" in notebook("%autograd_explain on").text
    assert "The memory of `y` was written into" in notebook(BROKEN).text
    notebook("%autograd_explain off")
    assert notebook(BROKEN).text.startswith("nbautograd can say")


def test_on_with_a_run_names_the_line_at_once(notebook):
    assert "is run once more, watched" in notebook("%autograd_explain on --run").text
    ran = notebook(BROKEN)
    assert "Line 3, `y += 1`, changed `y` in place." in ran.text
    assert "y = y + 1" in ran.text
    notebook("%autograd_explain on")
    assert "Line 3" not in notebook(BROKEN).text


def test_a_cell_that_is_run_again_changes_nothing_here(notebook):
    notebook("torch.manual_seed(0); counter = []")
    notebook(IN_LOOP + "counter.append(1)")
    assert notebook("explained = %autograd_explain").error is None
    assert notebook["explained"].did is None  # a loop wrote, and what is left does not show which line did
    state, kept = torch.get_rng_state(), notebook["w"]
    notebook("explained = %autograd_explain --run")
    found = notebook["explained"]
    assert (found.code, found.tensor, found.did.line, found.made.line, found.run) == (
        "in_place",
        "y",
        7,
        4,
        "copy",
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert notebook["w"] is kept
    assert notebook["counter"] == []


def test_a_changed_line_is_offered_only_after_it_was_tried(notebook):
    notebook(BROKEN)
    notebook("explained = %autograd_explain --run")
    fix = notebook["explained"].fix
    assert (fix.before, fix.source, fix.line, fix.verified) == ("y += 1", "y = y + 1", 3, True)


def test_a_cell_that_would_write_a_file_is_not_run_again(notebook, tmp_path):
    target = tmp_path / "out.txt"
    notebook(f"n = 0\nwith open({str(target)!r}, 'a') as f:\n    f.write('once')\n{BROKEN}")
    notebook("explained = %autograd_explain --run")
    found = notebook["explained"]
    assert (found.code, found.run) == ("in_place", "refused")
    assert found.findings[-1].params["detail"] == f"open {target}"
    assert target.read_text() == "once"


def test_a_tensor_can_be_asked_about(notebook):
    notebook("x = torch.zeros(2, requires_grad=True)\nloss = x.sqrt().sum()")
    notebook("explained = %autograd_explain loss")
    assert notebook["explained"].code == "not_finite_sqrt_at_zero"


def test_an_earlier_cell_that_freed_the_graph_is_named(notebook):
    first = number(notebook, "x = torch.ones(3, requires_grad=True)\nloss = x.exp().sum()\nloss.backward()")
    last = number(notebook, "loss.backward()")
    found = explained(notebook)
    assert (found.code, found.did) == ("freed", None)
    assert f"`%autograd_explain {first}-{last}`" in str(found)
    found = explained(notebook, f"{first}-{last}")
    assert (found.code, found.did.cell, found.did.line) == ("freed_again", first, 3)
    assert f"Line 3 there is of cell {first}" in str(found)


def test_a_mistake_of_ours_is_a_sentence(notebook, monkeypatch):
    from nbautograd.inspection import explanation

    notebook(BROKEN)
    monkeypatch.setattr(explanation, "cause_of_error", lambda error: {}["missing"])
    assert "missing" in notebook("%autograd_explain").stderr


def test_a_wrong_line_is_a_sentence(notebook):
    assert "no_such" in notebook("%autograd_explain no_such").stderr
    assert "takes an error, a tensor, or a function" in notebook("%autograd_explain 'three'").stderr
    assert "No cell 999 ran in this session" in notebook("%autograd_explain 999").stderr


def test_a_cell_without_an_error_is_not_looked_at(notebook, monkeypatch):
    monkeypatch.setattr(torch_errors, "kind_of", lambda error: 1 / 0)
    assert notebook("x = torch.ones(2)").bundles == []
    assert torch._C._len_torch_function_stack() == 0
    assert "ZeroDivisionError" in notebook("torch.ones(2) @ torch.ones(3)").text


@pytest.mark.parametrize("line", ["%autograd_explain", "%autograd_explain --run"])
def test_before_any_error_there_is_nothing_to_explain(notebook, line, monkeypatch):
    monkeypatch.delattr(sys, "last_value", raising=False)
    for _ in range(2):  # the first leaves its own refusal behind as the last error
        assert "There is no error to explain yet" in notebook(line).stderr


def test_an_error_that_is_older_than_the_last_is_said_to_be(notebook):
    notebook(BROKEN)
    cell = notebook["explained"].raised.cell if notebook("explained = %autograd_explain").error is None else None
    notebook("len(3)")
    text = " ".join(notebook("%autograd_explain").text.split())
    assert text.startswith("The last error, TypeError, is not one of torch's gradient errors;")
    assert f"the last one that is was raised in cell {cell}, " in text
    assert "The memory of `y` was written into" in text
    notebook(BROKEN)
    assert "TypeError" not in notebook("%autograd_explain").text


def test_the_keyword_before_a_statement_is_no_part_of_its_expression(notebook):
    notebook("x = torch.ones(2, requires_grad=True)\ntry: (x * 2).backward()\nfinally: pass")
    notebook("explained = %autograd_explain")
    assert (notebook["explained"].code, notebook["explained"].tensor) == ("not_scalar", "x * 2")


def test_a_value_without_a_name_is_called_as_it_stands_behind_the_magic(notebook):
    assert "`torch.ones(2) * 3` has no graph" in notebook("%autograd_explain torch.ones(2) * 3").text


def number(notebook, cell):
    """Run a cell, and return its number."""
    return notebook(cell).result.execution_count


def explained(notebook, what=""):
    assert notebook(f"explained = %autograd_explain {what}").error is None
    return notebook["explained"]


def test_a_line_of_another_cell_is_named_once_those_cells_are_run_again(notebook):
    made = number(notebook, "def halve(t):\n    t /= 2\na = torch.ones(3, requires_grad=True)\nb = a.exp()")
    notebook("halve(b)")
    notebook("missing")  # which raises again, and the next cells are run all the same
    last = number(notebook, "b.sum().backward()")
    for asked in ("", "--run"):
        found = explained(notebook, asked)
        assert (found.code, found.did) == ("in_place", None)
        assert f"`%autograd_explain {last - 1}-{last}`" in " ".join(str(found).split())
    state = notebook["b"].clone()
    for asked in (" ".join(map(str, range(made, last + 1))), f"{made}-{last}"):
        found = explained(notebook, asked)
        assert (found.did.cell, found.did.line, found.did.function, found.run) == (made, 2, "halve", "copy")
    assert torch.equal(notebook["b"], state)


def test_cells_are_run_without_an_error_too(notebook):
    cells = [number(notebook, "x = torch.zeros(2, requires_grad=True)"), number(notebook, "loss = x.sqrt().sum()")]
    cells.append(number(notebook, "loss.backward()"))
    found = explained(notebook, " ".join(map(str, cells)))
    assert (found.code, found.did.cell, found.run) == ("not_finite_sqrt_at_zero", cells[1], "copy")
