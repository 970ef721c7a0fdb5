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
    assert ran.text == "nbautograd can say which tensor and which line: `%autograd_explain`"


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
    assert (found.code, found.tensor, found.did.line) == ("in_place", "y", 3)
    assert found.did.cell is not None
    assert "Line 3, `y += 1`, changed `y` in place" in ran.text
    assert "<strong>" in ran.html


def test_on_answers_at_once_and_off_no_longer(notebook):
    assert "beneath every gradient error" in notebook("%autograd_explain on").text
    assert "Line 3, `y += 1`, changed `y` in place" in notebook(BROKEN).text
    notebook("%autograd_explain off")
    assert notebook(BROKEN).text.startswith("nbautograd can say")


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
    notebook("x = torch.ones(3, requires_grad=True)\nloss = x.exp().sum()\nloss.backward()")
    notebook("loss.backward()")
    ran = notebook("explained = %autograd_explain")
    found = notebook["explained"]
    assert (found.code, found.did.line, ran.error) == ("freed", 3, None)
    assert found.did.cell == found.raised.cell - 1
    assert f"Line 3 there is of cell {found.did.cell}" in str(found)


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
    assert "Line 3, `y += 1`, changed `y` in place" in text
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


def test_the_line_of_an_earlier_cell_that_wrote_is_named(notebook):
    notebook("y = torch.ones(3)\ny += 5")  # another tensor of this name
    made = number(notebook, "w = torch.ones(3, requires_grad=True)\ny = w.exp()")
    notebook("loss = y.sum()")
    wrote = number(notebook, "k = 1\ny += k")
    notebook("loss.backward()")
    found = explained(notebook)
    assert (found.code, found.tensor, found.did.cell, found.did.line) == ("in_place", "y", wrote, 2)
    assert f"Line 2 there is of cell {wrote}" in str(found)
    assert found.made is None or found.made.cell == made


def test_a_line_of_another_cell_is_named_once_those_cells_are_run_again(notebook):
    made = number(notebook, "def halve(t):\n    t /= 2\na = torch.ones(3, requires_grad=True)\nb = a.exp()")
    notebook("halve(b)")
    notebook("for k in range(2):\n    b.mul_(2)")
    last = number(notebook, "b.sum().backward()")
    found = explained(notebook)
    assert found.did is None
    cells = " ".join(str(cell) for cell in range(made, last + 1))
    assert f"`%autograd_explain {cells}`" in " ".join(str(found).split())
    state = notebook["b"].clone()
    for asked in (cells, f"{made}-{last}"):
        found = explained(notebook, asked)
        assert (found.did.cell, found.did.line, found.did.function, found.run) == (made, 2, "halve", "copy")
    assert torch.equal(notebook["b"], state)


def test_a_cell_that_raised_counts_as_far_as_it_ran(notebook):
    notebook("w = torch.ones(3, requires_grad=True)\ny = w.exp()\nloss = y.sum()")
    notebook("1 / 0\ny += 1")  # does not write
    wrote = number(notebook, "y.mul_(2)\ny[0] = 3\nmissing")
    notebook("loss.backward()")
    found = explained(notebook)
    assert (found.did.cell, found.did.line) == (wrote, 1)
    notebook("for k in range(2):\n    y.add_(1)\n    if k: raise KeyError")
    notebook("loss.backward()")
    assert explained(notebook).did is None  # a loop that raised may have written before it


def test_cells_from_before_the_extension_are_not_read(bare):
    bare("x = torch.ones(3, requires_grad=True)\ny = x.exp()\nloss = y.sum()\ny += 1")
    bare("%load_ext nbautograd")
    bare("loss.backward()")
    found = explained(bare)
    assert (found.code, found.tensor, found.did) == ("in_place", "y", None)


def test_a_graph_that_is_cut_in_an_earlier_cell(notebook):
    notebook("net = torch.nn.Linear(3, 3)\nh = net(torch.ones(2, 3)).tanh()")
    cut = number(notebook, "h = h.detach()")
    notebook("loss = h.sum()")
    notebook("loss.backward()")
    for found in (explained(notebook), explained(notebook, "loss")):
        assert (found.code, found.tensor, found.did.cell, found.did.line) == ("no_grad_detach", "h", cut, 1)


def test_a_graph_freed_by_a_loss_of_the_same_name(notebook):
    first = number(notebook, "p = torch.ones(3, requires_grad=True)\nq = p.exp()\nloss = q.sum()\nloss.backward()")
    notebook("loss = (q * 2).sum()\nloss.backward()")
    found = explained(notebook)
    assert (found.code, found.tensor, found.did.cell, found.did.line) == ("freed", "q", first, 4)


def test_a_loss_that_was_computed_anew_did_not_free_the_graph(notebook):
    notebook("p = torch.ones(3, requires_grad=True)\nloss = p.exp().sum()\nloss.backward()")
    notebook("loss = p.exp().sum()")
    freed = number(notebook, "loss.backward()")
    notebook("loss.backward()")
    found = explained(notebook)
    assert (found.did.cell, found.did.line) == (freed, 1)


def test_cells_are_run_without_an_error_too(notebook):
    cells = [number(notebook, "x = torch.zeros(2, requires_grad=True)"), number(notebook, "loss = x.sqrt().sum()")]
    cells.append(number(notebook, "loss.backward()"))
    found = explained(notebook, " ".join(map(str, cells)))
    assert (found.code, found.did.cell, found.run) == ("not_finite_sqrt_at_zero", cells[1], "copy")
