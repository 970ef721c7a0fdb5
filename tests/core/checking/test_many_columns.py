"""Where very many columns disagree: the count of wrong entries is exact all the same."""

from __future__ import annotations

import pytest
import torch
from fn import Fn

from nbautograd import gradcheck


class Dense(Fn):
    """Each output depends on all inputs, with a kink at zero where that is asked for."""

    def forward(ctx, x, damage):
        ctx.save_for_backward(x)
        ctx.damage = damage
        y = torch.outer(torch.arange(1.0, 5.0, dtype=x.dtype), x.sin())
        y = (y * y.roll(1, 0)).sum(1)
        return y + x.relu().sum() if damage == "kinks" else y

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        w = torch.arange(1.0, 5.0, dtype=x.dtype)
        smooth = (grad * w * w.roll(1)).sum() * (2 * x).sin()
        if ctx.damage == "a third":
            return torch.where(torch.arange(len(x)) % 3 == 0, smooth * 1.001, smooth), None
        if ctx.damage == "kinks":
            return smooth + grad.sum() * torch.where(x == 0, 0.25, (x > 0).double()), None
        return smooth + 0.5 * grad.sum(), None


def points():
    torch.manual_seed(4)
    return torch.randn(900, dtype=torch.float64, requires_grad=True)


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "wrong"), [("a third", 300 * 4), ("everywhere", 900 * 4)])
def test_the_count_is_exact(damage, wrong):
    block = gradcheck(Dense, (points(), damage), order=1).blocks[0, 0]
    assert (block.verdict, block.wrong, block.entries) == ("mismatch", wrong, 3600)


@pytest.mark.slow
def test_a_subgradient_at_many_kinks_is_no_mismatch():
    x = points()
    with torch.no_grad():
        x[::2] = 0
    block = gradcheck(Dense, (x, "kinks"), order=1).blocks[0, 0]
    assert (block.verdict, block.reason, block.wrong) == ("subgradient", "kink", 0)


# Smooth at zero, and wrong only there.
SquareOffset = Fn.of("SquareOffset", "x: save(x); return 3 * x + x * x",
    "grad: (x,) = saved; return grad * (3 + 2 * x) * (x != 0)")  # fmt: skip
# Wrong at its kink, where 2 is outside the slopes to both sides.
ReluTwo = Fn.of("ReluTwo", "x: save(x); return x.relu()",
    "grad: (x,) = saved; return grad * ((x > 0) + 2.0 * (x == 0))")  # fmt: skip


@pytest.mark.parametrize(("fn", "kink"), [(SquareOffset, False), (ReluTwo, True)])
def test_a_mismatch_at_zero_is_a_kink_only_where_the_slopes_to_both_sides_differ(fn, kink):
    x = torch.tensor([-1.0, 0.0, 2.0, 0.0, 0.5], dtype=torch.float64, requires_grad=True)
    report = gradcheck(fn, x, hints="where")
    assert report.blocks[0, 0].wrong == 2
    assert (report.findings[0].code == "kink") is kink
