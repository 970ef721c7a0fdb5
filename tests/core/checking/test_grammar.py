"""The grammar of edits: each kind is registered once, and kinds that others do not replace find their fix."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from functions_checked import AttentionWrong, MaskedMeanWrong
from own_mistakes import draw

import nbautograd
from nbautograd.core.checking.repair.grammar import KINDS

EDGES = torch.tensor([0, 1, 3]), torch.tensor([1, 2, 1])
UPPER = torch.tensor([[1.0, 1, 0, 1], [1, 0, 1, 1]], dtype=torch.float64)


def fix(cls, *inputs) -> str | None:
    report = nbautograd.gradcheck(cls.apply, inputs, order=1)
    assert report.verdict == "wrong"
    found = [f.fix for f in report.findings if f.fix is not None]
    return found[0].source.strip() if found else None


class FullForLower(Fn):
    def forward(ctx, lower, b):
        x = torch.linalg.solve_triangular(lower, b, upper=False)
        ctx.save_for_backward(lower, x)
        return x

    def backward(ctx, g):
        lower, x = ctx.saved_tensors
        gb = torch.linalg.solve_triangular(lower.T, g, upper=True)
        gl = -gb @ x.T
        return gl, gb


class OneBoundOnly(Fn):
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x < ctx.high), None, None


class SlopeWrittenOut(Fn):
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, g, 0.01 * g), None


class LastStepOnly(Fn):
    def forward(ctx, xs, w):
        hs = [torch.zeros_like(xs[0])]
        for x in xs:
            hs.append(torch.tanh(x + hs[-1] @ w))
        ctx.save_for_backward(w, *hs)
        return torch.stack(hs[1:])

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


class SumOverEverything(Fn):
    def forward(ctx, x):
        n = x.norm(dim=1, keepdim=True)
        y = x / n
        ctx.save_for_backward(y, n)
        return y

    def backward(ctx, g):
        y, n = ctx.saved_tensors
        return (g - y * (g * y).sum()) / n


class HalvesExchanged(Fn):
    def forward(ctx, x):
        a, b = x.chunk(2, -1)
        ctx.save_for_backward(a, b)
        return a * b.sin()

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.cat([g * a * b.cos(), g * b.sin()], -1)


class SoftmaxTermLost(Fn):
    def forward(ctx, h):
        p = h.softmax(1)
        grid = torch.arange(h.shape[1], dtype=h.dtype)
        ctx.save_for_backward(p, grid)
        return p @ grid

    def backward(ctx, g):
        p, grid = ctx.saved_tensors
        return g[:, None] * p * grid


class PowerRule(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + 0.7 * x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (1 + 0.7 * x**2)


class RowsAgainstColumns(Fn):
    def forward(ctx, x):
        y = x.logsumexp(1)
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g[:, None] * torch.exp(x - y)


class WrittenOver(Fn):
    """What overlapping windows give to the same element is written over."""

    def forward(ctx, x):
        windows = x.unfold(1, 3, 1)
        best, at = windows.max(2)
        ctx.save_for_backward(at + torch.arange(windows.shape[1]))
        ctx.shape = x.shape
        return best

    def backward(ctx, g):
        (at,) = ctx.saved_tensors
        gx = g.new_zeros(ctx.shape)
        gx.scatter_(1, at, g)
        return gx


class EdgesAgainstTheirDirection(Fn):
    def forward(ctx, x, weight, source, target):
        ctx.save_for_backward(weight, source, target)
        return torch.zeros_like(x).index_add_(0, target, weight[:, None] * x[source])

    def backward(ctx, g):
        weight, source, target = ctx.saved_tensors
        gx = torch.zeros_like(g)
        gx.index_add_(0, target, weight[:, None] * g[source])
        return gx, None, None, None


class SmoothingForgotten(Fn):
    """What is saved, and never used, is what is missing."""

    def forward(ctx, p, t):
        over = 2 * (p * t).sum(1) + 1.5
        under = p.sum(1) + t.sum(1) + 1.5
        ctx.save_for_backward(p, t, over, under)
        return over / under

    def backward(ctx, g):
        p, t, over, under = ctx.saved_tensors  # noqa: RUF059
        both = (p * t).sum(1)
        share = (2 * both / under**2)[:, None]
        return g[:, None] * (2 * t / under[:, None] - share), None


class OwnShareCounted(Fn):
    """What comes after each element, and what it gives itself."""

    def forward(ctx, x):
        before = x.cumsum(0) - x
        ctx.save_for_backward(x, before)
        return x * before

    def backward(ctx, g):
        x, before = ctx.saved_tensors
        gx = g * x
        after = gx.flip(0).cumsum(0).flip(0)
        return g * before + after


class NotSymmetric(Fn):
    def forward(ctx, d, m):
        ctx.save_for_backward(d, m)
        return (d @ m * d).sum(1)

    def backward(ctx, g):
        d, m = ctx.saved_tensors
        return g[:, None] * (d @ m), d.T @ (g[:, None] * d)


class GatheredBack(Fn):
    def forward(ctx, x):
        y, order = x.sort(-1)
        ctx.save_for_backward(order)
        return y

    def backward(ctx, g):
        (order,) = ctx.saved_tensors
        return g.gather(-1, order)


class SmallNumberForgotten(Fn):
    def forward(ctx, x, eps):
        scale = (x.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.eps = eps
        ctx.save_for_backward(x)
        return x * scale

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        scale = x.square().mean(-1, keepdim=True).rsqrt()
        return scale * g - x * scale**3 * (g * x).mean(-1, keepdim=True), None


class MeanOverEverything(Fn):
    def forward(ctx, z):
        there = z > z.mean(-1, keepdim=True)
        ctx.save_for_backward(there)
        return (z - (z * there).sum(-1, keepdim=True) / there.sum(-1, keepdim=True)) * there

    def backward(ctx, g):
        (there,) = ctx.saved_tensors
        gs = g * there
        return gs - there * gs.sum(-1, keepdim=True) / there.shape[-1]


class CountedOnce(Fn):
    def forward(ctx, table, at):
        ctx.save_for_backward(at)
        ctx.shape = table.shape
        return table[at]

    def backward(ctx, g):
        (at,) = ctx.saved_tensors
        gt = g.new_zeros(ctx.shape)
        gt[at] += g
        return gt, None


class ProductRule(Fn):
    def forward(ctx, r):
        e, s = torch.exp(-r), torch.sin(r)
        ctx.save_for_backward(r, e, s)
        return e * s

    def backward(ctx, g):
        r, e, s = ctx.saved_tensors  # noqa: RUF059
        ds = torch.cos(r)  # noqa: F841
        return g * (-torch.exp(-r) * s)


def slope(x, y, c):
    nx, ny = x.norm(dim=1, keepdim=True), y.norm(dim=1, keepdim=True)
    return y / (nx * ny) - c[:, None] * x / nx


class CosineOfRows(Fn):
    """The mistake stands in a function that backward calls twice, in single precision."""

    def forward(ctx, x, y):
        c = (x * y).sum(1) / (x.norm(dim=1) * y.norm(dim=1))
        ctx.save_for_backward(x, y, c)
        return c

    def backward(ctx, g):
        x, y, c = ctx.saved_tensors
        return g[:, None] * slope(x, y, c), g[:, None] * slope(y, x, c)


class SoftmaxOfEdges(Fn):
    def forward(ctx, e, at, nodes):
        p = e.exp()
        p = p / p.new_zeros(nodes).index_add(0, at, p)[at]
        ctx.save_for_backward(p, at)
        ctx.nodes = nodes
        return p

    def backward(ctx, g):
        p, at = ctx.saved_tensors  # noqa: RUF059
        gp = g * p
        return gp - p * gp.sum(), None, None


class AxesExchanged(Fn):
    def forward(ctx, x):
        return x.view(2, 2, 3, 5).permute(0, 3, 1, 2).reshape(2, 30)

    def backward(ctx, g):
        return g.view(2, 5, 2, 3).permute(0, 2, 1, 3).reshape(2, 30)


class WholeDiagonal(Fn):
    """The gradient of a Cholesky factor, its diagonal counted twice."""

    def forward(ctx, a):
        lower = torch.linalg.cholesky(a)
        ctx.save_for_backward(lower)
        return lower

    def backward(ctx, g):
        (lower,) = ctx.saved_tensors
        inverse = torch.linalg.inv(lower)
        phi = (lower.mT @ g).tril()
        s = inverse.mT @ phi @ inverse
        return (s + s.mT) / 2


def single(*shape: int, seed: int = 0) -> torch.Tensor:
    return draw(*shape, seed=seed).float().detach().requires_grad_()


POSITIVE = draw(4, 4).detach() @ draw(4, 4).detach().T + torch.eye(4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "inputs", "source"),
    [
        (AttentionWrong, (draw(4, 3), draw(4, 3, seed=1), draw(4, 2, seed=2)),
         "ds = p * (dp - (dp * p).sum(-1, keepdim=True))"),
        (FullForLower, ((2 * torch.eye(3) + draw(3, 3).detach()).requires_grad_(), draw(3, 2, seed=1)),
         "gl = (-gb @ x.T).tril()"),
        (OneBoundOnly, (draw(4, 5), -0.5, 0.8), "return g * (x < ctx.high) * (x > ctx.low), None, None"),
        (SlopeWrittenOut, (draw(3, 5), 0.2), "return torch.where(x > 0, g, ctx.slope * g), None"),
        (LastStepOnly, (draw(3, 2, 3), draw(3, 3, seed=1)), "gw = gw + hs[t].T @ ga"),
        (SumOverEverything, (draw(3, 4),), "return (g - y * (g * y).sum(1, keepdim=True)) / n"),
        (HalvesExchanged, (draw(2, 6),), "return torch.cat([g * b.sin(), g * a * b.cos()], -1)"),
        (SoftmaxTermLost, (draw(3, 4),),
         "return g[:, None] * p * grid - p * (g[:, None] * p * grid).sum(1, keepdim=True)"),
        (MaskedMeanWrong, (draw(2, 4), UPPER), "return g * mask / mask.sum(), None"),
        (PowerRule, (draw(6),), "return g * (1 + 3 * 0.7 * x**2)"),
        (RowsAgainstColumns, (draw(4, 4),), "return g[:, None] * torch.exp(x - y[:, None])"),
        (WrittenOver, (draw(2, 6),), "gx.scatter_add_(1, at, g)"),
        (EdgesAgainstTheirDirection, (draw(4, 2), torch.tensor([0.5, 2, 3.0]), *EDGES),
         "gx.index_add_(0, source, weight[:, None] * g[target])"),
        (SmoothingForgotten, (draw(3, 4).abs().detach().requires_grad_(), UPPER[:, :4].repeat(2, 1)[:3]),
         "share = (over / under**2)[:, None]"),
        (OwnShareCounted, (draw(6),), "return g * before + after - gx"),
        (NotSymmetric, (draw(3, 4), draw(4, 4, seed=1)), "return g[:, None] * (d @ (m + m.T)), d.T @ (g[:, None] * d)"),
        (GatheredBack, (draw(3, 5),), "return torch.zeros_like(g).scatter_add(-1, order, g)"),
        (SmallNumberForgotten, (draw(3, 4), 0.3), "scale = (x.square().mean(-1, keepdim=True) + ctx.eps).rsqrt()"),
        (MeanOverEverything, (draw(3, 6),),
         "return gs - there * gs.sum(-1, keepdim=True) / there.sum(-1, keepdim=True)"),
        (CountedOnce, (draw(4), torch.tensor([0, 2, 2, 1])), "gt.index_put_((at,), g, accumulate=True)"),
        (CosineOfRows, (single(3, 4), single(3, 4, seed=1)),
         "return y / (nx * ny) - c[:, None] * x / nx ** 2"),
        (SoftmaxOfEdges, (draw(5), torch.tensor([0, 2, 0, 2, 2]), 3),
         "return gp - p * gp.new_zeros(ctx.nodes).index_add(0, at, gp)[at], None, None"),
        (AxesExchanged, (draw(2, 30),), "return g.view(2, 5, 2, 3).permute(0, 2, 3, 1).reshape(2, 30)"),
        (WholeDiagonal, (POSITIVE.requires_grad_(),), "s = inverse.mT @ ((phi + phi.tril(-1)) / 2) @ inverse"),
        (ProductRule, (draw(6),), "return g * (-torch.exp(-r) * s + e * ds)"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_a_kind_of_edit_finds_the_fix_in_the_words_of_the_code(cls, inputs, source: str) -> None:
    assert fix(cls, *inputs) == source


class ThresholdFarAway(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x > 100)


class Largest(Fn):
    def forward(ctx, x, dim):
        values, indices = x.max(dim)
        ctx.save_for_backward(indices)
        ctx.dim, ctx.shape = dim, x.shape
        return values

    def backward(ctx, g):
        zeros = torch.zeros(ctx.shape, dtype=g.dtype)
        return zeros.scatter(0, ctx.saved_tensors[0].unsqueeze(ctx.dim), g.unsqueeze(ctx.dim)), None


class Halved(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0] ** 2


@pytest.mark.parametrize(
    ("cls", "inputs", "code"),
    [(Largest, (draw(4, 3), 1), "wrong_unclassified"), (Halved, (draw(4),), "constant_factor")],
)
def test_only_a_factor_of_the_gradient_is_called_one(cls, inputs, code: str) -> None:
    found = nbautograd.gradcheck(cls, inputs, order=1).findings[0]
    assert (found.code, found.message_id) == (code, "causes.mended_number")


def test_a_threshold_is_zero_or_a_constant_of_forward() -> None:
    # any threshold between zero and the least positive value would agree at the points tried
    assert fix(ThresholdFarAway, draw(8)) in ("return g * (x > 0)", None)


class IndexOfTheWrongDimension(Fn):
    """Right for a square input once its result is transposed, and never for any other."""

    def forward(ctx, x):
        m, at = x.max(dim=1)
        ctx.save_for_backward(at)
        ctx.shape = x.shape
        return m

    def backward(ctx, g):
        (at,) = ctx.saved_tensors
        out = g.new_zeros(ctx.shape)
        out.scatter_(0, at[None, :], g[None, :])
        return out


def test_a_change_that_is_right_for_a_square_input_alone_is_not_offered() -> None:
    assert fix(IndexOfTheWrongDimension, draw(4, 4)) is None


def test_each_kind_has_a_place() -> None:
    assert {kind.place for kind in KINDS.values()} == {"value", "part", "whole"}


class UnionOfBounds(Fn):
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.low, ctx.high = low, high
        return x.clamp(low, high)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        inside = (x > ctx.low) | (x < ctx.high)
        return g * inside, None, None


class ReadAtTheIndex(Fn):
    def forward(ctx, x, w, order):
        ctx.save_for_backward(w, order)
        return (w * x)[order]

    def backward(ctx, g):
        w, order = ctx.saved_tensors
        return w * (2 * g)[order] / 2, None, None


@pytest.mark.parametrize(
    ("cls", "inputs", "source"),
    [
        (UnionOfBounds, (draw(4, 5), -0.5, 0.8), "inside = (x > ctx.low) & (x < ctx.high)"),
        (ReadAtTheIndex, (draw(5), torch.arange(1.0, 6), torch.tensor([2, 0, 3, 4, 1])),
         "return w * (2 * g)[order.argsort()] / 2, None, None"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_what_an_edit_binds_to_stays_together(cls, inputs, source: str) -> None:
    assert fix(cls, *inputs) == source


class SumsFromTheStart(Fn):
    """Written with functions of torch and a dimension given by its name, as with methods."""

    def forward(ctx, x):
        y = torch.logcumsumexp(x, dim=-1)
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        sums = torch.cumsum(g * torch.exp(-y), dim=-1)
        return torch.exp(x) * sums


class SumsOverRows(Fn):
    def forward(ctx, x, s):
        ctx.save_for_backward(x, s)
        return x * torch.unsqueeze(s, 1)

    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * s[:, None], torch.sum(g * x, dim=0)


class WrongFunction(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.sinh(x)


class FactorsExchanged(Fn):
    def forward(ctx, x):
        eye = torch.eye(len(x), dtype=x.dtype)
        lower = torch.linalg.cholesky(x @ x.mT + eye)
        ctx.save_for_backward(x, torch.linalg.solve_triangular(lower, eye, upper=False))
        return torch.log(torch.diagonal(lower)).sum()

    def backward(ctx, g):
        x, inverse = ctx.saved_tensors
        whole = inverse @ inverse.t()
        return g * (whole @ x)


@pytest.mark.parametrize(
    ("cls", "inputs", "source"),
    [
        (SumsFromTheStart, (draw(3, 5),), "sums = (g * torch.exp(-y)).flip(-1).cumsum(-1).flip(-1)"),
        (SumsOverRows, (draw(4, 4), draw(4)), "return g * s[:, None], torch.sum(g * x, dim=1)"),
        (WrongFunction, (draw(7),), "return g * torch.cos(x)"),
        (FactorsExchanged, (draw(4, 3),), "whole = inverse.t() @ inverse"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_function_of_torch_is_mended_as_the_method_of_its_name(cls, inputs, source: str) -> None:
    assert fix(cls, *inputs) == source
