"""The grammar of edits: each kind is registered once, and kinds that others do not replace find their fix."""

from __future__ import annotations

import pytest
import torch
from functions_checked import AttentionWrong, MaskedMeanWrong
from own_mistakes import draw
from torch.autograd import Function

import nbautograd
from nbautograd.core.checking.repair.grammar import KINDS

UPPER = torch.tensor([[1.0, 1, 0, 1], [1, 0, 1, 1]], dtype=torch.float64)


def fix(cls, *inputs) -> str | None:
    report = nbautograd.gradcheck(cls.apply, inputs, order=1)
    assert report.verdict == "wrong"
    found = [f.fix for f in report.findings if f.fix is not None]
    return found[0].source.strip() if found else None


class OneSlopeForgotten(Function):
    @staticmethod
    def forward(ctx, q, k):
        fq, fk = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        ctx.save_for_backward(q, k, fq, fk)
        return fq @ fk.T

    @staticmethod
    def backward(ctx, g):
        q, k, fq, fk = ctx.saved_tensors  # noqa: RUF059

        def slope(x):
            return torch.where(x > 0, torch.ones_like(x), x.exp())

        return (g @ fk) * slope(q), g.T @ fq


class FullForLower(Function):
    @staticmethod
    def forward(ctx, lower, b):
        x = torch.linalg.solve_triangular(lower, b, upper=False)
        ctx.save_for_backward(lower, x)
        return x

    @staticmethod
    def backward(ctx, g):
        lower, x = ctx.saved_tensors
        gb = torch.linalg.solve_triangular(lower.T, g, upper=True)
        gl = -gb @ x.T
        return gl, gb


class OneBoundOnly(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x < ctx.high), None, None


class SlopeWrittenOut(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, g, 0.01 * g), None


class LastStepOnly(Function):
    @staticmethod
    def forward(ctx, xs, w):
        hs = [torch.zeros_like(xs[0])]
        for x in xs:
            hs.append(torch.tanh(x + hs[-1] @ w))
        ctx.save_for_backward(w, *hs)
        return torch.stack(hs[1:])

    @staticmethod
    def backward(ctx, g):
        w, *hs = ctx.saved_tensors
        gh = torch.zeros_like(hs[0])
        gw = torch.zeros_like(w)
        gxs = []
        for t in reversed(range(g.shape[0])):
            gh = g[t] + gh
            ga = gh * (1 - hs[t + 1] ** 2)
            gw = hs[t].T @ ga
            gxs.insert(0, ga)
            gh = ga @ w.T
        return torch.stack(gxs), gw


class SumOverEverything(Function):
    @staticmethod
    def forward(ctx, x):
        n = x.norm(dim=1, keepdim=True)
        y = x / n
        ctx.save_for_backward(y, n)
        return y

    @staticmethod
    def backward(ctx, g):
        y, n = ctx.saved_tensors
        return (g - y * (g * y).sum()) / n


class HalvesExchanged(Function):
    @staticmethod
    def forward(ctx, x):
        a, b = x.chunk(2, -1)
        ctx.save_for_backward(a, b)
        return a * b.sin()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.cat([g * a * b.cos(), g * b.sin()], -1)


class PowerOfTheDifference(Function):
    @staticmethod
    def forward(ctx, x):
        t = x.tanh()
        ctx.save_for_backward(t)
        return t

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * (1 - t) ** 2


class SoftmaxTermLost(Function):
    @staticmethod
    def forward(ctx, h):
        p = h.softmax(1)
        grid = torch.arange(h.shape[1], dtype=h.dtype)
        ctx.save_for_backward(p, grid)
        return p @ grid

    @staticmethod
    def backward(ctx, g):
        p, grid = ctx.saved_tensors
        return g[:, None] * p * grid


class PowerRule(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + 0.7 * x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 + 0.7 * x**2)


class RowsAgainstColumns(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.logsumexp(1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g[:, None] * torch.exp(x - y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "inputs", "source"),
    [
        (AttentionWrong, (draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)),
         "ds = p * (dp - (dp * p).sum(-1, keepdim=True))"),
        (OneSlopeForgotten, (draw(4, 3), draw(5, 3, seed=1)), "return (g @ fk) * slope(q), g.T @ fq * slope(k)"),
        (FullForLower, ((2 * torch.eye(3) + draw(3, 3).detach()).requires_grad_(), draw(3, 2, seed=1)),
         "gl = (-gb @ x.T).tril()"),
        (OneBoundOnly, (draw(4, 5), -0.5, 0.8), "return g * (x > ctx.low) * (x < ctx.high), None, None"),
        (SlopeWrittenOut, (draw(3, 5), 0.2), "return torch.where(x > 0, g, ctx.slope * g), None"),
        (LastStepOnly, (draw(3, 2, 3), draw(3, 3, seed=1)), "gw = gw + hs[t].T @ ga"),
        (SumOverEverything, (draw(3, 4),), "return (g - y * (g * y).sum(1, keepdim=True)) / n"),
        (HalvesExchanged, (draw(2, 6),), "return torch.cat([g * b.sin(), g * a * b.cos()], -1)"),
        (PowerOfTheDifference, (draw(3, 4),), "return g * (1 - t ** 2)"),
        (SoftmaxTermLost, (draw(3, 4),),
         "return g[:, None] * p * grid - p * (g[:, None] * p * grid).sum(1, keepdim=True)"),
        (MaskedMeanWrong, (draw(2, 4), UPPER), "return g * mask / mask.sum(), None"),
        (PowerRule, (draw(6),), "return g * (1 + 0.7 * 3 * x**2)"),
        (RowsAgainstColumns, (draw(4, 4),), "return g[:, None] * torch.exp(x - y[:, None])"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_a_kind_of_edit_finds_the_fix_in_the_words_of_the_code(cls, inputs, source: str) -> None:
    assert fix(cls, *inputs) == source


class ThresholdFarAway(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 100)


def test_a_threshold_is_zero_or_a_constant_of_forward() -> None:
    # any threshold between zero and the least positive value would agree at the points tried
    assert fix(ThresholdFarAway, draw(8)) in ("return g * (x > 0)", None)


class IndexOfTheWrongDimension(Function):
    """Right for a square input once its result is transposed, and never for any other."""

    @staticmethod
    def forward(ctx, x):
        m, at = x.max(dim=1)
        ctx.save_for_backward(at)
        ctx.shape = x.shape
        return m

    @staticmethod
    def backward(ctx, g):
        (at,) = ctx.saved_tensors
        out = g.new_zeros(ctx.shape)
        out.scatter_(0, at[None, :], g[None, :])
        return out


def test_a_change_that_is_right_for_a_square_input_alone_is_not_offered() -> None:
    assert fix(IndexOfTheWrongDimension, draw(4, 4)) is None


def test_each_kind_has_a_place() -> None:
    assert {kind.place for kind in KINDS.values()} == {"value", "part", "whole"}
