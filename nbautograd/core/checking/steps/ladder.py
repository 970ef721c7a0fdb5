"""The step ladder: finite differences at eleven steps, extrapolated, with an error bar per entry.

Plain central differences and Richardson's extrapolation of neighbours (L. F. Richardson, 1911) are all candidates for
the derivative. Truncation is estimated from the change to the next coarser step, round-off from how much the values
themselves are uncertain; the candidate with the smallest sum of both wins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.central_differences import unit_scale
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import ERROR_BARS
from nbautograd.core.numerics.directional import richardson

RUNGS, RATIO = 11, 4.0  # steps, and how much finer each is: from 6e-2 to 5e-8 of the scale of x
LONG_RUNGS = 19  # rungs where eleven are too wide still: down to 8e-13, some 4,000 spacings of the numbers at 1
REACH = 6  # of the finest rungs, at which slopes that go on growing are looked for
UNRESOLVED = 1e-3  # error bar, relative to the derivative, above which the long ladder is worth its points
COARSEST = 0.9173 * 2.0**-4  # no power of two, so that x + h uses all bits and granularity can be seen
# steps of few bits would be rounded alike at all points of a table, and the noise would cancel in its differences
TABLE = np.outer([1.0373 * 2.0**-26, 1.0787 * 2.0**-20, 0.9619 * 2.0**-14], [1.0, 2.0, 3.0, 4.0, 5.0]).reshape(-1)
LEFT = 1e-5  # of the fourth difference one distance further off: a smaller one may be what a smooth function leaves
LOST = 2e-3  # of f(x): a smaller step or last bit is digits lost on the way, a larger one the function's own
LEAST_STEP = 1e-14  # of a staircase whose values are about 0
FOURTH = np.array([1.0, -4.0, 6.0, -4.0, 1.0]) / np.sqrt(
    70.0
)  # keeps the size of independent noise: 70 = 1 + 16 + 36 + 16 + 1


def factors(rungs: int = RUNGS) -> Array:
    """Return the steps of the ladder relative to the scale of x, coarsest first."""
    result: Array = COARSEST * RATIO ** -np.arange(rungs, dtype=float)
    return result


def table(rungs: int = RUNGS) -> Array:
    """Return where the values are taken that show their noise: as far below the finest step for each ladder."""
    result: Array = TABLE * RATIO ** (RUNGS - rungs)
    return result


@dataclass(frozen=True)
class LadderValues:
    """Values of one output entry along one direction, for many entries at once.

    Attributes:
        up, down: f(x + h), f(x - h); shaped (rungs, entries).
        above, below: the steps that were really made; shaped (rungs, entries).
        middle: f(x), by entry.
        noise: how uncertain the values are, absolute, by entry.
    """

    up: Array
    down: Array
    above: Array
    below: Array
    middle: Array
    noise: Array


def series(values: Array, steps: Array, middle: Array, noise: Array) -> LadderValues:
    """Return the values and steps of all rungs up, then of all rungs down, as a series."""
    n = len(values) // 2
    return LadderValues(values[:n], values[n:], steps[:n], -steps[n:], middle, noise)


@dataclass(frozen=True)
class Estimate:
    """A derivative, its error bar and the finest rung that it was made from, by entry."""

    value: Array
    error: Array
    rung: Array


def two_sided_differences(series: LadderValues) -> Array:
    """Return the difference quotients of both sides, [f(x + h) - f(x - h)] / 2h, shaped (rungs, entries)."""
    slopes: Array = (series.up - series.down) / (series.above + series.below)
    return slopes


def one_sided_differences(series: LadderValues) -> tuple[Array, Array]:
    """Return [f(x + h) - f(x)] / h and [f(x) - f(x - h)] / h, each shaped (rungs, entries)."""
    return (series.up - series.middle) / series.above, (series.middle - series.down) / series.below


def curve(series: LadderValues, value: Array) -> tuple[Array, Array]:
    """Return the steps of the eleven rungs, and how far the central differences there are from a value."""
    slopes = two_sided_differences(series)[:RUNGS]
    # two equal numbers are still only known to the last bit
    last = np.finfo(float).eps * np.maximum(np.abs(slopes).max(axis=0), np.abs(value))
    return ((series.above + series.below) / 2)[:RUNGS], np.maximum(np.abs(slopes - value), last)


def two_sided(series: LadderValues) -> Estimate:
    """Return the derivative from both sides."""
    step = (series.above + series.below) / 2
    return _with_error_bar(two_sided_differences(series), series.noise / step, RATIO**2)


def one_sided(series: LadderValues, right: bool) -> Estimate:
    """Return the derivative from the right or from the left."""
    slopes = one_sided_differences(series)[0 if right else 1]
    return _with_error_bar(slopes, 2 * series.noise / (series.above if right else series.below), RATIO)


def beyond(series: LadderValues, right: bool) -> Estimate:
    """Return the derivative on one side of a jump, without the value at x itself."""
    values, steps = (series.up, series.above) if right else (series.down, -series.below)
    slopes = np.diff(values, axis=0) / np.diff(steps, axis=0)
    return _with_error_bar(slopes, 2 * series.noise / np.abs(np.diff(steps, axis=0)), RATIO)


def _with_error_bar(slopes: Array, round_off: Array, order: float) -> Estimate:
    """Return the slope or extrapolation with the smallest error bar, by entry, and that bar.

    The change |d1 - d0| from one rung to the next bounds what truncation leaves in d1. Round-off, noise / h, grows as
    truncation shrinks: their sum, the error bar, has its minimum somewhere on the ladder.

    Args:
        slopes: finite differences, coarsest first, shaped (rungs, entries).
        round_off: of each of them.
        order: RATIO**p, by which truncation shrinks from one rung to the next.
    """
    change = np.abs(np.diff(slopes, axis=0))
    plain = np.concatenate([change[:1], change / order]) + round_off
    extrapolated = richardson(slopes[:-1], slopes[1:], order)
    moved = np.abs(np.diff(extrapolated, axis=0)) / order
    moved[1:] = np.maximum(moved[1:], moved[:-1] / order)  # two rungs that agree by chance
    first = np.abs(extrapolated[:1] - slopes[1:2])
    sharp = np.concatenate([first, moved]) + round_off[1:] * (order + 1) / (order - 1)
    values = np.concatenate([slopes, extrapolated])
    errors = np.concatenate([_consistent(slopes, plain, round_off), _consistent(extrapolated, sharp, round_off[1:])])
    errors = np.where(np.isfinite(values) & np.isfinite(errors), errors, np.inf)
    pick = np.argmin(errors, axis=0)[None]
    value = np.take_along_axis(values, pick, axis=0)[0]
    error = np.take_along_axis(errors, pick, axis=0)[0]
    rung = np.where(pick[0] < len(slopes), pick[0], pick[0] - len(slopes) + 1)
    return Estimate(np.where(np.isfinite(error), value, np.nan), error, rung)


def _consistent(values: Array, errors: Array, round_off: Array) -> Array:
    """Return errors raised until each candidate agrees with all finer ones, as far as round-off lets that be seen.

    Coarse steps beyond a pole (an inverse of a nearly singular matrix) may agree with each other on a number far from
    the derivative at x; finer ones that differ by more than their round-off say so, and count against them.
    """
    raised = errors.copy()
    for finer in range(1, len(values)):
        sure = 2 if finer == 1 else ERROR_BARS
        apart = np.abs(values[finer:] - values[:-finer]) - sure * round_off[finer:]
        raised[:-finer] = np.maximum(raised[:-finer], np.where(apart < np.inf, apart, 0.0))
    return raised


def reach(series: LadderValues, value: Array, error: Array, few_bits: Array) -> Array:
    """Return how large a derivative may be that the ladder cannot see, 0 where its estimate is a clear one.

    Near a pole what looks like noise may be curvature, since the points of the noise table are too far apart as well.
    Then slopes go on growing at the finest steps, by more than a few last bits of the values make of them.

    Args:
        series: values along the ladder.
        value, error: the estimate.
        few_bits: the size of a few last bits of the values, by entry.
    """
    slopes = np.stack(one_sided_differences(series))
    apart = np.abs(np.nan_to_num(slopes - value, nan=0.0, posinf=0.0, neginf=0.0))
    grown = np.where(apart > few_bits / np.stack([series.above, series.below]), apart, 0.0)[:, -REACH:].max(axis=(0, 1))
    result: Array = np.where(error > UNRESOLVED * np.abs(value), grown, 0.0)
    return result


def noise_level(middle: Array, table: Array, series_values: Array, eps: float, known: Array) -> Array:
    """Return the noise estimate of the values: from their fourth differences on one side of x and their last bits.

    A k-th difference of a smooth function is O(h**k), that of independent noise of deviation s has the deviation
    s * sqrt(sum of squared binomials), sqrt(70) for k = 4: what is left at the closest points is noise. After ECNoise:
    Moré, J. J., Wild, S. M. (2011), Estimating computational noise, SIAM J. Sci. Comput. 33, 1292-1314.

    Args:
        middle: f(x), by entry.
        table: values at x + ``TABLE`` times the scale of x, shaped (15, entries).
        series_values: all values of the ladder, shaped (any, entries).
        eps: spacing of floating numbers at 1.
        known: how much two calls at x differed.
    """
    scatter = np.abs(np.einsum("t,stn->sn", FOURTH, table.reshape(3, 5, -1)))
    # the median of three samples of |noise| is about 2/3 of its deviation: 4 times that covers all but a few
    # what a smooth function leaves shrinks by 64**4 from one distance of the table to the next closer one
    plain = np.where(scatter[:2] > LEFT * scatter[1:], scatter[:2], 0.0).max(axis=0)
    noise = 4 * np.nan_to_num(np.fmax(np.median(scatter, axis=0), plain), nan=0.0) + known
    noise = np.maximum(noise, _grid(table.reshape(3, 5, -1)))
    size = np.nanmax(np.abs(np.nan_to_num(np.concatenate([middle[None], table]), posinf=0, neginf=0)), axis=0)
    # a value that underflowed is off by as much as the smallest number there is
    least = np.finfo(np.float64).smallest_subnormal
    highest: Array = np.maximum.reduce([noise, eps * size + least, granularity(series_values)])
    return highest


def _grid(table: Array) -> Array:
    """Estimate the spacing of the values where a lost digit left them on a coarse grid; else 0.

    On a grid the second differences at the closest points are whole steps of it, far above what curvature makes of
    them; the fourth ones may cancel.
    """
    bends = np.abs(np.diff(table[:2], n=2, axis=1)).max(axis=1)
    curved = bends[1] * float((TABLE[0] / TABLE[5]) ** 2)
    return np.nan_to_num(np.where(bends[0] > 4 * curved, bends[0] / 2, 0.0), nan=0.0, posinf=0.0)


def wobble(series: LadderValues, most: float) -> Array:
    """Estimate the noise of the values from slopes that change between rungs by more than truncation lets them.

    Truncation times the step shrinks by 64 from one rung to the next; what does not is round-off. It shows digits that
    were lost on the way to a small result, where neighbouring values happen to be off alike.

    Args:
        series: values along the ladder.
        most: what is larger is no round-off, but a kink or the like close by.
    """
    moved = np.abs(np.diff(two_sided_differences(series), axis=0)) * (series.above + series.below)[1:] / 2
    found = np.where((moved[1:] > moved[:-1] / 8) & (moved[1:] <= most), moved[1:], 0.0)
    highest: Array = found.max(axis=0)
    return highest


def granularity(values: Array) -> Array:
    """Return the last bit that any value uses, as of float32 numbers inside float64; 0 where that shows nothing."""
    mantissa, exponent = np.frexp(np.nan_to_num(values, posinf=0.0, neginf=0.0))
    whole = (mantissa * 2.0**53).astype(np.int64)
    last = np.where(whole == 0, np.inf, np.ldexp((whole & -whole).astype(float), exponent - 53))
    grain = last.min(axis=0)
    ordered = np.sort(values, axis=0)
    distinct = (np.diff(ordered, axis=0) != 0).sum(axis=0)
    small = grain <= LOST * np.nanmax(np.abs(np.nan_to_num(values)), axis=0)
    return np.where(np.isfinite(grain) & (distinct >= 3) & small, grain, 0.0)


def steps_in(middle: Array, values: Array) -> Array:
    """Return the smallest step of a staircase: values near x are exactly f(x), others a little off; else 0.

    A step counts only when it is small beside f(x), as lost digits are; a larger one is the function's own.

    Args:
        middle: f(x), by entry.
        values: f(x + h) of all rungs, then f(x - h); shaped (2 * rungs, entries).
    """
    gaps = np.abs(values - middle)
    flat = (gaps.reshape(2, len(gaps) // 2, -1)[:, -3:] == 0).all(axis=(0, 1))
    smallest = np.where(gaps > 0, gaps, np.inf).min(axis=0)
    lost = (smallest <= LOST * np.abs(middle)) | (smallest <= LEAST_STEP)
    return np.where(flat & lost & np.isfinite(smallest), smallest, 0.0)


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
