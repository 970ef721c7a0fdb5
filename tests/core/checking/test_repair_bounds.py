"""No call of an edited backward recurses without end, starts threads, fills the memory or runs for ever."""

from __future__ import annotations

import ast
import functools
import inspect
import math
import textwrap
import threading
import types

import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.autograd import Function

import nbautograd
from nbautograd.core.checking.backward_call import backward_replaced, cotangents, own_node, pull
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.repair import bounds, script
from nbautograd.core.checking.repair.bounds import BoundsError, Loops, Usage, UsageMeter


class Root(Fn):
    """The root of f(x) = y by halving, differentiated implicitly; the sign of the slope of ``p`` is wrong."""

    def forward(ctx, f, y, p):
        low, high = torch.full_like(y, -5.0), torch.full_like(y, 5.0)
        for _ in range(60):
            middle = (low + high) / 2
            below = f(middle, p) < y
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        ctx.f = f
        ctx.save_for_backward(low, p)
        return low

    def backward(ctx, grad_x):
        x, p = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.f(x, p)
        (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
        grad_y = grad_x / slope
        (grad_p,) = torch.autograd.grad(y, p, grad_y)
        return None, grad_y, grad_p


def cubic(x, p):
    return x**3 + p * x


@pytest.mark.slow
def test_an_implicit_differentiation_is_mended_within_its_bounds() -> None:
    report = nbautograd.gradcheck(Root, (cubic, draw(4), draw(4, seed=1, low=0.5, high=1.5)), order=1)
    assert report.verdict == "wrong"
    fix = report.findings[0].fix
    assert fix.source.strip() in (
        "return None, grad_y, -grad_p",
        "(grad_p,) = torch.autograd.grad(y, p, -grad_y)",
        "(grad_p,) = torch.autograd.grad(y, p, (-grad_y))",
    )


def test_a_backward_may_be_nested_as_deep_as_the_original_and_no_deeper() -> None:
    problem = Problem(Root, (cubic, draw(4), draw(4, seed=1, low=0.5, high=1.5)))
    read, called = script.read(Root), []
    edited = read.compiled(read.text.replace("x.detach()", "x"))  # the graph of y now leads to this very node

    def run(backward, meter: UsageMeter) -> None:
        outputs = problem.call()
        with backward_replaced(own_node(problem, outputs), meter.around(backward)):
            pull(problem, outputs, cotangents(problem, outputs, 0), anew=False)

    def counted(ctx, *grads):
        called.append(grads)
        return edited(ctx, *grads)

    original = UsageMeter()
    run(Root.backward, original)
    limit = original.usage.allowance()
    assert limit.depth == 2  # itself, and the derivative of f that it asks for
    with pytest.raises(BoundsError, match="inside one another"):
        run(counted, UsageMeter(limit))
    assert len(called) == 1


def test_what_would_not_fit_is_refused_before_it_is_made() -> None:
    x = torch.ones(200_000)
    limit = Usage(1, 100, bounds.ELEMENTS)

    def squared(ctx, g):
        return g[:, None] * g  # 160 GB

    with pytest.raises(BoundsError, match="elements"):
        UsageMeter(limit).around(squared)(None, x)
    assert UsageMeter(limit).around(lambda ctx, g: (g * 2)[g > 0])(None, x).numel() == len(x)
    for grow in (
        lambda ctx, g: torch.eye(len(g)),
        lambda ctx, g: torch.zeros(len(g), len(g)),
        lambda ctx, g: g.outer(g),
    ):
        with pytest.raises(BoundsError, match="elements"):
            UsageMeter(limit).around(grow)(None, x)


def endless(x):
    while bool((x.abs() > 1e-3).any()):
        x = x / 2
    return x


def looping(x):
    return sum(x for _ in range(x.numel()))


def halved(x):
    return half(x)


def half(x):
    return half(x) / 2 if x.numel() > 10**9 else x / 2


class Opaque:
    def __call__(self, x):
        return x


FACTOR = 2.0


def of_globals(ctx, g):
    return torch.sin(g) * FACTOR * math.pi


def of_endless(ctx, g):
    return endless(g)


def of_looping(ctx, g):
    return looping(g)


def of_looping_inside(ctx, g):
    return loops_inside(g)


def loops_inside(x):
    return looping(x)


def of_recursion(ctx, g):
    return halved(g)


def of_lists(ctx, g):
    return g * len([0] * g.numel())


def of_apply(ctx, g):
    return Root.apply(cubic, g, g)


def of_class(ctx, g):
    return g * Unbounded.factor


class Unbounded(Function):
    factor = 2.0


def of_opaque(ctx, g):
    return OPAQUE(g)


OPAQUE = Opaque()


@pytest.mark.parametrize(
    ("function", "may"),
    [
        (of_globals, True), (of_class, True), (of_endless, False), (of_looping, True), (of_recursion, False),
        (of_looping_inside, False), (of_lists, False), (of_apply, False), (of_opaque, False),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_not_tried(function, may: bool) -> None:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    assert bounds.countable(tree, function) is may


def test_loops_of_what_backward_calls_by_name_are_counted() -> None:
    steps = Loops(10)
    again = types.FunctionType(of_looping.__code__, bounds.counted(of_looping, steps), "of_looping")
    assert again(None, torch.ones(4)).sum() == 16
    with pytest.raises(BoundsError, match="steps"):
        again(None, torch.ones(9))
    assert of_looping(None, torch.ones(9)).sum() == 81


@pytest.mark.parametrize(
    ("value", "may"),
    [
        (cubic, True), (lambda x, p: x * p, True), (functools.partial(cubic, p=2.0), True), (torch.sin, True),
        (torch.nn.Linear(2, 2), True), ({"a": [1, torch.ones(2)]}, True), (endless, False), (Opaque(), False),
        ([endless], False), (functools.partial(endless), False), (open, False), (torch.save, False), (threading, False),
    ],
)  # fmt: skip
def test_what_backward_may_reach(value: object, may: bool) -> None:
    assert bounds.reachable(value) is may


CallsWhatIsOnCtx = Fn.of("CallsWhatIsOnCtx", "f, x: ctx.f = f; return 2 * x", "g: return None, 3 * ctx.f(g)")


def same(x):
    return x


@pytest.mark.parametrize(
    ("text", "computed"),
    [("g[:, 0]", False), ("g[1:].flip(0)", False), ("g[i]", True), ("g[i + 1:]", True), ("g.gather(0, i)", True)],
)
def test_computed_places_are_seen(text: str, computed: bool) -> None:
    assert bounds.indexes(ast.parse(text)) is computed


@pytest.mark.parametrize(("f", "mended"), [(same, True), (Opaque(), False)])
def test_a_function_on_ctx_decides_as_well(f, mended: bool) -> None:
    finding = nbautograd.gradcheck(CallsWhatIsOnCtx, (f, draw(4)), order=1).findings[0]
    assert (finding.fix is not None) is mended
