"""The second look for very many columns: two steps instead of eleven, all columns of a chunk at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nbautograd.core.checking.jacobians.columns import Directions
from nbautograd.core.checking.jacobians.forward import Values
from nbautograd.core.checking.jacobians.real import Array
from nbautograd.core.checking.steps import kinks, ladder

WIDER = 4.0  # the second step in terms of the first
CHUNK = 64  # directions at once


def brief(
    forward: Values, directions: Directions, where: tuple[int, int], columns: Sequence[tuple[int, Array]]
) -> Iterator[tuple[Array, dict[str, Array]]]:
    """Differences at two steps for many columns.

    Args:
        forward: values of the function.
        directions: how its input is moved.
        where: numbers of output and input among the differentiable ones.
        columns: (number of the direction, its entries as (block, row, column)).

    Yields:
        Entries and, by the names of the fields of ``Refined``, what was found.
    """
    point = forward.points[where[1]]
    size = float(forward.eps ** (1 / 3)) * np.maximum(1.0, np.abs(np.nan_to_num(point)))
    for start in range(0, len(columns), CHUNK):
        part = columns[start : start + CHUNK]
        moved = directions.masks([number for number, _ in part]) * size
        offsets = np.concatenate([moved, WIDER * moved, -moved, -WIDER * moved])
        points = forward.rounded(where[1], point + offsets)
        layout = directions.layout
        values = layout.rows(forward.at(where[1], points)[where[0]]).reshape(4, len(part), *layout.sizes[:2])
        steps = layout.cols(points - point).reshape(4, len(part), layout.sizes[0], layout.sizes[2])
        here = layout.rows(forward.values[where[0]][None])[0]
        for k, (_, entries) in enumerate(part):
            rows, cols = (entries[:, 0], entries[:, 1]), (entries[:, 0], entries[:, 2])
            seen = values[:, k][:, rows[0], rows[1]], steps[:, k][:, cols[0], cols[1]], here[rows]
            yield entries, _found(*seen, forward.eps)


def _found(values: Array, steps: Array, middle: Array, eps: float) -> dict[str, Array]:
    """The derivative from two central differences, with an error bar; a kink when the gap between sides stays."""
    near, far = values[0] - values[2], values[1] - values[3]
    gaps = steps[0] - steps[2], steps[1] - steps[3]
    with np.errstate(all="ignore"):
        fine, coarse = near / gaps[0], far / gaps[1]
        value = fine + (fine - coarse) / (WIDER**2 - 1)
        largest = np.abs(np.concatenate([values, middle[None]])).max(axis=0)
        round_off = 4 * eps * largest / np.abs(gaps[0])
        error = np.abs(fine - coarse) / (WIDER**2 - 1) + round_off
        right, left = (values[0] - middle) / steps[0], (values[2] - middle) / steps[2]
        wide_right, wide_left = (values[1] - middle) / steps[1], (values[3] - middle) / steps[3]
        apart, wide = right - left, wide_right - wide_left
        slope = np.maximum(np.abs(right), np.abs(left))
        stays = (np.abs(apart) > 0.6 * np.abs(wide)) & (np.abs(apart) > kinks.VISIBLE * slope + 8 * round_off)
    nature = np.where(stays, kinks.KINK, kinks.SMOOTH)
    nature = np.where(np.isfinite(value), nature, kinks.NOWHERE)
    low, high = np.minimum(right, left) - 2 * error, np.maximum(right, left) + 2 * error
    unknown = np.full((ladder.RUNGS, len(value)), np.nan)
    return {
        "value": value, "error": error, "nature": nature, "steps": unknown, "errors": unknown,
        "low": np.where(stays, low, value - error), "high": np.where(stays, high, value + error),
    }  # fmt: skip
