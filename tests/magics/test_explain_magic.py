"""Beneath the traceback of a gradient error of torch's stands one line, or the answer; the traceback is untouched."""

from __future__ import annotations

import re
import sys

import pytest
import torch
from said import says

from nbautograd import messages
from nbautograd.core.explaining import explain as rooms

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


def test_the_traceback_is_the_same_with_and_without_the_extension(notebook):
    with_extension = notebook(BROKEN, store_history=False).stdout
    notebook("%unload_ext nbautograd", store_history=False)
    assert notebook(BROKEN, store_history=False).stdout == with_extension


def test_on_with_a_run_names_the_line_at_once(notebook):
    assert "--run" in notebook("%autograd_explain --on --run").text
    ran = notebook(BROKEN)
    assert says(ran.text, "explain.in_place.changed", line=3, text="y += 1", tensor="`y`")
    assert "y = y + 1" in ran.text
    notebook("%autograd_explain --on")
    assert "Line 3" not in notebook(BROKEN).text


def test_a_cell_that_is_run_again_changes_nothing_here(notebook):
    notebook("torch.manual_seed(0); counter = []")
    notebook(IN_LOOP + "counter.append(1)")
    assert notebook("explained = %autograd_explain").error is None
    assert notebook["explained"].did is None  # a loop wrote, and what is left does not show which line did
    state, kept = torch.get_rng_state(), notebook["w"]
    notebook("explained = %autograd_explain --run")
    found = notebook["explained"]
    assert (found.code, found.tensor, found.did.line, found.made.line, found.run) == ("in_place", "y", 7, 4, "copy")
    assert torch.equal(torch.get_rng_state(), state)
    assert notebook["w"] is kept
    assert notebook["counter"] == []


def test_a_cell_that_would_write_a_file_is_not_run_again(notebook, tmp_path):
    target = tmp_path / "out.txt"
    notebook(f"n = 0\nwith open({str(target)!r}, 'a') as f:\n    f.write('once')\n{BROKEN}")
    notebook("explained = %autograd_explain --run")
    found = notebook["explained"]
    assert (found.code, found.run) == ("in_place", "refused")
    assert found.findings[-1].params["detail"] == f"open {target}"
    assert target.read_text() == "once"


def test_an_earlier_cell_that_freed_the_graph_is_named(notebook):
    first = number(notebook, "x = torch.ones(3, requires_grad=True)\nloss = x.exp().sum()\nloss.backward()")
    last = number(notebook, "loss.backward()")
    found = explained(notebook)
    assert (found.code, found.did) == ("freed", None)
    assert f"`%autograd_explain {first}-{last}`" in str(found)
    found = explained(notebook, f"{first}-{last}")
    assert (found.code, found.did.cell, found.did.line) == ("freed_again", first, 3)
    assert says(found, "explain.in_cell", line=3, cell=first)


def test_a_mistake_of_ours_is_a_sentence(notebook, monkeypatch):
    from nbautograd.inspection import explanation

    notebook(BROKEN)
    monkeypatch.setattr(explanation, "cause_of_error", lambda error: {}["missing"])
    assert "missing" in notebook("%autograd_explain").stderr


def test_a_wrong_line_is_a_sentence(notebook):
    assert "no_such" in notebook("%autograd_explain no_such").stderr
    assert says(notebook("%autograd_explain 'three'").stderr, "explain.not_explainable")
    assert says(notebook("%autograd_explain 999").stderr, "explain.no_cell", number=999)


def test_a_card_of_another_session_runs_none_of_this_ones_cells(notebook):
    notebook(BROKEN)
    assert messages.text("explain.asked_before") in notebook("%autograd_explain @0a1b2c3d").stderr


def test_a_cell_without_an_error_is_not_looked_at(notebook, monkeypatch):
    monkeypatch.setattr(rooms, "kind_of_error", lambda error: 1 / 0)
    assert notebook("x = torch.ones(2)").bundles == []
    assert torch._C._len_torch_function_stack() == 0
    assert "ZeroDivisionError" in notebook("torch.ones(2) @ torch.ones(3)").text


@pytest.mark.parametrize("line", ["%autograd_explain", "%autograd_explain --run"])
def test_before_any_error_there_is_nothing_to_explain(notebook, line, monkeypatch):
    monkeypatch.delattr(sys, "last_value", raising=False)
    for _ in range(2):  # the first leaves its own refusal behind as the last error
        assert messages.text("explain.no_error") in notebook(line).stderr


def test_an_error_that_is_older_than_the_last_is_said_to_be(notebook):
    notebook(BROKEN)
    notebook("len(3)")
    text = notebook("%autograd_explain").text
    assert says(text, "explain.earlier", error="TypeError")
    assert says(text, "explain.in_place.changed_somewhere", tensor="`y`")
    notebook(BROKEN)
    assert "TypeError" not in notebook("%autograd_explain").text


def test_the_keyword_before_a_statement_is_no_part_of_its_expression(notebook):
    notebook("x = torch.ones(2, requires_grad=True)\ntry: (x * 2).backward()\nfinally: pass")
    notebook("explained = %autograd_explain")
    assert (notebook["explained"].code, notebook["explained"].tensor) == ("not_scalar", "x * 2")


def number(notebook, cell):
    """Run a cell, and return its number."""
    return notebook(cell).result.execution_count


def explained(notebook, what=""):
    assert notebook(f"explained = %autograd_explain {what}").error is None
    return notebook["explained"]


def offers(text):
    """The lines that an answer offers to run."""
    return re.findall(r"`%autograd_explain ([^`]*)`", " ".join(text.split()))


def test_the_cells_that_made_what_an_error_is_about_are_offered_at_once_and_run_together(notebook):
    made = number(notebook, "def halve(t):\n    t /= 2\na = torch.ones(3, requires_grad=True)\nb = a.exp()")
    notebook("halve(b)")
    notebook("missing")  # which raises again, and the next cells are run all the same
    ran = notebook("b.sum().backward()")
    last = ran.result.execution_count
    state = notebook["b"].clone()
    assert offers(ran.text) == [f"{made}-{last}"]
    found = explained(notebook)
    assert (found.code, found.did, offers(str(found))) == ("in_place", None, [f"{made}-{last}"])
    notebook(found.findings[-1].params["find"].replace("%", "found = %"))  # what its button runs
    assert notebook["found"].did.cell == made
    for asked in ("--run", " ".join(map(str, range(made, last + 1))), f"{made}-{last}"):
        found = explained(notebook, asked)
        assert (found.did.cell, found.did.line, found.did.function, found.run) == (made, 2, "halve", "copy")
    assert torch.equal(notebook["b"], state)
    found = explained(notebook, str(last))  # too few of them
    assert (found.code, found.did, offers(str(found))) == ("in_place", None, [])


CELLS_NEEDED = {  # cells, how many of the last ones are needed
    "what has a graph": (["w = torch.ones(2, requires_grad=True)", "y = w.exp()", "y += 1", "y.sum().backward()"], 3),
    "a cell that ran twice": (
        ["w = torch.ones(2, requires_grad=True)", "loss = w.exp().sum()"] + ["loss.backward()"] * 2,
        3,
    ),
    "a layer that was frozen": (
        [
            "net = torch.nn.Linear(2, 1)",
            "net.requires_grad_(False)",
            "out = net(torch.ones(1, 2))",
            "out.sum().backward()",
        ],
        4,
    ),
    "what a function reads": (
        [
            "w = torch.ones(2, requires_grad=True)",
            "y = w.exp()",
            "def loss():\n    return y.sum()",
            "y += 1",
            "loss().backward()",
        ],
        4,
    ),
    "a loss that is NaN": (
        [
            "p = torch.zeros(2, requires_grad=True)",
            "ratio = p / p.sum()",
            "loss = ratio.sum()",
            "assert torch.isfinite(loss)",
        ],
        3,
    ),
}


@pytest.mark.parametrize("name", CELLS_NEEDED)
def test_the_cells_that_are_offered_are_those_that_show_the_line(notebook, name):
    cells, needed = CELLS_NEEDED[name]
    for cell in cells[:-1]:
        notebook(cell)
    ran = notebook(cells[-1])
    last = ran.result.execution_count
    assert offers(ran.text) == ["--run" if needed == 1 else f"{last - needed + 1}-{last}"]
    found = explained(notebook, "--run")
    assert (found.did or found.made) is not None
    assert offers(str(found)) == []


def test_the_cell_that_left_gradients_switched_off_is_run_too(notebook):
    made = number(
        notebook,
        "net, x = torch.nn.Linear(2, 1), torch.ones(3, 2)\ndef evaluate():\n    "
        "torch.set_grad_enabled(False)\n    return net(x).mean()",
    )
    called = number(notebook, "score = evaluate()")
    notebook("out = net(x)")
    try:
        ran = notebook("out.sum().backward()")
        assert offers(ran.text) == [f"{called}-{ran.result.execution_count}"]
        found = explained(notebook, "--run")
        off = next(f for f in found.findings if f.code == "explain_no_grad_switched_off")
        assert (found.code, off.line) == ("no_grad_no_grad", 3)
        assert found.fix.source.startswith("with torch.no_grad():\n    return net(x)")
        assert made < called
        assert not torch.is_grad_enabled()  # here everything is as it was
    finally:
        torch.set_grad_enabled(True)


def test_where_an_earlier_cell_reaches_outside_the_one_that_raised_is_run_alone(notebook, tmp_path):
    notebook(f"w = torch.ones(2, requires_grad=True)\ny = w.exp()\nopen({str(tmp_path / 'log')!r}, 'w').close()")
    notebook("y += 1\ny.sum().backward()")
    found = explained(notebook, "--run")
    assert (found.code, found.tensor, found.run) == ("in_place", "y", "copy")


def test_an_error_of_another_kind_that_a_run_raises_again_is_said_to_be_raised(notebook):
    notebook("w = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()\n{}['accuracy']")
    found = explained(notebook, "--run")
    assert [f.code for f in found.findings] == ["explain_raised_other", "explain_not_torch"]
    assert found.findings[0].params["error"] == "KeyError: 'accuracy'"


def test_a_gradient_that_a_function_brought_and_removed_is_not_said_never_to_have_come(notebook):
    notebook(
        "w = torch.ones(2, requires_grad=True)\ndef step():\n    (w * 2).sum().backward()\n    w.grad = None\nstep()"
    )
    found = explained(notebook, "w")
    assert (found.code, offers(str(found))) == ("grad_none_not_run", ["w --run"])
    found = explained(notebook, "w --run")
    assert (found.code, found.did.line) == ("grad_none_removed", 4)


@pytest.mark.parametrize("asked", ["w", "w.grad"])
def test_of_a_gradient_that_is_not_finite_the_run_is_offered_that_shows_its_line(notebook, asked):
    notebook("w = torch.zeros(2, requires_grad=True)\nw.sqrt().sum().backward()")
    found = explained(notebook, asked)
    assert (found.code, offers(str(found))) == ("not_finite", ["w --run"])
    assert explained(notebook, f"{asked} --run").did.line == 2


def test_the_nan_of_another_tensor_is_no_answer(notebook):
    notebook("a = torch.ones(3, requires_grad=True)")
    notebook("z = torch.zeros(3, requires_grad=True)\n(z / z.norm()).sum().backward()")
    assert explained(notebook, "a --run").tensor == "a"


def test_a_tensor_may_have_any_name(notebook):
    notebook("on = torch.zeros(2, requires_grad=True)\noff = on.sqrt().sum()")
    assert explained(notebook, "off").code == "not_finite_sqrt_at_zero"
    assert explained(notebook, "on").code == "grad_none_not_run"


def test_the_cells_that_made_a_tensor_are_run_for_its_line(notebook):
    notebook("x = torch.zeros(2, requires_grad=True)")
    made = number(notebook, "ratio = x / x.sum()")
    notebook("loss = ratio.sum()")
    notebook("print(loss)")
    found = explained(notebook, "loss")
    assert (found.code, found.did, offers(str(found))) == ("not_finite_division_by_zero", None, ["loss --run"])
    found = explained(notebook, "loss --run")
    assert (found.code, found.did.cell, found.run) == ("not_finite_zero_over_zero", made, "copy")
    notebook("last = x / x.sum()\nfound = %autograd_explain last --run")  # the cell that asks has made it
    assert notebook.shell.user_ns["found"].did.line == 1
    assert offers(str(found)) == []


@pytest.mark.parametrize(
    ("cells", "asked", "code", "line"),
    [
        (["net = torch.nn.Linear(2, 1)\nnet.requires_grad_(False)"], "net.weight", "grad_none_frozen", 2),
        (["a = torch.ones(2, requires_grad=True)", "b = a.detach()"], "b", "no_grad_detach", 1),
        (
            [
                "a = torch.ones(2, requires_grad=True)",
                "b = torch.ones(2, requires_grad=True)\n(a.detach() * b).sum().backward()",
            ],
            "a",
            "no_grad_detach",
            2,
        ),
    ],
)
def test_a_frozen_detached_or_unused_tensor_is_said_to_be_so_and_a_run_names_the_line(
    notebook, cells, asked, code, line
):
    for cell in cells:
        notebook(cell)
    found = explained(notebook, asked)
    assert found.code == code or asked == "a"  # of a leaf the loss is gone
    assert asked in str(found).split("\n")[0]
    found = explained(notebook, f"{asked} --run")
    assert (found.code, found.did.line) == (code, line)


def test_a_value_that_no_cell_made_is_said_to_be_of_none(notebook):
    notebook.shell.user_ns["given"] = torch.full((2,), float("nan"))
    assert messages.text("explain.no_cell_of", name="given") in notebook("%autograd_explain given --run").stderr


def test_whose_error_is_explained_is_said_where_a_later_cell_raised_nothing(notebook):
    cell = number(notebook, BROKEN)
    assert not says(notebook("%autograd_explain").text, "explain.quiet_since")
    quiet = number(notebook, "z = 1")
    for line in ("%autograd_explain", "%autograd_explain --run"):
        assert says(notebook(line).text, "explain.quiet_since", quiet=quiet, cell=cell)
    notebook(BROKEN)
    assert not says(notebook("%autograd_explain").text, "explain.quiet_since")


def test_cells_are_run_without_an_error_too(notebook):
    cells = [number(notebook, "x = torch.zeros(2, requires_grad=True)"), number(notebook, "loss = x.sqrt().sum()")]
    cells.append(number(notebook, "loss.backward()"))
    found = explained(notebook, " ".join(map(str, cells)))
    assert (found.code, found.did.cell, found.run) == ("not_finite_sqrt_at_zero", cells[1], "copy")
