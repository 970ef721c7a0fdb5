"""The line that is said is the one that did it: that wrote the wrong part, changed a tensor or drew a random number."""

from __future__ import annotations

import pytest
import torch
from fn import Fn, source_line
from own_mistakes import draw
from torch.overrides import _get_current_function_mode_stack

import nbautograd
from nbautograd.core.checking import backward_lines
from nbautograd.core.checking.problem import Problem

pytestmark = pytest.mark.usefixtures("without_fixes")


def said(fn, *inputs) -> str:
    """The text of the line that the first finding names."""
    found = nbautograd.gradcheck(fn, inputs, order=1).findings[0]
    return source_line(fn, found.line)


# Two parts of a buffer, the second of them wrong.
Halves = Fn.of("Halves", "x: save(x); return torch.cat([x[:, :2].sin(), x[:, 2:] ** 2], 1)",
    "g: (x,) = saved; dx = torch.empty_like(x); dx[:, 2:] = 3 * g[:, 2:] * x[:, 2:].cos(); "
    "dx[:, :2] = g[:, :2] * x[:, :2].cos(); return dx")  # fmt: skip
HandedOn = Halves.of("HandedOn",
    backward="g: (x,) = saved; dx = torch.empty_like(x); half = 3 * g[:, 2:] * x[:, 2:].cos(); start = 2; "
    "dx[:, start:] = half; dx[:, :2] = g[:, :2] * x[:, :2].cos(); return dx")  # fmt: skip
# A part of a copy is not changed that should be.
Left = Fn.of("Left", "x: save(x); return torch.where(x < 0, 0.1 * x, x)",
    "g: (x,) = saved; dx = g.clone(); dx[x < -0.5] *= 0.1; return dx")  # fmt: skip
# Rows of a buffer are filled in a loop that stops early.
Loop = Fn.of("Loop", "x: return x.sin().detach() * 0 + 2 * x",
    "g: dx = torch.zeros_like(g); for k in range(len(g) - 1): dx[k].add_(2 * g[k]); return dx")  # fmt: skip
# One value is returned for two inputs, and is right for one of them.
Twice = Fn.of("Twice", "x, y: save(x - y); return (x - y) ** 2", "g: (d,) = saved; both = 2 * d * g; return both, both")
InPlace = Fn.of("InPlace", "x: return 2 * x", "g: g.detach(); g.mul_(2); return g")
Popped = Fn.of("Popped", "x: ctx.factors = [2.0, 3.0]; return 6 * x",
    "g: for _ in range(len(ctx.factors)): g = g * ctx.factors.pop(); return g")  # fmt: skip


def scaled(t):
    """A helper beside the classes, which changes what it is given."""
    return t.mul_(3)


InHelper = Fn.of("InHelper", "x: return 3 * x", "g: two = g + g; out = scaled(g); return two * 0 + out")
# A random number that torch has not drawn.
ByNumpy = Fn.of("ByNumpy", "x: return 1 * x", "g: twice = 2 * g; noise = np.random.rand(); return twice * noise")


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


# What is added at indices that occur twice is right; where it is added is not.
Indexed = Fn.of("Indexed", "weight, tokens: save(tokens); ctx.rows = len(weight); return 2 * weight[tokens]",
    "g: (tokens,) = saved; rows = 2 * g; dw = g.new_zeros(ctx.rows, g.shape[1]); dw[tokens] += rows; "
    "return dw, None")  # fmt: skip
OwnGenerator = Fn.of("OwnGenerator", "x, seed: ctx.gen = torch.Generator().manual_seed(seed); "
    "return x * torch.randn(x.shape, dtype=x.dtype, generator=ctx.gen)",
    "g: scale = 1.0; noise = torch.randn(g.shape, dtype=g.dtype, generator=ctx.gen); "
    "return scale * g * noise, None")  # fmt: skip


@pytest.mark.parametrize(
    ("fn", "inputs", "line"),
    [
        (Chunks, (draw(5, 2), draw(5, 2, seed=1)), "dx[rows] = g[rows] * y[rows]"),
        (Indexed, (draw(5, 2), torch.tensor([1, 3, 1])), "dw[tokens] += rows"),
        (OwnGenerator, (draw(4), 0), "noise = torch.randn(g.shape, dtype=g.dtype, generator=ctx.gen)"),
        (Halves, (draw(3, 4),), "dx[:, 2:] = 3 * g[:, 2:] * x[:, 2:].cos()"),
        (HandedOn, (draw(3, 4),), "half = 3 * g[:, 2:] * x[:, 2:].cos()"),
        (Left, (torch.linspace(-1, 1, 8, dtype=torch.float64).requires_grad_(),), "dx[x < -0.5] *= 0.1"),
        (Loop, (draw(4, 2),), "dx[k].add_(2 * g[k])"),
        (Twice, (draw(3), draw(3, seed=1)), "return both, both"),
        (InPlace, (draw(3),), "g.mul_(2)"),
        (Popped, (draw(3),), "g = g * ctx.factors.pop()"),
        (InHelper, (draw(3),), "out = scaled(g)"),
        (ByNumpy, (draw(3),), "noise = np.random.rand()"),
    ],
)
def test_the_line_did_it(fn, inputs, line: str) -> None:
    assert said(fn, *inputs) == line


def test_no_mode_is_left_behind_where_backward_raises() -> None:
    Raises = Fn.of("Raises", "x: return 2 * x", "g: return g.view(-5)")
    problem = Problem(Raises, (draw(3),))
    with problem.session():
        problem.call()
        before = len(_get_current_function_mode_stack())
        seen = backward_lines.moments(problem, lambda now: now.line)
        assert len(_get_current_function_mode_stack()) == before
    assert len({one.line for one in seen}) == 2  # before the first line, and the one that raises


def test_what_is_no_function_has_no_lines() -> None:
    problem = Problem(torch.exp, (draw(3),))
    with problem.session():
        assert backward_lines.moments(problem, lambda now: now.line) == []
