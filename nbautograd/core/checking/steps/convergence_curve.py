"""The V of one entry that is not in doubt: how far differences at each step are from the best value."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.steps import ladder
from nbautograd.core.numerics.arrays import Array


def convergence_curve(raw: FirstPass, ij: tuple[int, int]) -> tuple[Array, Array]:
    """Steps and errors of differences at the entry of a block that differs most from backward."""
    apart = np.abs(raw.matrices.stored("difference"))
    if not np.isfinite(apart).any():
        return np.empty(0), np.empty(0)
    chosen = np.zeros(apart.shape, dtype=bool)
    chosen.reshape(-1)[int(np.nanargmax(apart))] = True
    held = raw.matrices.layout
    block, row, col = np.argwhere(chosen)[0]
    return _ladder_of_entry(raw.forward, ij, (int(held.row_ids[block, row]), int(held.col_ids[block, col])))


def _ladder_of_entry(forward: Values, ij: tuple[int, int], entry: tuple[int, int]) -> tuple[Array, Array]:
    """The ladder for one entry that is not in doubt: its steps, and how far differences are from the best value.

    Args:
        forward: values of the function.
        ij: numbers of output and input among the differentiable ones.
        entry: row and column.
    """
    (i, j), (row, col) = ij, entry
    point = forward.points[j].reshape(-1)
    climbs = np.concatenate([ladder.factors(), -ladder.factors()])
    wanted = np.repeat(point[None], len(climbs), axis=0)
    wanted[:, col] += climbs * max(1.0, abs(float(point[col])))
    points = forward.rounded(j, wanted)
    values = forward.at(j, points.reshape(-1, *forward.points[j].shape))[i].reshape(len(climbs), -1)[:, [row]]
    steps = points[:, [col]] - point[col]
    middle, n = forward.values[i].reshape(-1)[[row]], ladder.RUNGS
    with np.errstate(all="ignore"):
        series = ladder.Series(values[:n], values[n:], steps[:n], -steps[n:], middle, forward.eps * np.abs(middle))
        value, slopes = ladder.two_sided(series).value, ladder.central(series)
        # two equal numbers are still only known to the last bit
        last = np.finfo(float).eps * np.maximum(np.abs(slopes).max(axis=0), np.abs(value))
        errors = np.maximum(np.abs(slopes - value), last)
    return ((series.above + series.below) / 2)[:, 0], errors[:, 0]
