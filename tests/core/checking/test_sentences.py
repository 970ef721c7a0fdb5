"""What a student reads: the cause, with names and shapes from the code, told once, and no more than was asked for."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import normal
from said import says

import nbautograd
from nbautograd.core.display import render

pytestmark = pytest.mark.usefixtures("without_fixes")


def first(fn, *inputs, **options):
    return nbautograd.gradcheck(fn, inputs, **options).findings[0]


# Straight through.
Rounded = Fn.of("Rounded", "x: return x.round()", "grad: return grad")


@pytest.mark.parametrize("values", [[0.5, 1.2, -1.5], [0.5], [0.1, 0.2]])
def test_a_straight_through_gradient_is_flat_also_where_the_forward_jumps(values):
    report = nbautograd.gradcheck(Rounded, torch.tensor(values, dtype=torch.float64, requires_grad=True))
    assert (report.verdict, report.blocks[0, 0].verdict) == ("cannot tell", "flat")
    assert [f.code for f in report.findings] == ["surrogate"]


# A step of size one at zero and a slope elsewhere: not flat, and half of the slope is forgotten.
ReluAtJump = Fn.of("ReluAtJump", "x: return 2 * x + (x > 0).double()", "grad: return grad")


def test_a_wrong_slope_beside_a_jump_is_wrong():
    x = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert nbautograd.gradcheck(ReluAtJump, x).verdict == "wrong"


WrongJvp = Fn.of("WrongJvp", "x: return x * x",
    "grad: return 2 * grad * ctx.saved_tensors[0]",
    setup_context="inputs, output: save(*inputs); ctx.save_for_forward(*inputs)",
    jvp="tangent: return tangent * ctx.saved_tensors[0]")  # fmt: skip


def test_a_wrong_jvp_is_not_blamed_on_backward():
    report = nbautograd.gradcheck(WrongJvp, normal(3))
    assert report.findings[0].code == "jvp_wrong"
    assert report.findings[0].line == WrongJvp.jvp.__code__.co_firstlineno
    assert says(render("text", report), "views.headline.jvp", function="WrongJvp")


NotUnpacked = Fn.of("NotUnpacked", "x: y = x.exp(); save(y); return y", "grad: return grad * ctx.saved_tensors")


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


ScaleIsNone = Unpacked.of("ScaleIsNone", "x: ctx.set_materialize_grads(False); return Unpacked.forward(ctx, x)",
    "grad: (x,) = saved; return grad * x.exp() * ctx.scale")  # fmt: skip
NoneUnseen = Fn.of("NoneUnseen", "x: ctx.set_materialize_grads(False); return 2 * x, 3 * x",
    "a, b: return 2 * a + 3 * b")  # fmt: skip
TwoSaved = Fn.of("TwoSaved", "x: save(x); return 2 * x", "grad: a, b = saved; return 2 * grad")
OneOfTwo = Fn.of("OneOfTwo", "x: return 2 * x, 3 * x", "grad: return 2 * grad")
ComplexGradient = Fn.of("ComplexGradient", "x: return x + 1j", "grad: return grad * 1j")
SavesOutput = Fn.of("SavesOutput", "x: y = x.exp(); save(y); return y", "grad: (y,) = saved; return grad * y")
View = Fn.of("View", "x: return x.view_as(x)", "grad: return grad")


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (NotUnpacked, "causes.exception_not_unpacked"),
        (Unpacked, "causes.exception_other"),
        (ScaleIsNone, "causes.exception_other"),
        (NoneUnseen, "causes.undefined_grad"),
        (TwoSaved, "causes.exception_unpacked_wrongly"),
        (OneOfTwo, "causes.exception_grad_output_count"),
        (ComplexGradient, "causes.exception_complex"),
        (lambda x: SavesOutput.apply(x).add_(1), "causes.exception_saved_then_modified"),
        (lambda x: View.apply(x).mul_(2), "causes.exception_view_modified"),
    ],
)
def test_only_the_cause_is_blamed(fn, message):
    assert first(fn, normal(3)).message_id == message


OutputOnCtx = Fn.of("OutputOnCtx", "x: y = x.exp(); ctx.result = y; return y", "grad: return grad * ctx.result")
ThriceTheSquare = Fn.of("ThriceTheSquare", "x: save(x); return x * x", "grad: (x,) = saved; return 3 * x * grad")
NanAtZero = Fn.of("NanAtZero", "x: save(x); return x.abs()", "grad: (x,) = saved; return grad * x / x.abs()")


def test_a_mistake_is_told_once():
    found = nbautograd.inspect(OutputOnCtx, normal(3)).findings
    assert [(f.code, f.line) for f in found] == [("output_on_ctx", OutputOnCtx.forward.__code__.co_firstlineno + 2)]
    x = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64, requires_grad=True)
    assert [f.code for f in nbautograd.inspect(NanAtZero, x).findings] == ["nonfinite"]
    x = torch.tensor([1.0, torch.nan, 2.0], dtype=torch.float64, requires_grad=True)  # forward's own NaN is no mistake
    assert [f.code for f in nbautograd.gradcheck(ThriceTheSquare, (x,)).findings] == ["wrong_unclassified"]
