"""The second look for very many columns: three steps and a guard instead of eleven, all columns of a chunk at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nbautograd.core.checking.jacobian.central_differences import Directions
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.steps import kinks, ladder
from nbautograd.core.checking.steps.evaluate_ladder import Refined, select
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import ERROR_BARS

USUAL = 5  # the rung that serves a smooth function best
CHUNK = 64  # directions at once


def evaluate_three_steps(
    forward: Values,
    directions: Directions,
    ij: tuple[int, int],
    columns: Sequence[tuple[int, Array]],
    known: Refined,
    finer: int = 0,
) -> Iterator[Refined]:
    """Differences at three steps for many columns, one by one.

    Args:
        forward: values of the function.
        directions: how its input is moved.
        ij: numbers of output and input among the differentiable ones.
        columns: (number of the direction, its entries as (block, row, column)).
        known: what the whole ladder found for other columns: which steps served best, and how noisy values are.
        finer: take steps so many rungs below those.
    """
    point = forward.points[ij[1]]
    climbs = ladder.factors(ladder.LONG)[_rungs(known, finer)]
    size = climbs.reshape(len(climbs), 1, *[1] * point.ndim) * np.maximum(1.0, np.abs(np.nan_to_num(point)))
    layout = directions.layout
    here = layout.rows(forward.values[ij[0]][None])[0]
    for start in range(0, len(columns), CHUNK):
        part = columns[start : start + CHUNK]
        up = directions.masks([number for number, _ in part]) * size
        offsets = np.concatenate([up, -up]).reshape(-1, *point.shape)
        points = forward.rounded(ij[1], point + offsets)
        values = layout.rows(forward.at(ij[1], points)[ij[0]]).reshape(2 * len(climbs), len(part), *layout.sizes[:2])
        steps = layout.cols(points - point).reshape(2 * len(climbs), len(part), layout.sizes[0], layout.sizes[2])
        which = np.concatenate([np.full(len(entries), k) for k, (_, entries) in enumerate(part)])
        entries = np.concatenate([entries for _, entries in part])
        blocks, rows, cols = entries.T
        found = _estimate(
            entries,
            (values[:, which, blocks, rows], steps[:, which, blocks, cols], here[blocks, rows]),
            forward.eps,
            known,
        )
        yield from (select(found, which == k) for k in range(len(part)))


def _rungs(known: Refined, finer: int) -> Array:
    """Return the three rungs that served the whole ladder best, coarsest first, and the finest one as a guard."""
    smooth = known.rung[known.nature == kinks.SMOOTH]
    finest = int(np.median(smooth)) if smooth.size else USUAL
    first = max(finest - 2, 0) + finer
    last = ladder.LONG - 1 if first + 2 >= ladder.RUNGS - 1 else ladder.RUNGS - 1
    first = min(first, last - 3)
    return np.array([first, first + 1, first + 2, last])


def _estimate(entries: Array, seen: tuple[Array, Array, Array], eps: float, known: Refined) -> Refined:
    """The derivative from three differences, with an error bar; a kink when the gap between sides stays."""
    values, steps, middle = seen
    n = len(values) // 2
    with np.errstate(all="ignore"):
        largest = np.abs(np.concatenate([values, middle[None]])).max(axis=0)
        noise = np.maximum(4 * eps * largest, float(np.nan_to_num(known.noise).max(initial=0.0)))
        series = ladder.Series(values[:3], values[n:-1], steps[:3], -steps[n:-1], middle, noise)
        found = ladder.two_sided(series)
        # three steps that agree beyond a pole say nothing of x itself; a much finer one shows it
        span = steps[n - 1] - steps[-1]
        apart = np.abs((values[n - 1] - values[-1]) / span - found.value) - ERROR_BARS * 2 * noise / span
        error = np.fmax(found.error, apart)
        right, left = (series.up - middle) / series.above, (middle - series.down) / series.below
        gap, slope = (right - left)[-2:], np.maximum(np.abs(right), np.abs(left))[-1]
        blur = 2 * noise / series.above[-1]
        stays = (np.abs(gap[1]) > 0.6 * np.abs(gap[0])) & (np.abs(gap[1]) > kinks.VISIBLE * slope + 4 * blur)
        low, high = np.minimum(right, left)[-1] - 2 * error, np.maximum(right, left)[-1] + 2 * error
    nature = np.where(np.isfinite(found.value), np.where(stays, kinks.KINK, kinks.SMOOTH), kinks.NOWHERE)
    unknown = np.full((ladder.RUNGS, len(entries)), np.nan)
    sides = np.where(stays, low, found.value - error), np.where(stays, high, found.value + error)
    return Refined(
        entries, found.value, error, *sides, nature, unknown, unknown, found.rung, noise, np.zeros(len(entries))
    )
