"""Stairs: a forward that stays as it is or jumps, whose gradient can be no derivative (straight-through, surrogates).

Rounding, counting and comparing give functions that are constant between jumps. A small change at one point cannot tell
them: it shows 0, and exactly on a jump a number that grows like 1 / h. Two things tell them at any size. On *one side*
of a point f(x + h) equals f(x + 2h) to the last bit, also exactly on a jump; and where the value has changed between
two points, it is still level at both, so that only jumps can have changed it. A clamp, a ReLU, a maximum are level in
places too, but what has changed there has done so along a slope.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.jacobian.central_differences import unit_scale
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import SLIGHT
from nbautograd.core.numerics.draws import array_generator, generator
from nbautograd.core.stumbles import users_errors

# how far away is looked, in standard deviations of a random move of each element; of max(1, |x|)
DISTANCES = (0.3, 1.0, 3.0, 10.0)
SEEN = 64  # values that are looked at at each of them, by several points where the output is small
MOST_ELEMENTS = 200_000  # elements of the input in all of those points
AROUND = 1  # random moves from the input itself
LEVEL_HERE = 0.9  # of the values at the input: 1 of 32 is no part of it where a scale follows the largest of a group
LEVEL = 0.9  # of the values that have changed: a step may well fall between x + h and x + 2h
FINE = 1e-2  # of the step of a central difference: so short a one meets few stairs
SPACINGS = 64  # of the numbers that values pass through: far above their rounding, and far below a stair
RESOLVED = 8  # spacings of the value that a slope from here to there would make of h

ENTRIES, FIRST = 16, 2  # elements that are moved one by one, and how many of them before the others
MOST_ENTRIES = 0.75  # of them: the others may be the largest of their groups
HALVED_FROM = 20_000  # elements of the input, above which half as many are moved
BESIDE, BEYOND = 0.3, 1.5  # parts of the typical element: from how far beside the input, and how far, one is moved
SINGLE_PANELS = 6  # panels of such a way
HALF = 0.5  # of the largest change, from which on one counts; of one that is jumps, which no slope comes to
NEARLY = 0.85  # of a change is jumps: the rest is what a scale moves by that one element is a part of
ASKED = 8  # of the elements that backward is asked about
ALMOST = 0.2  # of what backward says, which is as good as no slope where forward jumps
STEEP = 1e3  # times what backward says, which only a jump at the very input is

LAST_HALVINGS = 4  # halvings of a way, by which a slope leaves a sixteenth of the change, and a jump all of it

PANELS = 24  # into which the way is cut along which slopes are added up
WAY = math.log(3)  # an input is three times as small and three times as large at its ends
JUMPED = 0.1  # of the change: slopes that are added up by panels miss less, at a kink and where they curve
JUMPING = 0.1  # of the values that change: the others lie beyond the last stair


@dataclass(frozen=True)
class _Moved:
    """What one element does to the value that changes most when it moves.

    Attributes:
        entry: number of the element.
        end: the input after it.
        most: number of the value.
        change, along: how far the value changes, and how far by slopes.
        slope: how steep it is on the way, up or down.
    """

    entry: int
    end: Array
    most: int
    change: float
    along: float
    slope: float

    @property
    def size(self) -> float:
        """How far the value changes; 0 where it is not known."""
        return abs(self.change) if math.isfinite(self.change) else 0.0

    @property
    def jumped(self) -> float:
        """The part of the change that is jumps."""
        rest = abs(self.change - self.along)
        return rest / (rest + abs(self.along)) if self.size else 0.0


class Stairs:
    """Tells by finite differences where a function has no derivative to compare with.

    Args:
        problem: what is checked; a session of it must be open.
    """

    def __init__(self, problem: Problem, outputs: Outputs, forward: Forward) -> None:
        self.problem, self.outputs, self.forward = problem, outputs, forward
        self._flat: dict[int, list[bool]] = {}
        self._twin: Stairs | None = None
        self._elsewhere: list[Outputs] | None = None
        self._step: float = max(FINE * float(forward.eps ** (1 / 3)), SPACINGS * forward.eps)

    def flat(self, i: int, j: int) -> bool:
        """Return True where an output changes by jumps alone when this input moves, and does change."""
        if j not in self._flat:
            raised = self.forward.raised  # what it does not take further off says nothing of the point itself
            with np.errstate(all="ignore"):
                level, flat = self._flat_along_all(j)
                single = flat if all(level) else self._flat_by_entries(j)
                # what is level where all elements move is judged by that, however few of them make a slope
                self._flat[j] = [a or (b and not c) for a, b, c in zip(flat, single, level, strict=True)]
            self.forward.raised = raised
        return self._flat[j][i]

    def scales(self, i: int, j: int) -> bool:
        """Return True where an input sets the height or the place of the stairs of an output (a scale, a threshold).

        Between two jumps such a function has a slope, which differences see; a straight-through gradient is that of
        the ramp that stands for the stairs. So an output counts that is flat in another input, for which backward
        returns a gradient all the same, and that jumps when this one moves.
        """
        o, position = self.forward.wanted[i], self.problem.differentiable[j]
        twin = self._of_all_inputs()
        others = [k for k, p in enumerate(twin.problem.differentiable) if p != position]
        here = twin.forward.wanted.index(o) if o in twin.forward.wanted else None
        if here is None or not any(twin.flat(here, k) and twin.alive(here, k) for k in others):
            return False
        raised = self.forward.raised
        with np.errstate(all="ignore"):
            found = self._jumps_on_the_way(j)[i]
        self.forward.raised = raised
        return found

    def alive(self, i: int, j: int) -> bool:
        """Return True where backward returns a gradient that is not zero, at the inputs or at others."""
        return self.alive_here(i, j) or any(self._gradient(at, i, j) for at in self._others())

    def alive_here(self, i: int, j: int) -> bool:
        """Return True where backward returns a gradient that is not zero at the inputs."""
        return self._gradient(self.outputs, i, j)

    def _gradient(self, outputs: Outputs, i: int, j: int) -> bool:
        v = cotangents(self.problem, outputs, self.problem.seed, only=self.forward.wanted[i])
        found = pull(self.problem, outputs, v)[j]
        return found is not None and bool(found.any())

    def _others(self) -> list[Outputs]:
        """Return calls at other inputs: near ones, and random ones about zero; none that forward does not take."""
        if self._elsewhere is None:
            self._elsewhere = []
            numbers = generator(self.problem.seed, "elsewhere")

            def moved(x: Tensor, about: float, size: float) -> Tensor:
                return about * x + size * torch.randn(x.shape, generator=numbers, dtype=x.dtype).to(x.device)

            for about, size in ((1, 1.0), (0, 0.3), (1, 3.0), (0, 3.0)):
                with users_errors():
                    at = self.problem.changed_inputs(functools.partial(moved, about=about, size=size))
                    self._elsewhere.append(self.problem.call(at))
        return self._elsewhere

    def _level(self, which: int, points: Array, moves: Array) -> list[Array]:
        """Mark for each output where f(p + h) equals f(p + 2h) and f(p - h) equals f(p - 2h); NaN is no value."""
        by = self._step * moves
        found = self.forward.at(which, np.concatenate([points + by, points + 2 * by, points - by, points - 2 * by]))
        levels = []
        for values in found:
            up, further_up, down, further_down = values.reshape(4, len(points), *values.shape[1:])
            levels.append((up == further_up) & (down == further_down))
        return levels

    def _flat_along_all(self, j: int) -> tuple[list[bool], list[bool]]:
        """Move all elements of an input at random; say which outputs are level at the input, and which are flat."""
        forward, random = self.forward, array_generator(self.problem.seed, "flat")
        point, scale = forward.points[j], unit_scale(forward, j)
        none = [False] * len(forward.values)
        if not point.size:
            return none, none

        def moves(points: Array) -> Array:
            lots = random.random(points.shape) - 0.5
            found: Array = np.copysign(0.5 + np.abs(lots), lots) * np.maximum(1.0, np.abs(points))
            return found

        here = np.repeat(point[None], AROUND, axis=0)
        level_here = [_share(level) >= LEVEL_HERE for level in self._level(j, here, moves(here))]
        if not any(level_here):
            return none, none
        fewest = min(values.size for values in forward.values)
        draws = max(1, min(SEEN, math.ceil(SEEN / max(1, fewest)), MOST_ELEMENTS // point.size))
        sizes = np.repeat(DISTANCES, draws).reshape(-1, *[1] * point.ndim)
        far = point + sizes * scale * random.normal(size=(len(sizes), *point.shape))
        there = forward.at(j, far)
        if not any(np.isfinite(values).any() for values in there):  # as of probabilities: its own entries it takes
            far = np.stack([random.permutation(point.ravel()).reshape(point.shape) for _ in sizes])
            there = forward.at(j, far)
        level = self._level(j, far, moves(far))
        flat = []
        for i, (values, new, one) in enumerate(zip(forward.values, there, level, strict=True)):
            share = _share(one[self._changed(values, new)]) if level_here[i] else 0.0
            flat.append(share >= LEVEL and self._jumps((i, j), (point, values), (far, new)))
        return level_here, flat

    def _flat_by_entries(self, j: int) -> list[bool]:
        """Move single elements beyond zero: of what is scaled by all of them each has almost no slope, but jumps.

        Almost none beside the change, and beside what backward says: a slope of that size can be compared with it.
        """
        forward, random = self.forward, array_generator(self.problem.seed, "flat by entries")
        point, flat = forward.points[j], [False] * len(forward.values)
        if point.size <= FIRST or self.outputs.inputs[self.problem.differentiable[j]].is_complex():
            return flat
        known = np.abs(point[np.isfinite(point)])
        typical = (float(np.sqrt((known**2).mean())) if known.size else 0.0) or 1.0
        start = point + BESIDE * typical * random.normal(size=point.shape)  # where all are alike each is the largest
        chosen = random.permutation(point.size)[: ENTRIES if point.size <= HALVED_FROM else ENTRIES // 2]
        found: list[list[_Moved]] = [[] for _ in flat]
        for count, entry in enumerate(chosen, 1):
            end = start.copy()
            by = -BEYOND * typical * np.copysign(1.0, start.flat[entry])
            end.flat[entry] += by
            straight = functools.partial(lambda end, t: start + t * (end - start), end)
            changes = self._changes_on_the_way(j, straight, SINGLE_PANELS)
            for moved, (change, along, steep) in zip(found, changes, strict=True):
                if not change.size:
                    continue  # an output without elements
                most = int(np.nan_to_num(np.abs(change)).argmax())
                moved.append(
                    _Moved(int(entry), end, most, change.flat[most], along.flat[most], steep.flat[most] / abs(by))
                )
            if count == FIRST and not any(one.jumped > HALF for moved in found for one in moved):
                return flat
        for i, moved in enumerate(found):
            largest = max((one.size for one in moved), default=0.0)
            large = [one for one in moved if one.size >= HALF * largest > 0]
            jumped = [one for one in large if one.jumped >= NEARLY]
            if len(jumped) < MOST_ENTRIES * max(1, len(large)) or not self._beside_backward((i, j), jumped):
                continue
            ends = np.stack([one.end for one in jumped])
            flat[i] = self._jumps((i, j), (start, forward.at(j, start[None])[i][0]), (ends, forward.at(j, ends)[i]))
        return flat

    def _beside_backward(self, ij: tuple[int, int], moved: Sequence[_Moved]) -> bool:
        """Return True if slopes are a small part of backward's gradient, where that is not zero."""
        output = self.outputs[self.forward.wanted[ij[0]]]
        if output.is_complex():
            return False
        small = []
        for one in moved[:ASKED]:
            v: list[Tensor | None] = [None] * len(self.outputs)
            v[self.forward.wanted[ij[0]]] = (
                torch.zeros_like(output)
                .reshape(-1)
                .index_fill(0, torch.tensor([one.most], device=output.device), 1.0)
                .reshape(output.shape)
            )
            gradient = pull(self.problem, self.outputs, v)[ij[1]]
            said = 0.0 if gradient is None else abs(float(gradient.reshape(-1)[one.entry]))
            if said:
                small.append(one.slope <= ALMOST * said)
        return len(small) > 0 and sum(small) >= MOST_ENTRIES * len(small)

    def _jumps(self, ij: tuple[int, int], here: tuple[Array, Array], there: tuple[Array, Array]) -> bool:
        """Return True where a change stays as it is on ever shorter ways: a jump, and no slope, however steep.

        Args:
            ij: numbers of output and input.
            here: a point and the output there.
            there: other points and the outputs there; followed is the way to where most has changed.
        """
        (i, j), (start, value), (ends, values) = ij, here, there
        change = np.nan_to_num(np.abs(values - value)).reshape(len(values), -1)
        which, entry = np.unravel_index(int(change.argmax()), change.shape)
        low, high, end = value.reshape(-1)[entry], values.reshape(len(values), -1)[which, entry], ends[which]
        changes = list[float]()
        for _ in range(math.ceil(-math.log2(self._step))):
            middle = (start + end) / 2
            between = self.forward.at(j, middle[None])[i].reshape(-1)[entry]
            if abs(between - low) >= abs(high - between):
                end, high = middle, between
            else:
                start, low = middle, between
            changes.append(abs(high - low))
        return bool(changes[-1] > changes[-1 - LAST_HALVINGS] / 4)

    def _changed(self, values: Array, there: Array) -> Array:
        least = RESOLVED * self.forward.eps / self._step * np.abs(there)
        found: Array = np.abs(there - values) > np.maximum(least, np.finfo(float).tiny)
        return found

    def _jumps_on_the_way(self, j: int) -> list[bool]:
        """Scale an input from a third to three times its value; return for each output if many values jump."""
        point, random = self.forward.points[j], array_generator(self.problem.seed, "on the way")
        lots = random.random(point.shape) - 0.5
        rates = np.copysign(0.5 + np.abs(lots), lots) * WAY
        size = np.abs(point).mean() or 1.0

        def way(t: Array) -> Array:
            found: Array = np.where(point == 0, (2 * t - 1) * rates * size, point * np.exp((2 * t - 1) * rates))
            return found

        answers = []
        for change, along, _ in self._changes_on_the_way(j, way, PANELS):
            whole = np.abs(along) + np.abs(change)
            counts = np.isfinite(whole) & (whole > SLIGHT * whole.max(initial=0.0))
            jumped = np.abs(change - along) > JUMPED * whole
            answers.append(bool(counts.any() and jumped[counts].mean() >= JUMPING))
        return answers

    def _changes_on_the_way(
        self, j: int, way: Callable[[Array], Array], panels: int
    ) -> list[tuple[Array, Array, Array]]:
        """Return how far each output changes on a way, how far of that by slopes, not jumps, and how steep they are."""
        h, ndim = self._step, self.forward.points[j].ndim
        middles = (np.arange(panels) + 0.5) / panels
        times = np.concatenate([middles + h, middles - h, [0.0, 1.0]]).reshape(-1, *[1] * ndim)
        found = []
        for values in self.forward.at(j, way(times)):
            change = values[-1] - values[-2]
            slopes = (values[:panels] - values[panels : 2 * panels]) / (2 * h)
            usual = np.maximum(np.median(np.abs(slopes), axis=0), np.abs(change))
            slopes = np.where(np.abs(slopes) > usual / h**0.5, 0.0, slopes)  # a jump between the two points
            found.append((change, slopes.mean(axis=0), np.abs(slopes).mean(axis=0)))
        return found

    def _of_all_inputs(self) -> Stairs:
        if self._twin is None:
            given = self.problem.inputs
            every = tuple(
                x.detach().clone().requires_grad_() if isinstance(x, Tensor) and x.is_floating_point() else x
                for x in given
            )
            twin = Problem(self.problem.fn, every, self.problem.seed)
            self._twin = self
            if twin.differentiable != self.problem.differentiable:
                with users_errors(), twin.session():  # for a gradient that the program never asked for
                    outputs = twin.call()
                    values = Forward(twin, outputs, twin.differentiable_outputs(outputs))
                    self._twin = Stairs(twin, outputs, values)
        return self._twin


def almost_flat(analytical: Array, numerical: Array) -> bool:
    """Return True if most differences are tiny or a jump, compared with backward's gradient.

    Args:
        analytical, numerical: a block of both Jacobians, as far as it is stored.
    """
    claimed = np.abs(analytical[analytical != 0])
    with np.errstate(invalid="ignore"):
        size = np.abs(numerical[analytical != 0])
        nothing = (size <= ALMOST * claimed) | (size >= STEEP * claimed)
    return claimed.size > 0 and _share(nothing) >= HALF


def _share(level: Array) -> float:
    return float(level.mean()) if level.size else 0.0
