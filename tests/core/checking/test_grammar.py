"""The grammar of edits: each kind is registered once, and kinds that others do not replace find their fix."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd

EDGES = torch.tensor([0, 1, 3]), torch.tensor([1, 2, 1])
UPPER = torch.tensor([[1.0, 1, 0, 1], [1, 0, 1, 1]], dtype=torch.float64)


def fix(cls, *inputs) -> str | None:
    report = nbautograd.gradcheck(cls.apply, inputs, order=1)
    assert report.verdict == "wrong"
    found = [f.fix for f in report.findings if f.fix is not None]
    return found[0].source.strip() if found else None


OneBoundOnly = Fn.of("OneBoundOnly", "x, low, high: save(x); ctx.low, ctx.high = low, high; return x.clamp(low, high)",
    "g: (x,) = saved; return g * (x < ctx.high), None, None")  # fmt: skip
SlopeWrittenOut = Fn.of("SlopeWrittenOut",
    "x, slope: save(x); ctx.slope = slope; return torch.where(x > 0, x, slope * x)",
    "g: (x,) = saved; return torch.where(x > 0, g, 0.01 * g), None")  # fmt: skip


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


SumOverEverything = Fn.of("SumOverEverything", "x: n = x.norm(dim=1, keepdim=True); y = x / n; save(y, n); return y",
    "g: y, n = saved; return (g - y * (g * y).sum()) / n")  # fmt: skip
SoftmaxTermLost = Fn.of("SoftmaxTermLost",
    "h: p = h.softmax(1); grid = torch.arange(h.shape[1], dtype=h.dtype); save(p, grid); "
    "return p @ grid",
    "g: p, grid = saved; return g[:, None] * p * grid")  # fmt: skip
PowerRule = Fn.of("PowerRule", "x: save(x); return x + 0.7 * x**3", "g: (x,) = saved; return g * (1 + 0.7 * x**2)")
RowsAgainstColumns = Fn.of("RowsAgainstColumns", "x: y = x.logsumexp(1); save(x, y); return y",
    "g: x, y = saved; return g[:, None] * torch.exp(x - y)")  # fmt: skip
# What overlapping windows give to the same element is written over.
WrittenOver = Fn.of("WrittenOver", "x: windows = x.unfold(1, 3, 1); best, at = windows.max(2); "
    "save(at + torch.arange(windows.shape[1])); ctx.shape = x.shape; return best",
    "g: (at,) = saved; gx = g.new_zeros(ctx.shape); gx.scatter_(1, at, g); return gx")  # fmt: skip
EdgesAgainstTheirDirection = Fn.of("EdgesAgainstTheirDirection",
    "x, weight, source, target: save(weight, source, target); "
    "return torch.zeros_like(x).index_add_(0, target, weight[:, None] * x[source])",
    "g: weight, source, target = saved; gx = torch.zeros_like(g); "
    "gx.index_add_(0, target, weight[:, None] * g[source]); return gx, None, None, None")  # fmt: skip
# What is saved, and never used, is what is missing.
SmoothingForgotten = Fn.of("SmoothingForgotten", "p, t: over = 2 * (p * t).sum(1) + 1.5; "
    "under = p.sum(1) + t.sum(1) + 1.5; save(p, t, over, under); return over / under",
    "g: p, t, over, under = saved; both = (p * t).sum(1); share = (2 * both / under**2)[:, None]; "
    "return g[:, None] * (2 * t / under[:, None] - share), None")  # fmt: skip
CountedOnce = Fn.of("CountedOnce", "table, at: save(at); ctx.shape = table.shape; return table[at]",
    "g: (at,) = saved; gt = g.new_zeros(ctx.shape); gt[at] += g; return gt, None")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cls", "inputs", "source"),
    [
        (OneBoundOnly, (draw(4, 5), -0.5, 0.8), "return g * (x < ctx.high) * (x > ctx.low), None, None"),
        (SlopeWrittenOut, (draw(3, 5), 0.2), "return torch.where(x > 0, g, ctx.slope * g), None"),
        (LastStepOnly, (draw(3, 2, 3), draw(3, 3, seed=1)), "gw = gw + hs[t].T @ ga"),
        (SumOverEverything, (draw(3, 4),), "return (g - y * (g * y).sum(1, keepdim=True)) / n"),
        (SoftmaxTermLost, (draw(3, 4),),
         "return g[:, None] * p * grid - p * (g[:, None] * p * grid).sum(1, keepdim=True)"),
        (PowerRule, (draw(6),), "return g * (1 + 3 * 0.7 * x**2)"),
        (RowsAgainstColumns, (draw(4, 4),), "return g[:, None] * torch.exp(x - y[:, None])"),
        (WrittenOver, (draw(2, 6),), "gx.scatter_add_(1, at, g)"),
        (EdgesAgainstTheirDirection, (draw(4, 2), torch.tensor([0.5, 2, 3.0]), *EDGES),
         "gx.index_add_(0, source, weight[:, None] * g[target])"),
        (SmoothingForgotten, (draw(3, 4).abs().detach().requires_grad_(), UPPER[:, :4].repeat(2, 1)[:3]),
         "share = (over / under**2)[:, None]"),
        (CountedOnce, (draw(4), torch.tensor([0, 2, 2, 1])), "gt.index_put_((at,), g, accumulate=True)"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_a_kind_of_edit_finds_the_fix_in_the_words_of_the_code(cls, inputs, source: str) -> None:
    assert fix(cls, *inputs) == source


ThresholdFarAway = Fn.of("ThresholdFarAway", "x: save(x); return x.relu()", "g: (x,) = saved; return g * (x > 100)")
Largest = Fn.of("Largest", "x, dim: values, indices = x.max(dim); save(indices); ctx.dim, ctx.shape = dim, x.shape; "
    "return values",
    "g: zeros = torch.zeros(ctx.shape, dtype=g.dtype); "
    "return zeros.scatter(0, ctx.saved_tensors[0].unsqueeze(ctx.dim), g.unsqueeze(ctx.dim)), None")  # fmt: skip
Halved = Fn.of("Halved", "x: save(x); return x**3", "g: return 2 * g * ctx.saved_tensors[0] ** 2")


@pytest.mark.parametrize(
    ("cls", "inputs", "code"),
    [(Largest, (draw(4, 3), 1), "wrong_unclassified"), (Halved, (draw(4),), "constant_factor")],
)
def test_only_a_factor_of_the_gradient_is_called_one(cls, inputs, code: str) -> None:
    found = nbautograd.gradcheck(cls, inputs, order=1).findings[0]
    assert (found.code, found.message_id) == (code, "causes.mended")


def test_a_threshold_is_zero_or_a_constant_of_forward() -> None:
    # any threshold between zero and the least positive value would agree at the points tried
    assert fix(ThresholdFarAway, draw(8)) in ("return g * (x > 0)", None)


# Right for a square input once its result is transposed, and never for any other.
IndexOfTheWrongDimension = Fn.of("IndexOfTheWrongDimension",
    "x: m, at = x.max(dim=1); save(at); ctx.shape = x.shape; return m",
    "g: (at,) = saved; out = g.new_zeros(ctx.shape); out.scatter_(0, at[None, :], g[None, :]); "
    "return out")  # fmt: skip


def test_a_change_that_is_right_for_a_square_input_alone_is_not_offered() -> None:
    assert fix(IndexOfTheWrongDimension, draw(4, 4)) is None


UnionOfBounds = Fn.of("UnionOfBounds",
    "x, low, high: save(x); ctx.low, ctx.high = low, high; return x.clamp(low, high)",
    "g: (x,) = saved; inside = (x > ctx.low) | (x < ctx.high); return g * inside, None, None")  # fmt: skip
ReadAtTheIndex = Fn.of("ReadAtTheIndex", "x, w, order: save(w, order); return (w * x)[order]",
    "g: w, order = saved; return w * (2 * g)[order] / 2, None, None")  # fmt: skip


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


# Written with functions of torch and a dimension given by its name, as with methods.
SumsFromTheStart = Fn.of("SumsFromTheStart", "x: y = torch.logcumsumexp(x, dim=-1); save(x, y); return y",
    "g: x, y = saved; sums = torch.cumsum(g * torch.exp(-y), dim=-1); return torch.exp(x) * sums")  # fmt: skip
SumsOverRows = Fn.of("SumsOverRows", "x, s: save(x, s); return x * torch.unsqueeze(s, 1)",
    "g: x, s = saved; return g * s[:, None], torch.sum(g * x, dim=0)")  # fmt: skip
WrongFunction = Fn.of("WrongFunction", "x: save(x); return torch.sin(x)", "g: (x,) = saved; return g * torch.sinh(x)")


@pytest.mark.parametrize(
    ("cls", "inputs", "source"),
    [
        (SumsFromTheStart, (draw(3, 5),), "sums = (g * torch.exp(-y)).flip(-1).cumsum(-1).flip(-1)"),
        (SumsOverRows, (draw(4, 4), draw(4)), "return g * s[:, None], torch.sum(g * x, dim=1)"),
        (WrongFunction, (draw(7),), "return g * torch.cos(x)"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_function_of_torch_is_mended_as_the_method_of_its_name(cls, inputs, source: str) -> None:
    assert fix(cls, *inputs) == source
