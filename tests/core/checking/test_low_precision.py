"""Below double precision a right backward is right, a wrong one wrong, and right says what could have been seen."""

from __future__ import annotations

import math
import re

import pytest
import torch
from fn import Fn
from said import says

from nbautograd import gradcheck

pytestmark = pytest.mark.usefixtures("without_fixes")

DTYPES = [
    pytest.param(torch.float16, marks=pytest.mark.slow),
    torch.bfloat16,
    pytest.param(torch.float32, marks=pytest.mark.slow),
]


def make(forward, backward):
    def saving(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return forward(*inputs)

    methods = {
        "forward": staticmethod(saving),
        "backward": staticmethod(lambda ctx, g: backward(g, *ctx.saved_tensors)),
    }
    return type("Made", (torch.autograd.Function,), methods)


def softmax_slope(g, x):
    y = x.softmax(-1)
    return y * (g - (g * y).sum(-1, keepdim=True))


def gelu_slope(g, x):
    return g * (0.5 * (1 + torch.erf(x / 2**0.5)) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def norm(x):
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def norm_slope(g, x):
    wide, grad = x.float(), g.float()
    r = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (grad * r - wide * r**3 * (grad * wide).mean(-1, keepdim=True)).to(x.dtype)


# forward, right backward, wrong backward
FORMULAS = {
    "exp": (torch.exp, lambda g, x: g * x.exp(), lambda g, x: 1.5 * g * x.exp()),
    "sin": (torch.sin, lambda g, x: g * x.cos(), lambda g, x: g * x.sin()),
    "softmax": (lambda x: x.softmax(-1), softmax_slope, lambda g, x: g * x.softmax(-1)),
    "gelu": (torch.nn.functional.gelu, gelu_slope, lambda g, x: g * 0.5 * (1 + torch.erf(x / 2**0.5))),
    "norm in float32": (norm, norm_slope, lambda g, x: norm_slope(g, x) + g),
    "cumsum": (lambda x: x.cumsum(-1), lambda g, x: g.flip(-1).cumsum(-1).flip(-1), lambda g, x: g.cumsum(-1)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FORMULAS)
def test_right_is_right_and_wrong_is_wrong(name, dtype):
    forward, right, wrong = FORMULAS[name]
    for seed in range(3):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()
        assert gradcheck(make(forward, right), x, order=1).verdict == "right"
        assert gradcheck(make(forward, wrong), x, order=1, hints="what").verdict == "wrong"


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7])
def test_a_large_output_excuses_no_gradient(offset: float) -> None:
    """What rounds in the output is no measure of a gradient that is made without it."""
    fn = make(lambda x: x + offset, lambda g, x: 1.5 * g)
    assert gradcheck(fn, torch.linspace(0.3, 2, 6).requires_grad_(), order=1, hints="what").verdict == "wrong"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_right_says_what_could_not_have_been_seen(dtype):
    x = torch.linspace(-1, 2, 6).to(dtype).requires_grad_()
    report = gradcheck(make(torch.exp, FORMULAS["exp"][1]), x, order=1)
    assert says(report.reason, "checking.resolution", dtype=str(dtype).removeprefix("torch."))


HalfInBackward = Fn.of("HalfInBackward", "x, w: save(x, w); return x * w",
    "g: x, w = saved; return g * w, (g * x).half().to(w.dtype)")  # fmt: skip
HalfThroughout = HalfInBackward.of("HalfThroughout", "x, w: save(x, w); return (x.half() * w.half()).to(x.dtype)")
SavedInFewBytes = HalfInBackward.of("SavedInFewBytes", "x, w: save(x.bfloat16(), w); return x * w",
    "g: x, w = saved; return g * w, g * x.to(w.dtype)")  # fmt: skip
RoundedForAPrint = HalfInBackward.of("RoundedForAPrint",
    "x, w: save(x, w); ctx.shown = x.half().tolist(); return x * w",
    "g: x, w = saved; return g * w, g * x")  # fmt: skip
RoundedThroughItem = RoundedForAPrint.of("RoundedThroughItem", "x, w: save(x, w); "
    "return torch.stack([float(a.half().item()) * b for a, b in zip(x, w, strict=True)])")  # fmt: skip
RoundedThroughNumpy = RoundedForAPrint.of("RoundedThroughNumpy",
    'x, w: save(x, w); half = x.half(); array = half.numpy().astype("float64"); '
    'return torch.from_numpy(array) * w')  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "size", "kind", "message"),
    [
        (SavedInFewBytes, 1.0, "lint", "causes.backward_loses_precision"),
        (RoundedForAPrint, 1.0, None, None),
        (HalfInBackward, 1e-9, "bug", "causes.backward_loses_values"),
        (HalfInBackward, 1e7, "bug", "causes.backward_loses_values"),
        (HalfInBackward, 1.0, "bug", "causes.backward_loses_precision"),
        (SavedInFewBytes, 1.01, "bug", "causes.backward_loses_precision"),
        (HalfThroughout, 1.0, None, None),
    ],
)
def test_half_precision_in_backward_alone_is_a_mistake_and_a_risk_where_it_holds_the_numbers_exactly(
    fn, size, kind, message
):
    x, w = torch.linspace(0.5, 1.5, 5, dtype=torch.float64), torch.linspace(1.5, 0.7, 5, dtype=torch.float64)
    found = gradcheck(fn, ((size * x).requires_grad_(), w.requires_grad_()), order=1).findings
    told = [(f.kind, f.message_id) for f in found if f.code == "backward_loses_precision"]
    assert told == ([] if kind is None else [(kind, message)])


# Its exponent is large, so that a relative error of 0.4 % in it becomes a larger one.
SoftmaxSavedInFewBytes = Fn.of("SoftmaxSavedInFewBytes", "x: save(x.bfloat16()); return torch.softmax(x, -1)",
    "g: p = torch.softmax(ctx.saved_tensors[0].to(g.dtype), -1); "
    "return p * (g - (g * p).sum(-1, keepdim=True))")  # fmt: skip


def test_the_error_that_is_said_is_the_one_that_is_measured():
    torch.manual_seed(3)
    x = (3 * torch.randn(4, 9, dtype=torch.float64)).requires_grad_()
    found = gradcheck(SoftmaxSavedInFewBytes, (x,), order=1).findings[0]
    percent = float(re.search(r"(\S+) %", found.message)[1])
    v = torch.randn_like(x)
    wrong, right = (torch.autograd.grad(f(x), x, v)[0] for f in (SoftmaxSavedInFewBytes.apply, lambda t: t.softmax(-1)))
    error = 100 * float((wrong - right).abs().max() / right.abs().max())
    assert error / 3 < percent < 3 * error  # other gradients arrive here than in the check


# The formula of backward is right, and what it is given has three digits.
SlopeOfFewBytes = Fn.of("SlopeOfFewBytes", "x: y = torch.tanh(1.3 * x); save(y.bfloat16()); return 0.9 * y",
    "g: y = ctx.saved_tensors[0].to(g.dtype); return g * (0.9 * 1.3) * (1 - y * y)")  # fmt: skip


def test_a_formula_is_not_blamed_beside_a_number_that_was_rounded():
    x = torch.linspace(-1.9, 2.0, 9, dtype=torch.float64, requires_grad=True)
    found = gradcheck(SlopeOfFewBytes, (x,), order=1).findings
    assert [f.code for f in found if f.kind == "bug"] == ["backward_loses_precision"]


@pytest.mark.parametrize(
    ("fn", "dtype"),
    [
        (SavedInFewBytes, "bfloat16"),
        (RoundedForAPrint, ""),
        (RoundedThroughItem, "float16"),
        (RoundedThroughNumpy, "float16"),
        (HalfThroughout, "float16"),
    ],
)
def test_the_precision_is_that_of_numbers_that_an_output_or_a_gradient_is_computed_from(fn, dtype):
    x, w = torch.linspace(0.53, 1.47, 5, dtype=torch.float64), torch.linspace(1.5, 0.7, 5, dtype=torch.float64)
    report = gradcheck(fn, (x.requires_grad_(), w.requires_grad_()), order=1)
    rounds_more = fn is SavedInFewBytes  # than forward, which is exact
    assert report.verdict == ("wrong" if rounds_more else "right")
    assert rounds_more or (says(report.reason, "checking.resolution", dtype=dtype) if dtype else not report.reason)


# Backward computes with the gradient of the scale, which is marked.
Quantised = Fn.of("Quantised",
    "x: scale = x.abs().amax(-1, keepdim=True); ctx.mark_non_differentiable(scale); save(x, scale); "
    "return x / scale, scale",
    "g, gs: x, scale = saved; "
    "top = torch.zeros_like(x).scatter(-1, x.abs().argmax(-1, keepdim=True), 1.0) * x.sign(); "
    "return g / scale + top * (gs - (g * x).sum(-1, keepdim=True) / scale**2)")  # fmt: skip


def test_a_gradient_that_backward_computes_and_never_gets_is_a_mistake_inside_a_callable_too() -> None:
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert gradcheck(Quantised, (x,), order=1).findings[0].code == "nondiff_marked_wrongly"
    report = gradcheck(lambda t: Quantised.apply(t), (x,), order=1)
    assert (report.verdict, report.findings[0].code) == ("wrong", "wrong_inside")


class Cancelling(Fn):
    """Takes a variance as the difference of two large numbers."""

    factor = 1.0

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x - x.mean(1, keepdim=True)) * (x.var(1, unbiased=False, keepdim=True) + 1e-3).rsqrt()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        mu = x.mean(1, keepdim=True)
        var = (x * x).mean(1, keepdim=True) - mu * mu
        inv = (var.clamp_min(0) + 1e-3).rsqrt()
        xh = (x - mu) * inv
        return Cancelling.factor * inv * (g - g.mean(1, keepdim=True) - xh * (g * xh).mean(1, keepdim=True))


def test_what_is_right_in_double_precision_is_said_to_lack_precision_from_the_variable_that_does(monkeypatch):
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(3)) + torch.tensor([[0.0], [0.0], [2000.0]])
    found = gradcheck(Cancelling, x.requires_grad_(), order=1).findings[0]
    assert found.message_id == "causes.right_in_double"
    assert "`var = (x * x).mean(1, keepdim=True) - mu * mu`" in found.message
    monkeypatch.setattr(Cancelling, "factor", 1.5)
    found = gradcheck(Cancelling, x.requires_grad_(), order=1).findings[0]
    assert found.message_id != "causes.right_in_double"


class RightAtOnePoint(Fn):
    """Has the right gradient in double precision at one point alone."""

    point = torch.randn(3, 4, generator=torch.Generator().manual_seed(3))

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        right = x.dtype == torch.float64 and (x - RightAtOnePoint.point).abs().max() < 1e-3
        return g * x * (2 if right else 3)


def test_precision_is_not_blamed_for_what_is_right_in_double_at_the_given_inputs_alone():
    found = gradcheck(RightAtOnePoint, RightAtOnePoint.point.clone().requires_grad_(), order=1).findings[0]
    assert found.kind == "bug"
    assert found.message_id != "causes.right_in_double"
