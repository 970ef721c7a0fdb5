"""Columns of the numerical Jacobian by central differences, many at once where the structure allows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.jacobians.forward import Values
from nbautograd.core.checking.jacobians.real import Array
from nbautograd.core.checking.jacobians.storage import Layout

CHUNK_ELEMENTS = 4_000_000


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
        """Whether some direction moves several columns of a block."""
        return any(len(group) > 1 for group in self.groups)

    def chunks(self, elements: int) -> Iterator[range]:
        """Ranges of directions whose points and values hold at most this many elements."""
        step = max(1, elements // max(1, math.prod(self.layout.input_shape) + math.prod(self.layout.output_shape)))
        for start in range(0, len(self.groups), step):
            yield range(start, min(start + step, len(self.groups)))

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
) -> dict[int, Array]:
    """Central differences along all directions, stored as each output's layout says.

    Args:
        forward: values of the function.
        directions: how to move the input.
        layouts: by number of the wanted output; all with the input side of ``directions.layout``.
        steps: size of the step per element of the input.
        patterns: by number of the output, boolean (rows, columns): which rows a column reaches, when columns share
            directions.
    """  # fmt: skip
    if directions.layout.sizes[2] == 1:  # everything moves at once
        spacing, changes = differences(forward, directions.which, steps[None])
        gap = directions.layout.cols(spacing).reshape(-1, 1, 1)
        return {i: (layout.rows(changes[i])[0] / gap[:, :, 0])[:, :, None] for i, layout in layouts.items()}
    found = {i: np.zeros(layout.sizes) for i, layout in layouts.items()}
    for chosen in directions.chunks(CHUNK_ELEMENTS):
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


def differences(forward: Values, which: int, moved: Array) -> tuple[Array, Mapping[int, Array]]:
    """How far the input really moved and how the outputs changed, from x - moved to x + moved.

    Args:
        moved: displacements, shaped (k, *the input's real shape).
    """
    point = forward.points[which]
    up, down = forward.rounded(which, point + moved), forward.rounded(which, point - moved)
    values = forward.at(which, np.concatenate([up, down]))
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(point), up - down, 2 * moved), {
            i: v[: len(moved)] - v[len(moved) :] for i, v in _numbered(values)
        }


def _numbered(values: Sequence[Array] | Mapping[int, Array]) -> Iterable[tuple[int, Array]]:
    return values.items() if isinstance(values, Mapping) else enumerate(values)
