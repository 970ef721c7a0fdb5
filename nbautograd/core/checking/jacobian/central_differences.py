"""Columns of the numerical Jacobian by central differences, many at once where the structure allows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.jacobian.forward_values import CHUNK_ELEMENTS, Forward, Values, Window
from nbautograd.core.checking.jacobian.layout import BlockLayout
from nbautograd.core.numerics.arrays import Array

INTERRUPTED_AFTER = 4  # directions: what is taken at once of inputs of which few are held at once, for an interrupt
UNBATCHED_AT_ONCE = 8  # directions that are taken at once unbatched
BATCHING_TRIED_FROM = 16  # directions from which on batching is tried on a few of them first


Columns = Sequence[tuple[int, Array]]  # number of a direction, and some of its entries as (block, row, column)


@dataclass(frozen=True)
class Directions:
    """Ways to move an input: each moves the chosen columns of all diagonal blocks at once.

    Attributes:
        ij: numbers of output and input among the differentiable ones.
        layout: of their block.
        groups: the columns (numbers within a diagonal block) that one direction moves together.
        pattern: boolean (rows, columns): which rows a column reaches; None where no two columns share a direction.
    """

    ij: tuple[int, int]
    layout: BlockLayout
    groups: tuple[Array, ...]
    pattern: Array | None = None

    def chunks(self, forward: Values) -> Iterator[range]:
        """Yield ranges of directions to take at once: few where points are taken one by one, for an interrupt."""
        size = math.prod(self.layout.input_shape) + math.prod(self.layout.output_shape)
        most, start = max(1, allowed_elements(CHUNK_ELEMENTS) // max(1, size)), 0
        most = min(most, max(INTERRUPTED_AFTER, forward.together)) if isinstance(forward, Window) else most
        while start < len(self.groups):
            first = start == 0 and len(self.groups) > BATCHING_TRIED_FROM
            step = min(most, UNBATCHED_AT_ONCE) if first or not forward.batched else most
            yield range(start, min(start + step, len(self.groups)))
            start += step

    def masks(self, chosen: range | list[int]) -> Array:
        """Return an array shaped like the input per chosen direction: 1 where it moves, else 0."""
        blocks, _, cols = self.layout.sizes
        unit = np.zeros((len(chosen), blocks, cols))
        for row, number in enumerate(chosen):
            unit[row][:, self.groups[number]] = 1.0
        return self.layout.input_like(unit)

    def counts(self, chosen: Array) -> Array:
        """Count the chosen entries, a boolean array like the stored matrices, of each direction."""
        return np.array([int(self._own(chosen, group).sum()) for group in self.groups], dtype=int)

    def columns(self, numbers: Iterable[int], chosen: Array) -> Columns:
        """Return these directions, each with those of the chosen entries that it moves."""
        result = []
        for number in numbers:
            entries = np.argwhere(self._own(chosen, self.groups[number]))
            entries[:, 2] = self.groups[number][entries[:, 2]]
            result.append((number, entries))
        return result

    def _own(self, chosen: Array, group: Array) -> Array:
        own = chosen[:, :, group]
        return own if self.pattern is None or len(group) == 1 else own & self.pattern[None][:, :, group]

    def evaluate(self, forward: Values, columns: Columns, factors: Array, scale: Array) -> tuple[Array, Array]:
        """Evaluate entries at steps along the directions that move them.

        Args:
            columns: the directions, and of each the entries that are wanted.
            factors: steps relative to the scale, shaped (steps,).
            scale: of each element of the input.

        Returns:
            f(x + h) and the h that rounding left, both shaped (steps, entries).
        """
        (i, j), layout = self.ij, self.layout
        entries = np.concatenate([entries for _, entries in columns])
        which = np.repeat(np.arange(len(columns)), [len(entries) for _, entries in columns])
        moved, point = self.masks([number for number, _ in columns]) * scale, forward.points[j]
        values, steps = np.empty((2, len(factors), len(entries)))
        most = max(1, allowed_elements(CHUNK_ELEMENTS) // max(1, moved.size + len(columns) * forward.values[i].size))
        for start in range(0, len(factors), most):  # of many elements only those that are asked for are kept
            part = slice(start, start + most)
            wanted = (factors[part].reshape(-1, 1, *[1] * point.ndim) * moved).reshape(-1, *point.shape)
            points = forward.rounded(j, point + wanted)
            with np.errstate(invalid="ignore"):
                taken = np.where(np.isfinite(point), points - point, wanted)
            for result, array, axis in (
                (values, layout.rows(forward.at(j, points)[i]), 1),
                (steps, layout.cols(taken), 2),
            ):
                by_column = array.reshape(-1, len(columns), *array.shape[1:])
                result[part] = by_column[:, which, entries[:, 0], entries[:, axis]]
        return values, steps


def single(ij: tuple[int, int], layout: BlockLayout) -> Directions:
    """Return one direction per column of a diagonal block."""
    return Directions(ij, layout, tuple(np.array([q]) for q in range(layout.sizes[2])))


def first_step(forward: Values, which: int, eps: float | None = None) -> Array:
    """Return the step of the first pass per element: the cube root of the precision, times max(1, |x|); or ``eps``.

    The central difference errs by h**2 |f'''(x)| / 6 + eps |f| / h, least at an h of about eps ** (1/3).
    """
    if eps is not None:
        return np.full_like(forward.points[which], eps)
    return float(forward.eps ** (1 / 3)) * unit_scale(forward, which)


def unit_scale(forward: Values, which: int) -> Array:
    """Return max(1, |x|) of each element of an input, which steps are relative to."""
    point = forward.points[which]
    known = point if np.isfinite(point).all() else np.nan_to_num(point)
    scale: Array = np.maximum(1.0, np.abs(known))
    return scale


def numerical_jacobian(forward: Values, directions: Directions, steps: Array, found: Array | None = None) -> Array:
    """Take the central difference [f(x + h) - f(x - h)] / 2h along all directions, stored as their layout says.

    Args:
        directions: how to move the input.
        steps: size of the step per element of the input.
        found: where to write them as they come; a new array of zeros by default.
    """
    (i, j), layout = directions.ij, directions.layout
    found = np.zeros(layout.sizes) if found is None else found
    for chosen in directions.chunks(forward):
        spacing, changes = differences(forward, j, directions.masks(chosen) * steps)
        gaps, change = layout.cols(spacing), layout.rows(changes[i])
        if directions.pattern is None:
            cols = np.array([directions.groups[n][0] for n in chosen])
            gap = gaps[np.arange(len(cols)), :, cols]
            found[:, :, cols] = (change / gap[:, :, None]).transpose(1, 2, 0)
            continue
        for row, number in enumerate(chosen):
            group = directions.groups[number]
            reach = directions.pattern[:, group]
            rows = np.flatnonzero(reach.any(axis=1))
            cols = group[reach[rows].argmax(axis=1)]
            found[:, rows, cols] = change[row][:, rows] / gaps[row][:, cols]
    return found


def slopes(layout: BlockLayout, spacing: Array, change: Array) -> Array:
    """Return the only column of each diagonal block, where all elements moved at once; (blocks, rows of each).

    Args:
        layout: with one column per diagonal block.
        spacing: how far each element of the input moved.
        change: how much each element of the output changed.
    """
    result: Array = layout.rows(change[None])[0] / layout.cols(spacing[None])[0]
    return result


def differences(forward: Values, which: int, moved: Array) -> tuple[Array, Mapping[int, Array]]:
    """Return the input's real move and the outputs' change, from x - moved to x + moved.

    Args:
        moved: displacements, shaped (k, *the input's real shape).
    """
    point, k = forward.points[which], len(moved)
    points = np.empty((2 * k, *point.shape))
    np.add(point, moved, out=points[:k])
    np.subtract(point, moved, out=points[k:])
    points = forward.rounded(which, points)
    with np.errstate(invalid="ignore"):
        spacing = points[:k] - points[k:]
        if not np.isfinite(spacing).all():
            spacing = np.where(np.isfinite(point), spacing, 2 * moved)
        values = forward.at(which, points)
        numbered = values.items() if isinstance(values, dict) else enumerate(values)
        return spacing, {i: v[:k] - v[k:] for i, v in numbered}


PERTURBATION = 0.1  # how far elements move, relative to their size or 1, when it only matters whether anything changes
Response = tuple[Array, list[Array]]  # how far each element of the input moved, and how each output changed


class JointPerturbations:
    """Responses of all outputs to perturbations of a whole input.

    Args:
        random: chooses directions.
        eps: size of all steps as the caller gave it, or None for one by precision, at random.

    Attributes:
        steps: the step of each element of each input; random signs and sizes let no two couplings cancel by chance.
    """

    def __init__(self, forward: Forward, random: np.random.Generator, eps: float | None) -> None:
        self.forward, self.random = forward, random
        self.steps = [self._varied(first_step(forward, j, eps), eps is None) for j in range(len(forward.points))]
        self._by_steps: dict[int, Response] = {}
        self._in_random_direction: dict[int, Response] = {}

    def by_steps(self, j: int) -> Response:
        """Return the response to each element's own step, as ``numerical_jacobian`` would take them."""
        if j not in self._by_steps:
            self._by_steps[j] = self._moved(j, self.steps[j])
        return self._by_steps[j]

    def in_random_direction(self, j: int) -> Response:
        """Return the response to a random direction, which has nothing to do with the steps."""
        if j not in self._in_random_direction:
            lots = self.random.random(self.steps[j].shape) - 0.5
            self._in_random_direction[j] = self._moved(j, np.copysign(0.5 + np.abs(lots), lots) * self.steps[j])
        return self._in_random_direction[j]

    def blocks_are_independent(self, i: int, j: int, layout: BlockLayout) -> bool:
        """Show that no output of a diagonal block moves unless an input of that block does, by group testing.

        The numbers of two different blocks differ in some bit. For each bit all blocks with it move and those without
        it are compared in every bit of their values, then the other way round: so each ordered pair of blocks is
        tested once, by 2 log2(blocks) forwards (Dorfman 1943), however coarse or noisy the values are.
        """
        blocks, _, cols = layout.sizes
        point, here = self.forward.points[j], layout.rows(self.forward.values[i][None])[0]
        bits = [(np.arange(blocks) >> bit) & 1 for bit in range((blocks - 1).bit_length())]
        for mask in (m.astype(bool) for bit in bits for m in (bit, 1 - bit)):
            far = PERTURBATION * layout.input_like(np.repeat(mask[None, :, None], cols, axis=2))[0]
            moved = self.forward.rounded(j, (point + far * np.maximum(1.0, np.abs(point)))[None])
            found = layout.rows(self.forward.at(j, moved)[i])[0]
            if not np.array_equal(found[~mask], here[~mask], equal_nan=True):
                return False
        return True

    def _moved(self, j: int, by: Array) -> Response:
        spacing, changes = differences(self.forward, j, by[None])
        return spacing[0], [changes[i][0] for i in range(len(self.forward.shapes))]

    def _varied(self, steps: Array, sizes: bool) -> Array:
        lots = self.random.random(steps.shape) - 0.5
        varied: Array = steps * np.copysign(0.75 + 0.5 * np.abs(lots) if sizes else 1.0, lots)
        return varied
