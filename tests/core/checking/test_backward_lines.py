"""The line that is said is the one that did it: that wrote the wrong part, changed a tensor or drew a random number."""

from __future__ import annotations

import inspect
import linecache
import sys

import numpy as np
import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.overrides import _get_current_function_mode_stack

import nbautograd
from nbautograd.core.checking import backward_lines
from nbautograd.core.checking.problem import Problem

pytestmark = pytest.mark.usefixtures("without_fixes")


def said(fn, *inputs) -> str:
    """The text of the line that the first finding names."""
    found = nbautograd.gradcheck(fn, inputs, order=1).findings[0]
    lines = inspect.getsource(sys.modules[__name__]).split("\n")
    return lines[found.line - 1].strip()


class Halves(Fn):
    """Two parts of a buffer, the second of them wrong."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.cat([x[:, :2].sin(), x[:, 2:] ** 2], 1)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        dx[:, 2:] = 3 * g[:, 2:] * x[:, 2:].cos()
        dx[:, :2] = g[:, :2] * x[:, :2].cos()
        return dx


class HandedOn(Halves):
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        half = 3 * g[:, 2:] * x[:, 2:].cos()
        start = 2
        dx[:, start:] = half
        dx[:, :2] = g[:, :2] * x[:, :2].cos()
        return dx


class Left(Fn):
    """A part of a copy is not changed that should be."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x < 0, 0.1 * x, x)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = g.clone()
        dx[x < -0.5] *= 0.1
        return dx


class Base(Fn):
    """The formula is wrong, and a part of its value is mended afterwards."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = 2 * g * x.cos()
        dx[0] = 3 * g[0] * x[0] ** 2
        return dx


class Loop(Fn):
    """Rows of a buffer are filled in a loop that stops early."""

    def forward(ctx, x):
        return x.sin().detach() * 0 + 2 * x

    def backward(ctx, g):
        dx = torch.zeros_like(g)
        for k in range(len(g) - 1):
            dx[k].add_(2 * g[k])
        return dx


class Twice(Fn):
    """One value is returned for two inputs, and is right for one of them."""

    def forward(ctx, x, y):
        ctx.save_for_backward(x - y)
        return (x - y) ** 2

    def backward(ctx, g):
        (d,) = ctx.saved_tensors
        both = 2 * d * g
        return both, both


class InPlace(Fn):
    def forward(ctx, x):
        return 2 * x

    def backward(ctx, g):
        g.detach()
        g.mul_(2)
        return g


class Random(Fn):
    def forward(ctx, x):
        return x * (torch.rand(x.shape) > 0.5)

    def backward(ctx, g):
        kept = torch.rand(g.shape)
        return g * (kept > 0.5)


class Popped(Fn):
    def forward(ctx, x):
        ctx.factors = [2.0, 3.0]
        return 6 * x

    def backward(ctx, g):
        for _ in range(len(ctx.factors)):
            g = g * ctx.factors.pop()
        return g


class Overlapping(Fn):
    """Two overlapping parts are added to a buffer, the first of them wrongly."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x[:-1] ** 3 + x[1:]

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        dx = torch.zeros_like(x)
        dx[:-1] += 2 * g * x[:-1].cos()
        dx[1:] += g
        return dx


class Chunks(Fn):
    """A loop over chunks leaves out the last, incomplete one; both buffers are made in one statement."""

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        dx, dy = torch.zeros_like(x), torch.zeros_like(y)
        for start in range(0, len(x) - 1, 2):
            rows = slice(start, start + 2)
            dx[rows] = g[rows] * y[rows]
            dy[rows] = g[rows] * x[rows]
        return dx, dy


class Indexed(Fn):
    """What is added at indices that occur twice is right; where it is added is not."""

    def forward(ctx, weight, tokens):
        ctx.save_for_backward(tokens)
        ctx.rows = len(weight)
        return 2 * weight[tokens]

    def backward(ctx, g):
        (tokens,) = ctx.saved_tensors
        rows = 2 * g
        dw = g.new_zeros(ctx.rows, g.shape[1])
        dw[tokens] += rows
        return dw, None


class OwnGenerator(Fn):
    def forward(ctx, x, seed):
        ctx.gen = torch.Generator().manual_seed(seed)
        return x * torch.randn(x.shape, dtype=x.dtype, generator=ctx.gen)

    def backward(ctx, g):
        scale = 1.0
        noise = torch.randn(g.shape, dtype=g.dtype, generator=ctx.gen)
        return scale * g * noise, None


@pytest.mark.parametrize(
    ("fn", "inputs", "line"),
    [
        (Overlapping, (draw(6),), "dx[:-1] += 2 * g * x[:-1].cos()"),
        (Chunks, (draw(5, 2), draw(5, 2, seed=1)), "dx[rows] = g[rows] * y[rows]"),
        (Indexed, (draw(5, 2), torch.tensor([1, 3, 1])), "dw[tokens] += rows"),
        (OwnGenerator, (draw(4), 0), "noise = torch.randn(g.shape, dtype=g.dtype, generator=ctx.gen)"),
        (Halves, (draw(3, 4),), "dx[:, 2:] = 3 * g[:, 2:] * x[:, 2:].cos()"),
        (HandedOn, (draw(3, 4),), "half = 3 * g[:, 2:] * x[:, 2:].cos()"),
        (Left, (torch.linspace(-1, 1, 8, dtype=torch.float64).requires_grad_(),), "dx[x < -0.5] *= 0.1"),
        (Base, (draw(4),), "dx = 2 * g * x.cos()"),
        (Loop, (draw(4, 2),), "dx[k].add_(2 * g[k])"),
        (Twice, (draw(3), draw(3, seed=1)), "return both, both"),
        (InPlace, (draw(3),), "g.mul_(2)"),
        (Random, (draw(40),), "kept = torch.rand(g.shape)"),
        (Popped, (draw(3),), "g = g * ctx.factors.pop()"),
    ],
)
def test_the_line_did_it(fn, inputs, line: str) -> None:
    assert said(fn, *inputs) == line


def scaled(t):
    """A helper beside the classes, which changes what it is given."""
    return t.mul_(3)


class InHelper(Fn):
    def forward(ctx, x):
        return 3 * x

    def backward(ctx, g):
        two = g + g
        out = scaled(g)
        return two * 0 + out


class InComprehension(Fn):
    def forward(ctx, x):
        return 3 * x

    def backward(ctx, g):
        two = g + g
        rows = [row.mul_(3) for row in g]
        return two * 0 + torch.stack(rows)


class InALoop(Fn):
    """The second turn of a loop changes what ctx holds, between two calls of torch."""

    def forward(ctx, x):
        ctx.turns = 0.0
        return 2 * x

    def backward(ctx, g):
        out = g * 0
        for _ in range(2):
            out = out + g
            ctx.turns += 1.0
        return out * (2 / ctx.turns)


class ByNumpy(Fn):
    """A random number that torch has not drawn."""

    def forward(ctx, x):
        return 1 * x

    def backward(ctx, g):
        twice = 2 * g
        noise = np.random.rand()
        return twice * noise


class Ends(Fn):
    """No call of torch, and two lines in which it may end."""

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return 2 * x, 3 * x

    def backward(ctx, a, b):
        if b is None:
            return None
        return 2 * a + 3 * b


def following(frame, event, arg):
    """Trace as a debugger does."""
    return following


@pytest.mark.parametrize("tracer", [None, following], ids=["alone", "under a debugger"])
@pytest.mark.parametrize(
    ("fn", "look", "line"),
    [
        (InHelper, backward_lines.versions, "out = scaled(g)"),
        (InComprehension, backward_lines.versions, "rows = [row.mul_(3) for row in g]"),
        (InALoop, backward_lines.held, "ctx.turns += 1.0"),
        (ByNumpy, backward_lines.generators, "noise = np.random.rand()"),
        (Random, backward_lines.generators, "kept = torch.rand(g.shape)"),
    ],
)
def test_the_line_is_found_whoever_traces(fn, look, line: str, tracer) -> None:
    problem, before = Problem(fn, (draw(3),)), sys.gettrace()
    with problem.session():
        problem.call()
        sys.settrace(tracer)
        try:
            found = backward_lines.line_of_change(problem, look)
            assert sys.gettrace() is tracer
        finally:
            sys.settrace(before)
    assert linecache.getline(__file__, found).strip() == line


def test_the_line_of_a_backward_that_calls_no_torch_is_where_it_ended() -> None:
    problem = Problem(Ends, (draw(3),))
    with problem.session():
        problem.call()
        assert linecache.getline(__file__, backward_lines.last_line(problem, 0)).strip() == "return None"


def test_no_mode_is_left_behind_where_backward_raises() -> None:
    class Raises(Fn):
        def forward(ctx, x):
            return 2 * x

        def backward(ctx, g):
            return g.view(-5)

    problem = Problem(Raises, (draw(3),))
    with problem.session():
        problem.call()
        before = len(_get_current_function_mode_stack())
        seen = backward_lines.moments(problem, lambda now: now.line)
        assert len(_get_current_function_mode_stack()) == before
    assert len({one.line for one in seen}) == 2  # before the first line, and the one that raises
