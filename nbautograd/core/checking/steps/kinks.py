"""Kinks, jumps, edges and flats: what a point is like where the derivative may not exist."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.steps.ladder import Series
from nbautograd.core.numerics.arrays import Array

SMOOTH, KINK, JUMP, EDGE_RIGHT, EDGE_LEFT, NOWHERE, STAIRCASE = range(7)
VISIBLE = 1e-3  # a gap smaller than this beside the slopes is round-off, or too small to matter


def nature(series: Series) -> Array:
    """For each entry what the function is like at x, one of the constants above.

    The gap between right and left slope, [f(x+h) + f(x-h) - 2 f(x)] / h, shrinks with h where f is smooth, stays at a
    kink and grows at a jump; it counts only when this goes on down to the finest step that round-off leaves usable.
    """
    found = np.where(_persists(series), _by_slope(series), SMOOTH)
    found = np.where(_grows(series), JUMP, found)
    right, left = (np.isfinite(v[len(v) // 2 :]).any(axis=0) for v in (series.up, series.down))
    both = np.isfinite(series.up[-3:] - series.down[-3:]).any(axis=0)
    here = np.isfinite(series.middle)
    found = np.where(~both & here & right, EDGE_RIGHT, found)
    found = np.where(~both & here & left & ~right, EDGE_LEFT, found)
    return np.where(~here | (~right & ~left), NOWHERE, found)


def _gaps(series: Series) -> tuple[Array, Array]:
    """(right slope - left slope, how large round-off alone could make it), shaped (rungs, entries)."""
    right = (series.up - series.middle) / series.above
    left = (series.middle - series.down) / series.below
    return right - left, 4 * series.noise * (1 / series.above + 1 / series.below)


def _finest(series: Series) -> Array:
    """The finest of three neighbouring rungs whose gaps stand out of round-off, or -1."""
    gap, noise = _gaps(series)
    clear = np.abs(gap) > 3 * noise
    three = clear[2:] & clear[1:-1] & clear[:-2]
    rung = np.arange(2, len(gap))[:, None]
    result: Array = np.where(three, rung, -1).max(axis=0)
    return result


def _persists(series: Series) -> Array:
    """Return True where the gap lasts down to where round-off hides it, and far enough down to be at x."""
    gap, noise = _gaps(series)
    finest = _finest(series)
    here = np.maximum(finest, 0)[None]
    next_one = np.minimum(here + 1, len(gap) - 1)
    size = np.abs(np.take_along_axis(gap, here, axis=0)[0])
    slopes = np.abs(
        np.stack([(series.up - series.middle) / series.above, (series.middle - series.down) / series.below])
    )
    slope = np.take_along_axis(slopes.max(axis=0), here, axis=0)[0]
    hidden = 3 * np.take_along_axis(noise, next_one, axis=0)[0] >= size / 2
    result: Array = (finest >= 4) & ((finest == len(gap) - 1) | hidden) & (size > VISIBLE * slope)
    return result


def _grows(series: Series) -> Array:
    """Return True where the central difference grows like 1/h to the finest step: a jump with f(x) half-way."""
    slopes = (series.up - series.down) / (series.above + series.below)
    clear = np.abs(slopes[-1]) * series.above[-1] > 100 * series.noise
    ratios = np.stack([slopes[-2] / slopes[-1], slopes[-3] / slopes[-2]])
    result: Array = clear & ((ratios > 0.2) & (ratios < 0.3)).all(axis=0)
    return result


def _by_slope(series: Series) -> Array:
    """Kink, jump or smooth by how the last three gaps change from rung to rung."""
    gap, _ = _gaps(series)
    finest = np.maximum(_finest(series), 2)
    last, middle, first = (np.take_along_axis(gap, (finest - k)[None], axis=0)[0] for k in (0, 1, 2))
    ratios = np.stack([middle / np.where(last == 0, np.inf, last), first / np.where(middle == 0, np.inf, middle)])
    kink = ((ratios > 0.6) & (ratios < 1.8)).all(axis=0)
    jump = ((ratios > 0.1) & (ratios < 0.6)).all(axis=0)
    return np.where(kink, KINK, np.where(jump, JUMP, SMOOTH))
