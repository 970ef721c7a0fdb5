"""Last step: what an iteration that stops by itself leaves undone, in its values and in its gradients.

How often it calls torch depends on the values, and what it calls does not: a branch calls something else. Where one
more step begins, the result jumps by that step. What closes in at a steady rate r is off by at most its last step times
the number of its steps: the rest is the step times r / (1 - r), and n steps from 1 to a tolerance make 1 / (1 - r)
less than n. A gradient that is off by no more proves no mistake.
A formula fitted piece by piece jumps as well; it calls torch as often everywhere, and has no such excuse.

Halvings of an interval are as many everywhere: they climb in stairs, whose slopes say nothing of the whole. There the
change of forward along a way has to be the integral of backward, up to the height of some stairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.directional import inner_product
from nbautograd.core.stumbles import users_errors
from nbautograd.core.trace import Trace, TracedCall

MOST = 0.1  # of the largest entry: a gradient that is off by more is wrong, whatever iterates
WAYS = 2  # random ones through the inputs, and through grad_outputs
# typical elements by which inputs are moved: near first, where a step is as large as here; farther for what takes as
# many steps there, unless forward refuses to go far
DISTANCES = (2.0**-8, -(2.0**-8), 2.0**-4, -(2.0**-4), 1.0, -1.0)
HALVINGS = 40  # between two of them: below rounding
WIDE = 0.1  # half of a way over many stairs, in typical elements
STEP = 1e-7  # of a difference between two stairs, in typical elements
STAIRS = 10  # that ends of such a way may be off by: each row of a batch has its own
SMOOTH = 1e-3  # of a height: both halves bend by less only where nothing jumps, or jumps of rows cancel that closely
NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)
DECADES = 2.0  # by which grad_outputs grow on a way: a tolerance may be absolute


Optional = Sequence[Tensor | None]
Given = TypeVar("Given")
Result = TypeVar("Result")
Way = Callable[[float], tuple[Sequence[Tensor], Optional]]  # the values of forward, and the gradients


def left_by_iterations(problem: Problem, outputs: Outputs) -> dict[int, float]:
    """Return for inputs by how much of its largest entry a gradient may be off since something iterates.

    Args:
        problem: what is checked; a session of it must be open.
        outputs: of a call at the inputs.
    """
    left = dict.fromkeys(problem.differentiable, 0.0)
    for ways in _ways(problem, outputs):
        both = dict.fromkeys(left, 0.0)  # what forward leaves is there beside what backward leaves
        for way in ways:
            with users_errors():  # forward may refuse to go far
                steps, low, high = _where_a_step_begins(way)
                if not steps:
                    continue
                (values, gradients), (others, stepped) = way(low), way(high)
                moved = math.hypot(*(float((b - a).abs().norm()) for a, b in zip(values, others, strict=True)))
                for k, g, h in zip(left, gradients, stepped, strict=True):
                    if g is not None and h is not None and g.any():
                        step = max(float((h - g).abs().max()), moved / _typical(problem.inputs[k]))
                        found = steps * step / float(g.abs().max())
                        both[k] += found if found > 0 else 0.0  # it may be NaN
        if not any(both.values()):
            break  # what takes as many steps along the first ways does not iterate
        left = {k: min(MOST, max(left[k], both[k])) for k in left}
    return left


def _ways(problem: Problem, outputs: Outputs) -> Iterator[tuple[Way, Way]]:
    """Yield pairs of ways: through all inputs at once, and through grad_outputs."""
    takes = problem.differentiable_outputs(outputs)
    for turn in range(WAYS):
        seed = draws.child(problem.seed, turn)
        u = _directions([problem.inputs[k] for k in problem.differentiable], seed)
        v, w = (cotangents(problem, outputs, draws.child(seed, k)) for k in (0, 1))

        def through_inputs(t: float, u: Sequence[Tensor] = u, v: Optional = v) -> tuple[Sequence[Tensor], Optional]:
            directions = iter(u)
            called = problem.call(problem.changed_inputs(lambda x: x + t * next(directions)))
            return [called[k].detach() for k in takes], problem.vjp(called, v)

        def through_gradients(t: float, v: Optional = v, w: Optional = w) -> tuple[Sequence[Tensor], Optional]:
            size = 10.0 ** (DECADES * t)
            given = [None if a is None or b is None else size * (a + t * b) for a, b in zip(v, w, strict=True)]
            return [], [None if g is None else g / size for g in problem.vjp(outputs, given)]

        yield through_inputs, through_gradients


def torch_calls(run: Callable[[Given], Result], given: Given) -> tuple[Result, Counter[str]]:
    """Return a result, and how often each of torch's functions was called for it."""
    names = Counter[str]()

    def count(call: TracedCall) -> Any:
        names[getattr(call.func, "__name__", "")] += 1
        return call.result

    with Trace(None, after=count):
        return run(given), names


def _where_a_step_begins(way: Way) -> tuple[float, float, float]:
    """Return the number of steps, and the nearest numbers between which another begins; no steps where none does."""

    low, here = 0.0, torch_calls(way, 0.0)[1]
    for high in DISTANCES:
        there = here
        with users_errors():
            there = torch_calls(way, high)[1]
        if there == here:
            continue
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            if (between := torch_calls(way, middle)[1]) == here:
                low = middle
            else:
                high, there = middle, between
        few, many = sorted((here.total(), there.total()))
        return (few / (many - few), low, high) if there.keys() == here.keys() and few < many else (0.0, 0.0, 0.0)
    return 0.0, 0.0, 0.0


def climbs_in_stairs(problem: Problem, outputs: Outputs, where: tuple[int, int]) -> bool:
    """Return True where forward climbs in stairs, and backward gives its change over many of them.

    Args:
        problem: what is checked; a session of it must be open.
        outputs: of a call at the inputs.
        where: positions of output and input.
    """
    which = problem.differentiable.index(where[1])
    for turn in range(WAYS):
        seed = draws.child(problem.seed, turn)
        (u,), v = _directions([problem.inputs[where[1]]], seed), cotangents(problem, outputs, seed, only=where[0])

        def call(t: float, u: Tensor = u) -> Outputs:
            return problem.call(problem.changed_inputs(lambda x: x + t * u, [where[1]]))

        def value(t: float, v: Optional = v) -> float:
            return inner_product(call(t), v)

        with users_errors() as guard:
            slopes = [inner_product([u], [problem.vjp(call(WIDE * t), v)[which]]) for t in NODES]
            apart = abs(value(WIDE) - value(-WIDE) - WIDE * float(WEIGHTS @ slopes))
            small = apart <= MOST * WIDE * float(WEIGHTS @ np.abs(slopes))
            if not (math.isfinite(apart) and small and apart <= STAIRS * _stair(value, apart / STAIRS)):
                return False
        if guard.failed:
            return False
    return True


def _stair(value: Callable[[float], float], least: float) -> float:
    """Return the height of a jump, which is found where values differ most from a straight line; else below another."""
    low, high, slope = -WIDE, WIDE, (value(STEP) - value(-STEP)) / (2 * STEP)
    at_low, at_high = value(low), value(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        at_middle, rise = value(middle), slope * (high - middle)
        if max(abs(at_middle - at_low - rise), abs(at_high - at_middle - rise)) < SMOOTH * least:
            return 0.0
        if abs(at_middle - at_low - rise) > abs(at_high - at_middle - rise):
            high, at_high = middle, at_middle
        else:
            low, at_low = middle, at_middle
    return abs(at_high - at_low)


def _directions(inputs: Sequence[Tensor], seed: int) -> list[Tensor]:
    generator = draws.generator(seed, "way")
    return [_typical(x) * torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device) for x in inputs]


def _typical(x: Tensor) -> float:
    return float(x.detach().abs().mean()) or 1.0
