"""Forward mode under vmap and over reverse: right ones pass, wrong ones are told, with torch.func as the oracle."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd


class Cube(Fn):
    generate_vmap_rule = True

    def forward(x):
        return x**3

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t


class ThroughNumbers(Cube):
    """Its jvp leaves tensors, which one tangent can stand and several at once cannot."""

    generate_vmap_rule = False

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t if t.abs().max().item() > 0 else torch.zeros_like(x)


class SavesItsSlope(Cube):
    """What backward uses was computed in forward, where no tangent follows."""

    generate_vmap_rule = False

    @staticmethod
    def forward(x):
        return x**3, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g, g_slope):
        x, slope = ctx.saved_tensors
        return slope * g + 6 * x * g_slope

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t, torch.zeros_like(t)


def codes(report) -> list[str]:
    return [f.code for f in report.findings]


def test_a_right_jvp_is_right_under_vmap_and_over_reverse() -> None:
    x = draw(4)
    assert torch.allclose(torch.func.hessian(lambda x: Cube.apply(x).sum())(x.detach()), torch.diag(6 * x.detach()))
    report = nbautograd.gradcheck(Cube, x)
    assert report.verdict == "right"
    assert codes(report) == []


def test_a_jvp_that_takes_one_tangent_only_is_told() -> None:
    x = draw(4)
    with pytest.raises(RuntimeError):
        torch.func.jacfwd(ThroughNumbers.apply)(x.detach())
    report = nbautograd.gradcheck(ThroughNumbers, x)
    assert report.verdict == "right"
    assert [(f.code, f.kind) for f in report.findings] == [("jvp_batched", "lint")]


def test_a_tangent_lost_between_forward_and_backward_is_told() -> None:
    fn, x = (lambda x: SavesItsSlope.apply(x)[0]), draw(4)
    report = nbautograd.gradcheck(fn, x)
    assert {b.verdict for b in report.blocks.values()} == {"match"}
    assert report.verdict == "right"
    assert "not_twice_differentiable" in codes(report)
    assert report.order2.verdict == "wrong"
    assert codes(report.order2) == ["forward_over_reverse_wrong"]


@pytest.mark.parametrize("order", [1, 2])
def test_a_function_without_a_jvp_is_not_asked(order: int) -> None:
    Double = Fn.of("Double", "x: return 2 * x", "g: return 2 * g")
    assert codes(nbautograd.gradcheck(Double, draw(3), order=order)) == []
