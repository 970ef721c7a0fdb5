"""Stairs: a forward that stays as it is or jumps, whose gradient can be no derivative (straight-through, surrogates).

Rounding, counting and comparing give functions that are constant between jumps. A small change at one point cannot tell
them: it shows 0, and exactly on a jump a number that grows like 1 / h. Two things tell them at any size. On *one side*
of a point f(x + h) equals f(x + 2h) to the last bit, also exactly on a jump; and where the value has changed between
two points, it is still level at both, so that only jumps can have changed it. A clamp, a ReLU, a maximum are level in
places too, but what has changed there has done so along a slope.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.jacobian.central_differences import unit_scale
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.stumbles import users_errors

# how far away is looked, in standard deviations of a random move of each element; of max(1, |x|)
DISTANCES = (0.3, 1.0, 3.0, 10.0)
SEEN = 64  # values that are looked at at each of them, by several points where the output is small
MOST = 200_000  # elements of the input in all of those points
AROUND = 1  # random moves from the input itself
LEVEL_HERE = 0.9  # of the values at the input: 1 of 32 is no part of it where a scale follows the largest of a group
LEVEL = 0.9  # of the values that have changed: a step may well fall between x + h and x + 2h
SPACINGS = 64  # of the numbers that values pass through: far above their rounding, and far below a stair
RESOLVED = 8  # spacings of the value that a slope from here to there would make of h

ENTRIES, FIRST = 16, 3  # elements that are moved one by one, and how many of them before the others
FEWEST = 0.5  # of them that are level: of a function with a slope none is
MOST_ENTRIES = 0.75  # of them: the others may be the largest of their groups
MANY = 20_000  # elements of the input, above which half as many are moved
NEAR = (0.15, 0.3)  # parts of the typical element; further off an element may become the largest of its group

LAST = 4  # halvings of a way, by which a slope leaves a sixteenth of the change, and a jump all of it

PANELS = 24  # into which the way is cut along which slopes are added up
WAY = math.log(3)  # an input is three times as small and three times as large at its ends
JUMPED = 0.1  # of the change: slopes that are added up by panels miss less, at a kink and where they curve
JUMPING = 0.1  # of the values that change: the others lie beyond the last stair


class Stairs:
    """Tells by finite differences where a function has no derivative to compare with.

    Args:
        problem: what is checked; a session of it must be open.
        outputs: of a call at the inputs.
        forward: values of the function.
    """

    def __init__(self, problem: Problem, outputs: Outputs, forward: Forward) -> None:
        self.problem, self.outputs, self.forward = problem, outputs, forward
        self._flat: dict[int, list[bool]] = {}
        self._twin: Stairs | None = None
        self._elsewhere: list[Outputs] | None = None
        self._step: float = max(float(forward.eps ** (1 / 3)) * 1e-2, SPACINGS * forward.eps)

    def flat(self, i: int, j: int) -> bool:
        """Return True where an output changes by jumps alone when this input moves, and does change.

        Args:
            i: number of the output among those of ``forward``.
            j: number of the input among the differentiable ones.
        """
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

        Args:
            i, j: as for ``flat``.
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
            generator = torch.Generator().manual_seed(self.problem.seed + 13)

            def moved(x: Tensor, size: float) -> Tensor:
                return x + size * torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)

            changes = [lambda x: moved(x, 1.0), lambda x: moved(torch.zeros_like(x), 0.3), lambda x: moved(x, 3.0)]
            for change in changes:
                with users_errors():
                    self._elsewhere.append(self.problem.call(self.problem.changed_inputs(change)))
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
        forward, random = self.forward, np.random.default_rng(0)
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
        draws = max(1, min(SEEN, math.ceil(SEEN / max(1, fewest)), MOST // point.size))
        sizes = np.repeat(DISTANCES, draws).reshape(-1, *[1] * point.ndim)
        far = point + sizes * scale * random.normal(size=(len(sizes), *point.shape))
        there, level = forward.at(j, far), self._level(j, far, moves(far))
        flat = []
        for i, (values, new, one) in enumerate(zip(forward.values, there, level, strict=True)):
            share = _share(one[self._changed(values, new)]) if level_here[i] else 0.0
            flat.append(share >= LEVEL and self._jumps((i, j), (point, values), (far, new)))
        return level_here, flat

    def _flat_by_entries(self, j: int) -> list[bool]:
        """Move single elements, beside the input: of a scale that follows the largest one most elements are no part."""
        forward, random = self.forward, np.random.default_rng(1)
        point, none = forward.points[j], [False] * len(forward.values)
        if point.size <= FIRST:
            return none
        known = np.abs(point[np.isfinite(point)])
        typical = (float(np.sqrt((known**2).mean())) if known.size else 0.0) or 1.0
        point = point + NEAR[-1] * typical * random.normal(size=point.shape)  # where all are alike each is the largest
        chosen = random.permutation(point.size)[: ENTRIES if point.size <= MANY else ENTRIES // 2]
        alone = np.zeros((len(chosen), point.size))
        alone[np.arange(len(chosen)), chosen] = typical
        alone = alone.reshape(len(chosen), *point.shape)
        level: list[Array] = []
        for part in (alone[:FIRST], alone[FIRST:]):
            found = [_each(one) for one in self._level(j, np.repeat(point[None], len(part), axis=0), part)]
            level = found if not level else [np.concatenate(pair) for pair in zip(level, found, strict=True)]
            if not any(one.mean() >= FEWEST for one in level):
                return none
        by = np.concatenate([size * alone for size in NEAR])
        by *= random.choice([-1.0, 1.0], size=(len(by), *[1] * point.ndim))
        values, there = forward.at(j, point[None]), forward.at(j, point + by)
        beyond = self._level(j, point + by, np.concatenate([alone] * len(NEAR)))
        answers = []
        for i, (here, new, after, before) in enumerate(zip(values, there, beyond, level, strict=True)):
            # the largest element, which is not level, may fall behind another: from there on it is
            changed = self._changed(here, new).reshape(len(by), -1).any(axis=1) & np.tile(before, len(NEAR))
            flat = before.mean() >= MOST_ENTRIES and _share(_each(after)[changed]) >= MOST_ENTRIES
            new = np.where(changed.reshape(-1, *[1] * (new.ndim - 1)), new, here)
            answers.append(bool(flat) and self._jumps((i, j), (point, here[0]), (point + by, new)))
        return answers

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
        return bool(changes[-1] > changes[-1 - LAST] / 2)

    def _changed(self, values: Array, there: Array) -> Array:
        """Mark what has changed so much that a slope as steep would be seen in a step of the smallest size."""
        least = RESOLVED * self.forward.eps / self._step * np.abs(there)
        found: Array = np.abs(there - values) > np.maximum(least, np.finfo(float).tiny)
        return found

    def _jumps_on_the_way(self, j: int) -> list[bool]:
        """Compare how far outputs change on a way with the sum of the slopes on it; the rest of it are jumps."""
        forward, random = self.forward, np.random.default_rng(2)
        point = forward.points[j]
        lots = random.random(point.shape) - 0.5
        rates = np.copysign(0.5 + np.abs(lots), lots) * WAY
        size = np.where(point == 0, np.abs(point).mean() or 1.0, np.abs(point))

        def on_the_way(t: Array) -> Array:
            t = t.reshape(-1, *[1] * point.ndim)
            found: Array = np.where(point == 0, t * rates * size, point * np.exp(t * rates))
            return found

        middles = (np.arange(PANELS) + 0.5) / PANELS * 2 - 1
        h = self._step
        seen = forward.at(j, np.concatenate([on_the_way(middles + h), on_the_way(middles - h)]))
        ends = forward.at(j, on_the_way(np.array([-1.0, 1.0])))
        answers = []
        for values, (first, last) in zip(seen, ends, strict=True):
            slopes = (values[:PANELS] - values[PANELS:]) / (2 * h)
            usual = np.median(np.abs(slopes), axis=0)
            slopes = np.where(np.abs(slopes) > usual / h**0.5, 0.0, slopes)  # a jump between the two points
            along, change = slopes.sum(axis=0) * 2 / PANELS, last - first
            size_of_all = np.abs(along) + np.abs(change)
            counts = np.isfinite(size_of_all) & (size_of_all > 1e-9 * np.abs(first))
            jumped = np.abs(change - along) > JUMPED * size_of_all
            answers.append(bool(counts.any() and jumped[counts].mean() >= JUMPING))
        return answers

    def _of_all_inputs(self) -> Stairs:
        """Return the same of a problem in which each floating input is differentiated: data has stairs as well."""
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


def _share(level: Array) -> float:
    return float(level.mean()) if level.size else 0.0


def _each(level: Array) -> Array:
    """Return for each point whether all of the output is level."""
    return np.asarray(level.reshape(len(level), -1).all(axis=1))
