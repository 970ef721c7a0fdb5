"""Columns of the numerical Jacobian by central differences, many at once where the structure allows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.jacobian.layout import Layout
from nbautograd.core.numerics.arrays import Array

CHUNK_ELEMENTS = 4_000_000  # of points and values together
FEW, MANY = 32, 256  # directions: what is taken at once unbatched; from where on batching is tried on a few first


@dataclass(frozen=True)
class Directions:
    """Ways to move an input: each moves the chosen columns of all diagonal blocks at once.

    Attributes:
        which: position of the input among the differentiable ones.
        layout: of any block of this input; only its input side counts.
        groups: the columns (numbers within a diagonal block) that one direction moves together.
        patterns: per group, when columns share a direction: the rows that belong to each of them.
    """

    which: int
    layout: Layout
    groups: tuple[Array, ...]

    @property
    def grouped(self) -> bool:
        """True where some direction moves several columns of a block."""
        return any(len(group) > 1 for group in self.groups)

    def chunks(self, forward: Values) -> Iterator[range]:
        """Ranges of directions to take at once: few where the function takes points one by one, for an interrupt."""
        size = math.prod(self.layout.input_shape) + math.prod(self.layout.output_shape)
        most, start = max(1, allowed_elements(CHUNK_ELEMENTS) // max(1, size)), 0
        while start < len(self.groups):
            first = start == 0 and len(self.groups) > MANY
            step = min(most, FEW) if first or not forward.batched else most
            yield range(start, min(start + step, len(self.groups)))
            start += step

    def masks(self, chosen: range | list[int]) -> Array:
        """One array shaped like the input per chosen direction: 1 where it moves, else 0."""
        blocks, _, cols = self.layout.sizes
        unit = np.zeros((len(chosen), blocks, cols))
        for row, number in enumerate(chosen):
            unit[row][:, self.groups[number]] = 1.0
        return self.layout.input_like(unit)


def single(which: int, layout: Layout) -> Directions:
    """One direction per column of a diagonal block."""
    return Directions(which, layout, tuple(np.array([q]) for q in range(layout.sizes[2])))


def first_step(forward: Values, which: int, eps: float | None = None) -> Array:
    """The step of the first pass per element: the cube root of the precision, times max(1, |x|); or ``eps``."""
    point = forward.points[which]
    if eps is not None:
        return np.full_like(point, eps)
    known = point if np.isfinite(point).all() else np.nan_to_num(point)
    steps: Array = float(forward.eps ** (1 / 3)) * np.maximum(1.0, np.abs(known))
    return steps


def central(
    forward: Values,
    directions: Directions,
    layouts: dict[int, Layout],
    steps: Array,
    patterns: dict[int, Array] | None = None,
    found: dict[int, Array] | None = None,
) -> dict[int, Array]:
    """Central differences along all directions, stored as each output's layout says.

    Args:
        forward: values of the function.
        directions: how to move the input.
        layouts: by number of the wanted output; all with the input side of ``directions.layout``.
        steps: size of the step per element of the input.
        patterns: by number of the output, boolean (rows, columns): which rows a column reaches, when columns share
            directions.
        found: where to write them as they come, by number of the output; new arrays of zeros by default.
    """  # fmt: skip
    found = found if found is not None else {i: np.zeros(layout.sizes) for i, layout in layouts.items()}
    if directions.layout.sizes[2] == 1:  # everything moves at once
        spacing, changes = differences(forward, directions.which, steps[None])
        for i, layout in layouts.items():
            found[i][:, :, 0] = slopes(layout, spacing[0], changes[i][0])
        return found
    for chosen in directions.chunks(forward):
        moved = directions.masks(chosen) * steps
        spacing, changes = differences(forward, directions.which, moved)
        gaps = directions.layout.cols(spacing)
        for i, layout in layouts.items():
            change = layout.rows(changes[i])
            if not directions.grouped:
                cols = np.array([directions.groups[n][0] for n in chosen])
                gap = gaps[np.arange(len(cols)), :, cols]
                found[i][:, :, cols] = (change / gap[:, :, None]).transpose(1, 2, 0)
                continue
            assert patterns is not None
            for row, number in enumerate(chosen):
                group = directions.groups[number]
                reach = patterns[i][:, group]
                rows = np.flatnonzero(reach.any(axis=1))
                cols = group[reach[rows].argmax(axis=1)]
                found[i][:, rows, cols] = change[row][:, rows] / gaps[row][:, cols]
    return found


def slopes(layout: Layout, spacing: Array, change: Array) -> Array:
    """The only column of each diagonal block, where all elements of the input moved at once; (blocks, rows of each).

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
        return spacing, {i: v[:k] - v[k:] for i, v in _numbered(values)}


def _numbered(values: Sequence[Array] | Mapping[int, Array]) -> Iterable[tuple[int, Array]]:
    return values.items() if isinstance(values, Mapping) else enumerate(values)
