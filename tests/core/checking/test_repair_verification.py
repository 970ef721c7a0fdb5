"""A fix holds for all inputs and outputs, at sizes of which one alone was doubled; the shortest is offered, once."""

from __future__ import annotations

import ast
from collections import OrderedDict, namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd
from nbautograd.core.checking.directional import borne_out
from nbautograd.core.checking.jacobian.forward_values import gradients_of_forward
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.repair import script
from nbautograd.core.checking.repair.grammar import edits
from nbautograd.core.checking.repair.script import Hints
from nbautograd.core.findings import Fix

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = pytest.mark.slow


def fixes_of(fn, inputs) -> list[Fix]:
    findings = nbautograd.gradcheck(fn, inputs, order=1).findings
    return [f.fix for f in findings if f.fix is not None]


Noisy = Fn.of("Noisy", "x: save(x); return x**3",
    "g: (x,) = saved; "
    "noise = torch.rand_like(x.t().contiguous()) * torch.nn.functional.dropout(x, 0.5); "
    "return g * 3 * x + 0 * noise")  # fmt: skip


def test_nothing_is_edited_inside_what_draws_random_numbers() -> None:
    read = script.read(Noisy)
    (line,) = [n for n in ast.walk(read.tree) if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "noise"]
    drawn = [inner for call in (line.value.left, line.value.right) for inner in ast.walk(call)]
    assert len(drawn) > 8
    touched = [e for e in edits(read, ["x"], Hints(), {}) if any(n is d for n in e.nodes for d in drawn)]
    assert touched == []


SumAndDifference = Fn.of("SumAndDifference", "x: save(x); return x.exp(), x.sin()",
    "g_exp, g_sin: (x,) = saved; return g_exp * x.exp() + g_sin * x.sin()")  # fmt: skip


def test_each_output_is_verified_by_itself_as_well() -> None:
    (fix,) = fixes_of(SumAndDifference, (draw(4),))
    assert fix.source.strip() == "return g_exp * x.exp() + g_sin * x.cos()"


# Keeps a tensor that it then multiplies by an input; dividing by that input undoes it where it is not zero.
WrittenOver = Fn.of("WrittenOver",
    "x, w: centred = x - x.mean(0); ctx.centred = centred; save(w); return centred.mul_(w)",
    "g: (w,) = saved; gx = g * w; return gx - gx.mean(0), (g * ctx.centred).sum(0)")  # fmt: skip
# The sign is wrong, and at zero there is a NaN, of which differences at a kink say nothing.
NegatedAbs = Fn.of("NegatedAbs", "x: save(x); return x.abs()", "g: (x,) = saved; return -g * x / x.abs()")


@pytest.mark.parametrize(
    ("function", "inputs"),
    [(WrittenOver, (draw(4, 3), draw(3, seed=1))), (NegatedAbs, (draw(3).detach() * torch.tensor([0, 1, 2]),))],
)
def test_no_fix_divides_by_what_may_be_zero(function, inputs) -> None:
    assert fixes_of(function, tuple(x.requires_grad_() for x in inputs)) == []


# A mean over what is not ignored, of at least one; backward takes the mean over all.
IgnoredAtLeastOne = Fn.of("IgnoredAtLeastOne", "x, target: keep = target != -1; save(x, keep); "
    "return (x.square() * keep).sum() / keep.sum().clamp(min=1)",
    "g: x, keep = saved; return g * 2 * x * keep / keep.numel(), None")  # fmt: skip


def test_no_fix_divides_by_a_count_that_may_be_zero() -> None:
    report = nbautograd.gradcheck(IgnoredAtLeastOne, (draw(6), torch.tensor([0, 2, -1, 1, -1, 2])), order=1)
    assert report.verdict == "wrong"
    assert not any(f.fix is not None and "/ keep.sum()" in f.fix.source for f in report.findings)


# A condition on ``beta * x``; backward asks of x alone.
BoundOfAProduct = Fn.of("BoundOfAProduct",
    "x, beta, threshold: save(x); ctx.beta, ctx.threshold = beta, threshold; bx = beta * x; "
    "return torch.where(bx > threshold, x, torch.log1p(torch.exp(bx)) / beta)",
    "g: (x,) = saved; big = x > ctx.threshold; "
    "return torch.where(big, g, g * torch.sigmoid(ctx.beta * x)), None, None")  # fmt: skip


def test_a_condition_is_right_between_bounds_made_of_arguments() -> None:
    """Here ``x - threshold > threshold`` is the same as ``beta * x > threshold``; with another beta it is not."""
    x = 2 * torch.randn(12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (fix,) = fixes_of(BoundOfAProduct, (x.requires_grad_(), 0.5, 1.0))
    assert fix.source.strip() in ("big = x * ctx.beta > ctx.threshold", "big = ctx.beta * x > ctx.threshold")


# A gradient with respect to a symmetric matrix, of which forward reads one triangle.
HalfForgotten = Fn.of("HalfForgotten",
    "a: lower = torch.linalg.cholesky(a); save(lower); return lower.diagonal().log().sum()",
    "g: (lower,) = saved; return g * torch.cholesky_inverse(lower)")  # fmt: skip


def test_what_reads_one_triangle_is_mended_as_a_function_of_symmetric_matrices() -> None:
    root = draw(4, 4).detach()
    (fix,) = fixes_of(HalfForgotten, ((root @ root.T + torch.eye(4)).requires_grad_(),))
    assert fix.source.strip() in (
        "return g * torch.cholesky_inverse(lower) * 0.5",
        "return g * torch.cholesky_inverse(lower) / 2",
    )


# As many rows in one as in the other: where that is not so, what is right here is wrong as well.
PairsOfRows = Fn.of("PairsOfRows",
    "a, b, tau: near = a @ b.T; p = (near / tau).log_softmax(1); save(a, b, tau, near, p); "
    "return -p.diagonal().mean()",
    "g: a, b, tau, near, p = saved; d = g * (p.exp() - torch.eye(len(a), dtype=a.dtype)) / len(a); "
    "return d @ b / tau, d.T @ a / tau, -(d * near).sum() / tau")  # fmt: skip


def test_where_what_is_right_here_is_wrong_no_fix_is_refuted() -> None:
    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    (fix,) = fixes_of(PairsOfRows, (draw(5, 3), draw(5, 3, seed=1), tau))
    assert fix.source.strip() in (
        "return d @ b / tau, d.T @ a / tau, -(d * near).sum() / tau / tau",
        "return d @ b / tau, d.T @ a / tau, -(d * near).sum() / tau ** 2",
        # the rows of d sum to zero, so that the sums which p lacks beside near / tau do not matter
        "return d @ b / tau, d.T @ a / tau, -(d * p).sum() / tau",
    )


# Bounds that are differentiated as well: a lower one above the upper is no case that anybody writes for.
LowerAgainstUpper = Fn.of("LowerAgainstUpper",
    "x, lo, hi: save(x, lo, hi); return torch.minimum(torch.maximum(x, lo), hi)",
    "g: x, lo, hi = saved; return g * ((x >= lo) & (x <= hi)), g * (x < hi), g * (x > hi)")  # fmt: skip


def test_a_mask_and_labels_are_all_alike_at_some_points() -> None:
    def chosen(x, mask, target, ignored, turned):
        return x * mask * (target != ignored) * turned.abs()

    mask, target, turned = torch.tensor([True, False, True]), torch.tensor([0, 2, -1]), torch.tensor([1j, 2, 3])
    problem = Problem(chosen, (draw(3), mask, target, -7, turned))
    found = [at.inputs for at in points(problem).of("one value")]
    assert [i[1].tolist() for i in found[:2]] == [[False] * 3, [True] * 3]
    assert [i[2].tolist() for i in found[2:]] == [[-1] * 3, [2] * 3, [-7] * 3]


def test_bounds_stay_in_their_order() -> None:
    x = torch.linspace(-2, 2, 12, dtype=torch.float64).requires_grad_()
    lo, hi = (torch.full((12,), v, dtype=torch.float64).requires_grad_() for v in (-0.5, 0.6))
    problem = Problem(LowerAgainstUpper, (x, lo, hi))
    for _, low, high in (at.inputs for at in points(problem).of("unseen")):
        assert (low <= high).all()
    (fix,) = fixes_of(LowerAgainstUpper, (x, lo, hi))
    assert fix.source.strip() == "return g * ((x >= lo) & (x <= hi)), g * (x < lo), g * (x > hi)"


# Half of the gradient is not seen by autograd of the forward.
Detached = Fn.of("Detached", "x: save(x); return x**2 + x.detach() ** 2", "g: return 2 * g * ctx.saved_tensors[0]")


def test_autograd_of_forward_counts_only_where_a_difference_bears_it_out() -> None:
    problem = Problem(Detached, (draw(5),))
    with problem.session():
        outputs = problem.call()
        v = [torch.ones(5, dtype=torch.float64)]
        found = gradients_of_forward(problem, outputs, v)
        assert found is not None
        assert borne_out(problem, outputs, v, found, 0) == {}
        right = [2 * found[0]]
        assert borne_out(problem, outputs, v, right, 0)[0].agrees(right[0])
        kinked = Problem(torch.abs, (torch.tensor([0.0, 1.0], dtype=torch.float64, requires_grad=True),))
        outputs = kinked.call()
        assert borne_out(kinked, outputs, [v[0][:2]], kinked.vjp(outputs, [v[0][:2]]), 0) == {}
    (fix,) = fixes_of(Detached, (draw(5),))
    assert fix.source.strip() == "return 4 * g * ctx.saved_tensors[0]"


HEADS, THREE = 4, 3
SCALES, setting = [torch.tensor(0.7)], SimpleNamespace(k=0.7, alpha=0.25, half=0.5, one=1.0)
SHAPE = namedtuple("SHAPE", "rows scale")(3, 0.7)
rows = torch.ones(3, 3)  # a variable of the notebook, called as an argument of forward is


class Slim(dict):
    __slots__ = ("held",)
    __getattr__ = dict.__getitem__


ORDERED, SLIM, ROOT, SINGLE = OrderedDict(k=0.7), [Slim(k=0.7)], 1 / np.sqrt(64), np.float32(0.5)
SLIM[0].held = 0.7


def scale():
    return 1 / setting.k


def scaled(x, by=0.7, *, more=0.7):
    return x * by, x * more


class Scales(Fn):
    scale = 0.7


class Inherits(Scales):
    def forward(ctx, x):
        return x * Inherits.scale

    def backward(ctx, g):
        return g


OUTSIDE = [
    Fn.of("DividedByAGlobal", "rows: return rows.t() / HEADS", "g: return g.t()"),
    Fn.of("TimesAGlobal", "rows: save(rows); return rows * THREE", "g: return g"),
    Fn.of("TimesASetting", "x: return x * setting.k", "g: return g"),
    Fn.of("TimesWhatASettingLeaves", "x: return x * (1 - setting.k)", "g: return g"),
    Fn.of("TimesAnItem", "x: return x * SCALES[0]", "g: return g"),
    Fn.of("TimesAHelper", "x: return x * scale()", "g: return g"),
    Fn.of("TimesHalf", "x: save(x); return x * x * setting.half", "g: (x,) = saved; return 2 * g * x"),
    Fn.of("TimesOne", "x: save(x); return 0.5 * x * x * setting.one", "g: (x,) = saved; return 2 * g * x"),
    Fn.of("TimesAField", "x: return x * SHAPE.scale", "g: return g"),
    Inherits,
    Fn.of("TimesAnOrderedItem", "x: return x * ORDERED['k']", "g: return g"),
    Fn.of("TimesAnAttributeThatIsAnItem", "x: return x * SLIM[0].k", "g: return g"),
    Fn.of("TimesASlot", "x: return x * SLIM[0].held", "g: return g"),
    Fn.of("TimesARootByNumpy", "x: return x * ROOT", "g: return g"),
    Fn.of("TimesASingle", "x: return x * SINGLE", "g: return g"),
    Fn.of("TimesADefault", "x: return scaled(x)[0]", "g: return g"),
    Fn.of("TimesANamedDefault", "x: return scaled(x)[1]", "g: return g"),
    Fn.of("AddedByASetting", "x: return torch.sub(x, x, alpha=setting.alpha)", "g: return g"),
]
Untransposed = Fn.of("Untransposed", "rows: return rows.t() / HEADS", "g: return g / HEADS")
OnCtxByNumpy = Fn.of("OnCtxByNumpy", "x: ctx.k = ROOT; return x * ROOT", "g: return g")
OnCtx = Fn.of("OnCtx", "x: ctx.k = setting.k; return x * setting.k", "g: return g")
Gelu = Fn.of("Gelu", "x: save(x); return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))",
    "g: (x,) = saved; p = torch.exp(-x * x / 2) / math.sqrt(math.pi); "
    "return g * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * p)")  # fmt: skip
WrittenOut = Fn.of("WrittenOut", "x: return x * 0.7 * x.shape[0]", "g: return g * len(g)")


@pytest.mark.parametrize(
    ("function", "fix"),
    [
        *((one, []) for one in OUTSIDE),
        (Untransposed, ["return g.t() / HEADS"]),
        (OnCtx, ["return g * ctx.k"]),
        (OnCtxByNumpy, ["return g * ctx.k"]),
        (Gelu, ["p = torch.exp(-x * x / 2) / math.sqrt(math.pi) / 2 ** 0.5"]),
        (WrittenOut, ["return g * len(g) * 0.7"]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_no_fix_holds_for_one_value_of_what_is_read_outside_the_function(function, fix) -> None:
    assert [one.source.strip() for one in fixes_of(function, draw(3, 3))] == fix
    assert (setting, HEADS) == (SimpleNamespace(k=0.7, alpha=0.25, half=0.5, one=1.0), 4)


def test_where_no_copy_of_the_process_can_be_made_no_fix_is_tried_with_other_settings() -> None:
    report = nbautograd.gradcheck(OnCtx, draw(3, 3), order=1, budget=600.0)
    assert report.verdict == "wrong"
    assert [f.fix for f in report.findings if f.fix] == []
