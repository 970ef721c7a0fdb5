"""In the large: a forward that stops at a tolerance is smooth but for jumps, and its differences tell of its pieces.

Where a solver takes one step more, its output jumps by about what it stops at. Between two jumps a difference sees the
slope of so many steps, which is off by the jump over the length of a piece. Backward is that of the limit, and right.
Only a way across many pieces tells: the change of f along it is the integral of the derivative of the limit, up to one
jump, while the slopes of the pieces miss all jumps on the way. So the jumps of forward explain that backward differs
from differences if backward misses less of the change than they do. A wrong gradient misses its own part of the
change, which no longer way makes smaller; and where there is no jump, the slopes miss nothing, and backward does.

Each element moves as far and each output counts as much, so that one wrong entry alone shows in the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics.directional import inner_product
from nbautograd.core.stumbles import users_errors

WAYS = 3  # random ones for each block
LENGTHS = 0.03, 0.1, 0.4, 1.0  # half of a way, in typical elements of the input; jumps may be far from each other
PANELS = 8  # of the longest
NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)
STEP = 1e-6  # of a difference inside a piece, in typical elements: it loses ten digits to rounding, and meets few jumps
NEAR = 0.1  # of the change: backward that misses more is not inexact
ON_A_JUMP = 30.0  # times what slopes are off by elsewhere, which only a jump between two values makes
DEGREES = 16, 32  # values that polynomials are fitted to
LAST_DIGITS = 1e-11  # of the largest coefficient, in float64: a jump of 1e-9 is seen
EXPLAINED = 0.5  # of what slopes miss, that backward may: what both miss is a jump of the limit itself
AT_FIRST = 3.0  # times what jumps make that backward may miss until all ways are known
PARTS = 16  # of a panel
JUMPS = 0.5  # of what slopes miss in a panel that they have to miss in its parts: of a kink it is a sixteenth


class _Missed(NamedTuple):
    """What is missed of the change along a way.

    Attributes:
        by_backward, by_slopes: what the integral of each misses, the latter in all panels.
        panel: the ends of the one in which slopes miss most.
        most: what they miss there.
    """

    by_backward: float
    by_slopes: float
    panel: tuple[float, float]
    most: float


@dataclass(frozen=True)
class _Way:
    """The function <v, f(x + t u)> of a number t.

    Attributes:
        where: positions of output and input.
        u, v: each of their elements is as large.
    """

    problem: Problem
    where: tuple[int, int]
    u: Tensor
    v: Sequence[Tensor | None]

    def value(self, t: float) -> float:
        return inner_product(self._call(t), self.v)

    def slope(self, t: float) -> float:
        return (self.value(t + STEP) - self.value(t - STEP)) / (2 * STEP)

    def by_backward(self, t: float) -> float:
        which = self.problem.differentiable.index(self.where[1])
        return inner_product([self.u], [self.problem.vjp(self._call(t), self.v)[which]])

    def _call(self, t: float) -> Outputs:
        return self.problem.call(self.problem.changed_inputs(lambda x: x + t * self.u, [self.where[1]]))

    def longest(self) -> _Missed:
        """Return what is missed along the way on which jumps explain most of it."""
        best = _Missed(math.inf, 0.0, (0.0, 0.0), math.inf)
        for length in LENGTHS:
            panels = math.ceil(PANELS * length)
            ends, half = np.linspace(-length, length, panels + 1), length / panels
            changes = np.diff([self.value(t) for t in ends])
            nodes = (ends[:-1, None] + ends[1:, None]) / 2 + half * NODES
            slopes = np.array([[self.by_backward(t) for t in row] for row in nodes])
            by_backward = abs(float((changes - half * slopes @ WEIGHTS).sum()))
            if not by_backward <= NEAR * np.abs(changes).sum() or (length == LENGTHS[0] and self.smooth()):
                break
            apart = np.array([[self.slope(t) for t in row] for row in nodes]) - slopes
            apart[np.abs(apart) > ON_A_JUMP * np.median(np.abs(apart))] = 0.0
            left = np.abs(changes - half * (slopes + apart) @ WEIGHTS)
            if left.sum() - by_backward > best.by_slopes - best.by_backward:
                k = int(left.argmax())
                best = _Missed(by_backward, float(left.sum()), (ends[k], ends[k + 1]), float(left[k]))
        return best

    def smooth(self) -> bool:
        """Return True where Chebyshev polynomials are the function to its last digits: no jump or kink is on the way.

        Coefficients of an analytic function fall geometrically, those of a jump as one over their number (Trefethen,
        Approximation Theory and Approximation Practice, chapters 7 and 8).
        """
        for count in DEGREES:
            angles = np.pi * (np.arange(count) + 0.5) / count
            values = np.array([self.value(LENGTHS[-1] * t) for t in np.cos(angles)])
            coefficients = np.abs(np.cos(np.outer(np.arange(count), angles)) @ values)
            if coefficients[-count // 4 :].max() <= LAST_DIGITS * coefficients.max():
                return True
        return False

    def jumps(self, low: float, high: float) -> float:
        """Return what slopes miss in all parts of a panel: what a bend or a kink leaves is less for each halving."""
        ends, half = np.linspace(low, high, PARTS + 1), (high - low) / (2 * PARTS)
        by_slopes = [half * WEIGHTS @ [self.slope(t) for t in (end + half + half * NODES)] for end in ends[:-1]]
        return float(np.abs(np.diff([self.value(t) for t in ends]) - by_slopes).sum())


def jumps_explain(problem: Problem, outputs: Outputs, where: tuple[int, int]) -> bool:
    """Return True where jumps of forward explain that backward differs from its differences.

    It is no proof that backward is right: a fitted formula leaves such a difference too, and a small mistake may.

    Args:
        problem: what is checked, in double precision; a session of it must be open.
        outputs: of a call at the inputs.
        where: positions of output and input.
    """
    x, y = problem.inputs[where[1]].detach(), outputs[where[0]].detach()
    if not x.dtype == y.dtype == torch.float64 or problem.casts.coarsest:
        return False
    typical, generator = float(x.abs().mean()) or 1.0, torch.Generator().manual_seed(problem.seed)
    ways: list[_Missed] = []
    jumped = False
    for _ in range(WAYS):
        u, v = (2.0 * torch.randint(0, 2, t.shape, generator=generator).to(t) - 1 for t in (x, y))
        way = _Way(problem, where, typical * u, [v if k == where[0] else None for k in range(len(outputs))])
        with users_errors() as guard, np.errstate(all="ignore"):
            ways.append(way.longest())
            jumped = jumped or (ways[-1].by_slopes > 0 and way.jumps(*ways[-1].panel) >= JUMPS * ways[-1].most)
        by_backward, by_slopes = sum(one.by_backward for one in ways), sum(one.by_slopes for one in ways)
        if guard.failed or not by_backward <= AT_FIRST * by_slopes:
            return False
    return jumped and by_backward <= EXPLAINED * by_slopes
