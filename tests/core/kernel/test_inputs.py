"""Inputs of a Function and its reference: random numbers, and arguments that are no tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from fn import Fn
from kernels import RMS, function
from said import says
from torch import Tensor

from nbautograd import compare
from nbautograd.core.torch_private.precision import InFloat64, RandomNumbers, RandomRounding
from nbautograd.types import Comparison

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow

KEPT = 0.75


def _flat(x: Tensor) -> Tensor:
    return F.dropout(x, 1 - KEPT)


def _drawn(x: Tensor) -> Tensor:
    return x * (torch.rand_like(x) < KEPT) / KEPT  # of another dtype, other numbers


def _filled(x: Tensor) -> Tensor:
    return x * torch.empty_like(x).bernoulli_(KEPT) / KEPT


def _in_float32(x: Tensor) -> Tensor:
    return x * (torch.rand(x.shape, dtype=torch.float32) < KEPT) / KEPT


def _fused(x: Tensor) -> Tensor:
    return torch.ops.aten.native_dropout(x, 1 - KEPT, True)[0]


REFERENCES = (_flat, _drawn, _filled, _in_float32, _fused)


def _dropout(eager: Callable[[Tensor], Tensor], scale: float) -> Callable[..., Tensor]:
    """A Function that draws the same mask as the reference does."""

    def forward(x: Tensor) -> Any:
        y = eager(x.detach())
        return y, ((y != 0),)

    return function(forward, lambda s, g: g.float() * s[0] * scale, "dropout")


def _checked(eager: Callable[[Tensor], Tensor], scale: float) -> Comparison:
    x = (torch.randn(20, 60, generator=torch.Generator().manual_seed(3)) + 5).bfloat16().requires_grad_()
    return compare(_dropout(eager, scale), eager, (x,), sizes=())


@pytest.mark.slow
@pytest.mark.parametrize("eager", REFERENCES)
def test_a_reference_with_dropout_has_its_mask_in_float64_as_well(eager: Callable[[Tensor], Tensor]) -> None:
    right = _checked(eager, 1 / KEPT)
    assert (right.verdict, right.findings) == ("right", ())
    assert all(one.yardstick < 0.01 for one in right.quantities)
    assert says(right, "compare.random")
    wrong = _checked(eager, 1.0)
    factor, cause = wrong.findings  # what the comparison saw, and the line that a check of backward found
    assert (factor.code, cause.code) == ("compare_factor", "constant_factor")
    assert [factor.params["factor"], float(cause.params["ratio"])] == pytest.approx([KEPT, KEPT], abs=0.01)


def test_another_mask_is_wrong_and_not_called_zero() -> None:
    x = (torch.randn(20, 60, generator=torch.Generator().manual_seed(3)) + 5).bfloat16().requires_grad_()
    report = compare(lambda x: x * (torch.rand_like(x) > KEPT) / (1 - KEPT), _drawn, (x,), sizes=())
    assert report.verdict == "wrong"
    assert {one.code for one in report.findings} == {"compare_values"}


@pytest.mark.parametrize("mode", [InFloat64, lambda n: RandomRounding(torch.bfloat16, 0, n)])
def test_what_was_drawn_is_taken_in_its_order_and_then_drawn_anew(mode: Callable[[RandomNumbers], Any]) -> None:
    like = torch.ones(4, dtype=torch.bfloat16)
    with RandomNumbers() as numbers:
        first, second = torch.rand_like(like), torch.rand_like(like)
    for _ in range(2):
        with mode(numbers):
            a, b, c = (torch.rand_like(like.double()) for _ in range(3))
        assert torch.equal(a, first.double())
        assert torch.equal(b, second.double())
        assert not torch.equal(c, first.double())


def test_arguments_that_are_no_tensors_are_handed_on() -> None:
    seen: list[Any] = []

    class Scaled(Fn):
        def forward(ctx: Any, x: Tensor, times: int, scale: float, whole: bool, nothing: None) -> Tensor:
            seen.append((times, scale, whole, nothing))
            ctx.factor = times * scale if whole else 0.0
            return (x.float() * ctx.factor).to(x.dtype)

        def backward(ctx: Any, g: Tensor) -> Any:
            return (g.float() * ctx.factor).to(g.dtype), None, None, None, None

    (x, _) = RMS.inputs(torch.bfloat16)
    arguments = (x, 3, 0.5, True, None)
    report = compare(Scaled, lambda x, n, c, *_: x * (n * c), arguments, sizes=[(4, 33)])
    assert (report.verdict, report.findings) == ("right", ())
    assert set(seen) == {(3, 0.5, True, None)}
    assert [str(one) for one in report.inputs[1:]] == ["times: 3", "scale: 0.5", "whole: True", "nothing: None"]


def masked(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend to what came before; the mask is of infinities."""
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -math.inf)
    return torch.softmax(scores, -1) @ v


class Masked(Fn):
    """The same in float32 inside."""

    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return masked(q.float(), k.float(), v.float()).to(q.dtype)

    @classmethod
    def gradients(cls, ctx, grad):
        inputs = [x.detach().float().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            return torch.autograd.grad(masked(*inputs), inputs, grad.float())

    def backward(ctx, grad):
        return tuple(g.to(grad.dtype) for g in Masked.gradients(ctx, grad))


# Wrong in one head of one gradient.
LastHeadOff = Masked.of("LastHeadOff", backward="grad: dq, dk, dv = Masked.gradients(ctx, grad); dv[-1] = dv[0]; "
    "return tuple(g.to(grad.dtype) for g in (dq, dk, dv))")  # fmt: skip


@pytest.mark.parametrize("dtype", [pytest.param(torch.float16, marks=pytest.mark.nightly), torch.bfloat16], ids=str)
def test_infinities_of_a_mask_stay_what_they_are(dtype: torch.dtype) -> None:
    with RandomRounding(dtype, 0):
        rounded = torch.tensor([math.inf, -math.inf] * 20, dtype=torch.float64) * 1
    assert rounded.isinf().all()
    inputs = tuple(
        torch.randn(3, 8, 16, generator=torch.Generator().manual_seed(k)).to(dtype).requires_grad_() for k in range(3)
    )
    right = compare(Masked, masked, inputs, sizes=())
    assert right.verdict == "right"
    assert all(0 < one.resolution < 0.1 for one in right.quantities)
    assert compare(LastHeadOff, masked, inputs, sizes=()).verdict == "wrong"


def test_what_cancels_shows_the_rounding_of_its_terms_and_nothing_is_written_twice() -> None:
    x = torch.rand(30, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given = x.clone()
    with RandomRounding(torch.bfloat16, 0):
        third = x / 3
        left, turned = third - third, third.T - third.T
        third.add_(1)
        x.add_(1)
        sums = third + 0 - x / 3
    assert torch.equal(x, given + 1)
    for one in (left, turned):
        assert 0 < one.abs().max() < 2**-9
        assert 0.2 < (one != 0).double().mean() < 0.8
    assert (sums - 2 / 3).abs().max() < 2**-6


def one_term(x: Tensor) -> Tensor:
    return (x[:, None] @ x.new_ones(1, 1))[:, 0]


@pytest.mark.parametrize(("fn", "units"), [(lambda x: 1 - x, 2 / 3**0.5), (one_term, 2**0.5 / 3**0.5)])
def test_terms_are_rounded_where_they_are_added_up_in_the_dtype_itself(fn, units):
    """A term is off by up to a unit, and all sizes are as likely; of less than float32 sums are formed in float32."""
    x = torch.full((4000,), 1 - 2.0**-6, dtype=torch.float64)
    for dtype, expected in ((torch.float32, units), (torch.bfloat16, 0.0)):
        with RandomRounding(dtype, 0):
            rounded = fn(x)
        off = (rounded - fn(x)) / torch.finfo(dtype).eps * 2
        assert float(off.square().mean().sqrt()) == pytest.approx(expected, abs=0.1)


def test_nothing_is_right_where_rounding_leaves_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomRounding, "_rounded", lambda _, tensor, **_more: tensor * math.nan)
    x = torch.linspace(-2, 2, 40, dtype=torch.float16, requires_grad=True)
    report = compare(torch.tanh, torch.tanh, x, sizes=())
    assert report.verdict == "cannot tell"
    assert report.reason.message_id == "compare.rounding_not_finite"
