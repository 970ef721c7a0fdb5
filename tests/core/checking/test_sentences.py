"""What a student reads: the cause, with names and shapes from the code, told once, and no more than was asked for."""

from __future__ import annotations

import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.core.display import render

pytestmark = pytest.mark.usefixtures("without_fixes")


def doubles(*shape):
    torch.manual_seed(5)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def first(fn, *inputs, **options):
    return nbautograd.gradcheck(fn, inputs, **options).findings[0]


class Rounded(Fn):
    """Straight through."""

    def forward(ctx, x):
        return x.round()

    def backward(ctx, grad):
        return grad


@pytest.mark.parametrize("values", [[0.5, 1.2, -1.5], [0.5], [0.1, 0.2]])
def test_a_straight_through_gradient_is_flat_also_where_the_forward_jumps(values):
    report = nbautograd.gradcheck(Rounded, torch.tensor(values, dtype=torch.float64, requires_grad=True))
    assert (report.verdict, report.blocks[0, 0].verdict) == ("cannot tell", "flat")
    assert [f.code for f in report.findings] == ["surrogate"]


class ReluAtJump(Fn):
    """A step of size one at zero and a slope elsewhere: not flat, and half of the slope is forgotten."""

    def forward(ctx, x):
        return 2 * x + (x > 0).double()

    def backward(ctx, grad):
        return grad


def test_a_wrong_slope_beside_a_jump_is_wrong():
    x = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert nbautograd.gradcheck(ReluAtJump, x).verdict == "wrong"


class InPlace(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        ctx.mark_dirty(x)
        return x.pow_(2)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


@pytest.mark.parametrize("check", [lambda *a: nbautograd.gradcheck(a[0], a[1:], order=1), nbautograd.inspect])
def test_an_in_place_function_is_checked_at_its_inputs(check):
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64, requires_grad=True)
    report = check(InPlace, x)
    block = (report if isinstance(report, nbautograd.types.GradcheckReport) else report.gradcheck).blocks[0, 0]
    assert block.verdict == "match"
    assert block.analytical().diagonal().tolist() == [2.0, -4.0, 6.0]


class WrongJvp(Fn):
    def forward(x):
        return x * x

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]

    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


def test_a_wrong_jvp_is_not_blamed_on_backward():
    report = nbautograd.gradcheck(WrongJvp, doubles(3))
    assert report.findings[0].code == "jvp_wrong"
    assert report.findings[0].line == WrongJvp.jvp.__code__.co_firstlineno
    assert render("text", report).startswith("WrongJvp: jvp is wrong, backward is right.")


class NotUnpacked(Fn):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        return grad * ctx.saved_tensors


class Unpacked(Fn):
    """Takes the tuple apart as it should be; what is wrong is something else."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.scale = None
        return x.exp()

    def backward(ctx, grad):
        saved = ctx.saved_tensors
        (x,) = saved
        return grad * x.exp() * ctx.scale


class ScaleIsNone(Unpacked):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return Unpacked.forward(ctx, x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.exp() * ctx.scale


class NoneUnseen(Fn):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    def backward(ctx, a, b):
        return 2 * a + 3 * b


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (NotUnpacked, "causes.exception_not_unpacked"),
        (Unpacked, "causes.exception_other"),
        (ScaleIsNone, "causes.exception_other"),
        (NoneUnseen, "causes.undefined_grad"),
    ],
)
def test_only_the_cause_is_blamed(fn, message):
    assert first(fn, doubles(3)).message_id == message


class Linear(Fn):
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.t(), grad_output.t() @ x


class SumRows(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum(1)

    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.ones_like(x)


@pytest.mark.usefixtures("fixes")
def test_shapes_that_do_not_fit_are_named():
    found = first(Linear, doubles(4, 5), doubles(3, 5))
    assert "`grad_output` [4, 3], `weight` [3, 5]" in found.message
    assert "(3) has to equal the first size of the second (5)" in found.message
    assert found.fix is not None
    assert "grad_output @ weight, grad_output.t() @ x" in found.fix.source
    found = first(SumRows, doubles(4, 3))
    assert "`grad_output` [4], `x` [4, 3]" in found.message
    assert "4 meets 3" in found.message


class OutputOnCtx(Fn):
    def forward(ctx, x):
        y = x.exp()
        ctx.result = y
        return y

    def backward(ctx, grad):
        return grad * ctx.result


class NanAtZero(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x / x.abs()


def test_a_mistake_is_told_once():
    found = nbautograd.inspect(OutputOnCtx, doubles(3)).findings
    assert [(f.code, f.line) for f in found] == [("output_on_ctx", OutputOnCtx.forward.__code__.co_firstlineno + 2)]
    x = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert [f.code for f in nbautograd.inspect(NanAtZero, x).findings] == ["nonfinite"]


class Halved(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


@pytest.mark.parametrize("hints", ["what", "where"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hint_does_not_tell_the_factor(hints, language):
    nbautograd.set_language(language)
    said = first(Halved, doubles(3), hints=hints).message
    assert "0.5" not in said
    assert "`x`" in said
