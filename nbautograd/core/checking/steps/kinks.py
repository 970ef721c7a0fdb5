"""Kinks, jumps, edges of the domain and staircases: where a derivative may not exist."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.central_differences import unit_scale
from nbautograd.core.checking.steps.ladder import LadderValues, one_sided_differences, two_sided_differences
from nbautograd.core.numerics.arrays import Array

SMOOTH, KINK, JUMP, EDGE_RIGHT, EDGE_LEFT, NOWHERE, STAIRCASE = range(7)
# The gap of the slopes on both sides, from one rung to the next finer one: at a kink it stays, at a jump it grows like
# 1 / h, so that the ratio of coarse to fine is 1 or 1/4; truncation and round-off blur both.
KINK_RATIO, JUMP_RATIO, SHARP_JUMP_RATIO = (0.6, 1.8), (0.1, 0.6), (0.2, 0.3)
CLEAR_JUMP = 100  # times the noise: a change of the values at the finest step that is no round-off
CLEAR_GAP = 3  # times what round-off makes of a gap
DEEP = 4  # rung down to which a gap must last to be at x itself

VISIBLE = 1e-3  # a gap smaller than this beside the slopes is round-off, or too small to matter

# of max(1, |x|), and so many to each side: about as far as the coarsest step of the ladder, and on
STEP, STEPS = 0.0573, 64
COLUMNS = 64  # that are looked at


def nature(series: LadderValues) -> Array:
    """Classify the function at x for each entry, by one of the constants above.

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


def _gaps(series: LadderValues) -> tuple[Array, Array]:
    """Return right slope - left slope, and how large round-off alone could make it; both (rungs, entries)."""
    right, left = one_sided_differences(series)
    return right - left, 4 * series.noise * (1 / series.above + 1 / series.below)


def _finest(series: LadderValues) -> Array:
    """Return the finest of three neighbouring rungs whose gaps stand out of round-off, or -1."""
    gap, noise = _gaps(series)
    clear = np.abs(gap) > CLEAR_GAP * noise
    three = clear[2:] & clear[1:-1] & clear[:-2]
    rung = np.arange(2, len(gap))[:, None]
    result: Array = np.where(three, rung, -1).max(axis=0)
    return result


def _persists(series: LadderValues) -> Array:
    """Return True where the gap lasts down to where round-off hides it, and far enough down to be at x."""
    gap, noise = _gaps(series)
    finest = _finest(series)
    here = np.maximum(finest, 0)[None]
    next_one = np.minimum(here + 1, len(gap) - 1)
    size = np.abs(np.take_along_axis(gap, here, axis=0)[0])
    slopes = np.abs(np.stack(one_sided_differences(series)))
    slope = np.take_along_axis(slopes.max(axis=0), here, axis=0)[0]
    hidden = CLEAR_GAP * np.take_along_axis(noise, next_one, axis=0)[0] >= size / 2
    result: Array = (finest >= DEEP) & ((finest == len(gap) - 1) | hidden) & (size > VISIBLE * slope)
    return result


def _grows(series: LadderValues) -> Array:
    """Return True where the central difference grows like 1/h to the finest step: a jump with f(x) half-way."""
    slopes = two_sided_differences(series)
    clear = np.abs(slopes[-1]) * series.above[-1] > CLEAR_JUMP * series.noise
    ratios = np.stack([slopes[-2] / slopes[-1], slopes[-3] / slopes[-2]])
    return np.asarray(clear & _between(ratios, SHARP_JUMP_RATIO))


def _by_slope(series: LadderValues) -> Array:
    """Tell kink, jump and smooth apart by how the last three gaps change from rung to rung."""
    gap, _ = _gaps(series)
    finest = np.maximum(_finest(series), 2)
    last, middle, first = (np.take_along_axis(gap, (finest - k)[None], axis=0)[0] for k in (0, 1, 2))
    ratios = np.stack([middle / np.where(last == 0, np.inf, last), first / np.where(middle == 0, np.inf, middle)])
    kink, jump = _between(ratios, KINK_RATIO), _between(ratios, JUMP_RATIO)
    return np.where(kink, KINK, np.where(jump, JUMP, SMOOTH))


def _between(ratios: Array, bounds: tuple[float, float]) -> Array:
    return np.asarray(((ratios > bounds[0]) & (ratios < bounds[1])).all(axis=0))


def lost_in_rounding(raw: FirstPass, still: Array) -> Array:
    """Return those of the entries at which f(x + h) equals f(x) where that is rounding inside, not the function.

    A function that really is constant here has a slope further on, or none at all; one that is rounded goes on in
    stairs: most of its changes stand alone.

    Args:
        still: where no step showed any change, a boolean array like the stored matrices.
    """
    found = np.zeros_like(still)
    forward, directions = raw.forward, raw.directions
    if not forward.inside:
        return found
    factors = np.arange(-STEPS, STEPS + 1.0)
    for column in directions.columns(np.flatnonzero(directions.counts(still))[:COLUMNS].tolist(), still):
        stairs, _ = directions.evaluate(forward, [column], factors, STEP * unit_scale(forward, directions.ij[1]))
        for side in (stairs[: STEPS + 1][::-1], stairs[STEPS:]):
            changes = np.diff(side, axis=0) != 0
            padded = np.pad(changes, ((1, 1), (0, 0)))
            alone = changes & ~padded[:-2] & ~padded[2:]
            hidden = changes.any(axis=0) & (2 * alone.sum(axis=0) > changes.sum(axis=0))
            found[tuple(column[1][hidden].T)] = True
    return found
