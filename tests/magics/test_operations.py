"""%%autograd_function over a cell that defines operations of torch.library."""

from __future__ import annotations

import pytest

CELL = """\
%%autograd_function {options}
@torch.library.custom_op("nbautograd_cell::{name}", mutates_args=())
def swish(x: torch.Tensor, beta: float) -> torch.Tensor:
    return x * torch.sigmoid(beta * x)

def setup_context(ctx, inputs, output):
    x, ctx.beta = inputs
    ctx.save_for_backward(x)

def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    s = torch.sigmoid(ctx.beta * x)
    return grad * (s + x * s * (1 - s)), None

swish.register_autograd(backward, setup_context=setup_context)
"""


@pytest.fixture
def filled(notebook):
    notebook("a = torch.tensor([0.2, -1.3, 0.7], dtype=torch.double, requires_grad=True)")
    return notebook


def test_its_gradient_is_reported_with_the_names_lines_and_a_tried_fix_of_the_cell(filled) -> None:
    ran = filled(CELL.format(options="--inputs a, 2.0", name="checked"))
    assert ran.result.success
    text = ran.bundles[-1]["text/plain"]
    assert "nbautograd_cell::checked: backward is wrong for `x`. Change line 13 to" in text
    assert "tried" in text
    assert "setup_context" in text  # the calls are recorded


def test_without_inputs_it_is_told_how_to_check_it(filled) -> None:
    ran = filled(CELL.format(options="", name="told"))
    assert "--inputs x, beta" in ran.bundles[-1]["text/plain"]


def test_the_line_magic_takes_the_operation_itself(filled) -> None:
    filled(CELL.format(options="--quiet", name="line"))
    report = filled("%gradcheck swish(a, 2.0)").result.result
    assert (report.function, report.verdict) == ("nbautograd_cell::line", "wrong")
    assert filled("%gradcheck torch.ops.nbautograd_cell.line(a, 1.0)").result.result.verdict == "right"
