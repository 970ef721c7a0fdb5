"""The evaluator of the step ladder: a second look at the entries where the first pass disagrees.

Entries that nearly agree get one difference of fourth order; the others the whole ladder, or, where they are many,
three of its steps. All take their values by ``Directions.evaluate`` and their derivative and error bar from ``ladder``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.central_differences import Columns, Directions, unit_scale
from nbautograd.core.checking.jacobian.forward_values import CHUNK_ELEMENTS, Values
from nbautograd.core.checking.jacobian.layout import BlockLayout
from nbautograd.core.checking.steps import ladder
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import ERROR_BARS, SMALL_IN_ROW
from nbautograd.core.numerics.directional import richardson

POINTS = 2 * ladder.RUNGS + len(ladder.TABLE)  # of one evaluation: two per rung, and the table for the noise
LOST = 64  # last bits
SINGLE = 2.0**-22  # steps this small beside the largest value come from single precision inside, not from a staircase
STAYING = 0.6  # of the gap at twice the step, which curvature halves, and a kink leaves as it is
CLEAR = 1e-3  # an error bar no larger than this, relative to the derivative, makes it clear
STAIR = 2  # spacings of the numbers that values pass through: a step this small is their rounding
NEAR_ZERO = 0.05  # where |x| is smaller than this, a second ladder is scaled by |x|
TINIEST = 1e-280  # of an input: steps that are parts of a smaller one come near the least normal number, 2e-308

USUAL = 5  # the rung that serves a smooth function best
CHUNK = 64  # directions at once, of three steps or of a difference of fourth order

# Steps of the difference of fourth order, relative to eps ** (1/5) max(1, |x|), where truncation h ** 4 and round-off
# eps / h balance
STEP_SIZES = 1.0, 1 / 16, 8.0  # for entries that nearly agree
FINEST = 1 / 4096  # for the others, which may lie beside a kink
FOUR_POINTS = np.array([1.0, -1.0, 2.0, -2.0])
RESOLVED = 64  # spacings of the numbers that values pass through: in a smaller step f(x + h) may equal f(x)
FIRST = 4  # directions at once; where the first few settle nothing, the others are not tried

SAMPLED_FROM = 2_000  # entries that differ from which on a sample of them is refined first
WORST, DRAWN = 100, 100  # entries of a sample, where many differ: the largest differences, and others by chance
ALIKE = 0.5  # a difference of at least so much of the smallest one that is known to be an error is the same error
CHEAP_ENTRIES = 128  # entries that always get the whole ladder, where many points are evaluated at once
FIRST_COLUMNS = 2  # that get the whole ladder first, where more entries differ: they show which steps serve best
MOST_COLUMNS = 400  # columns that get the whole ladder after three steps were not sharp enough
SHARP = 1e-7  # an error bar larger than this, relative to the derivative, is worth another look
FINER = 3  # rungs down for three steps where the first three are not sharp enough

Agrees = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class Refined:
    """Derivatives of some entries by the step ladder.

    Attributes:
        entries: (block, row, column) of each, shaped (number, 3).
        value, error: the derivative and its error bar.
        low, high: the one-sided derivatives at a kink, jump or edge (their error added); else the value.
        nature: see ``kinks``.
        steps, errors: for each entry the steps of the ladder and the difference from the value there.
        rung: the finest step that the value was made from, as a number of the ladder's rung.
        noise: how uncertain the values of the function are there.
        reach: how large a derivative may be that the ladder could not see; 0 where its value is a clear one.
    """

    entries: Array
    value: Array
    error: Array
    low: Array
    high: Array
    nature: Array
    steps: Array
    errors: Array
    rung: Array
    noise: Array
    reach: Array

    def where(self, take: Array, other: Refined) -> Refined:
        """Return the other's derivatives of the entries to take, and the own ones of the rest."""
        chosen = {name: np.where(take, getattr(other, name), getattr(self, name)) for name in FIELDS}
        return Refined(entries=self.entries, **chosen)

    def select(self, which: Array) -> Refined:
        """Return some of the entries, by a boolean array."""
        return Refined(entries=self.entries[which], **{name: getattr(self, name)[..., which] for name in FIELDS})


FIELDS = tuple(field.name for field in dataclasses.fields(Refined) if field.name != "entries")


def concatenate(looks: list[Refined]) -> Refined:
    """Concatenate one or more ``Refined`` results."""
    by_name = {name: np.concatenate([getattr(look, name) for look in looks], axis=-1) for name in FIELDS}
    return Refined(entries=np.concatenate([look.entries for look in looks]), **by_name)


# the whole ladder


def evaluate_ladder(forward: Values, directions: Directions, columns: Columns) -> Iterator[Refined]:
    """Differentiate entries by the whole ladder, some directions at a time."""
    i, j = directions.ij
    size = forward.points[j].size + forward.values[i].size
    most = max(1, allowed_elements(CHUNK_ELEMENTS) // (POINTS * max(1, size)))
    for start in range(0, len(columns), most):
        yield _whole_ladder(forward, directions, columns[start : start + most])


def _whole_ladder(forward: Values, directions: Directions, columns: Columns) -> Refined:
    """Differentiate entries by eleven rungs, by the long ladder and by one scaled to |x| where these help."""
    j, layout = directions.ij[1], directions.layout
    scale, point = unit_scale(forward, j), np.abs(np.nan_to_num(forward.points[j]))
    found = _evaluate(forward, directions, columns, scale)
    unresolved = (found.reach > 0) & (ladder.factors(ladder.LONG_RUNGS)[-1] > RESOLVED * forward.eps)
    if unresolved.any():
        which = np.repeat(np.arange(len(columns)), [len(entries) for _, entries in columns])
        rest = [(columns[k][0], found.entries[unresolved & (which == k)]) for k in np.unique(which[unresolved])]
        longer = _evaluate(forward, directions, rest, scale, ladder.LONG_RUNGS)
        by_name = {name: getattr(found, name).copy() for name in FIELDS}
        for name, array in by_name.items():
            array[..., unresolved] = getattr(longer, name)
        found = Refined(entries=found.entries, **by_name)
    size = layout.cols(point[None])[0][found.entries[:, 0], found.entries[:, 2]]
    small = (size < NEAR_ZERO) & (size > TINIEST)
    if small.any():
        near = _evaluate(forward, directions, columns, np.where(point > 0, point, 1.0))
        # a kink, a jump or an edge further away than |x| is not at x: what is smooth and clear close by counts
        clear = (near.nature == ladder.SMOOTH) & (near.error <= CLEAR * np.abs(near.value))
        better = (near.error < found.error) | (clear & (found.nature != ladder.SMOOTH))
        found = found.where(small & (near.reach <= found.reach) & better, near)
    return found


def _evaluate(
    forward: Values, directions: Directions, columns: Columns, scale: Array, rungs: int = ladder.RUNGS
) -> Refined:
    (i, _), layout = directions.ij, directions.layout
    steps = ladder.factors(rungs)
    factors = np.concatenate([steps, -steps, ladder.table(rungs)])
    values, taken = directions.evaluate(forward, columns, factors, scale)
    entries = np.concatenate([entries for _, entries in columns])
    middle = layout.rows(forward.values[i][None])[0][entries[:, 0], entries[:, 1]]
    known = layout.rows(forward.noise[i][None])[0][entries[:, 0], entries[:, 1]]
    largest = float(np.abs(np.nan_to_num(forward.values[i])).max(initial=0.0))
    return _estimate(entries, (values, taken[: 2 * rungs]), (middle, known, forward.eps, largest))


def _estimate(entries: Array, seen: tuple[Array, Array], at: tuple[Array, Array, float, float]) -> Refined:
    """Return derivative, error bar and nature of each entry.

    Args:
        entries: (block, row, column) of each.
        seen: values along the ladder and its table of noise, and the steps of the ladder.
        at: f(x) and how much two calls at x differed, by entry; spacing of floating numbers at 1; largest |f(x)|.
    """
    (values, steps), (middle, known, eps, largest) = seen, at
    n = len(steps)
    with np.errstate(all="ignore"):
        noise = ladder.noise_level(middle, values[n:], values[:n], eps, known)
        stairs = ladder.steps_in(middle, values[:n])
        noise = np.maximum(noise, stairs)
        series = ladder.series(values[:n], steps, middle, noise)
        lost = LOST * eps * max(1.0, largest)  # what a few last bits of what a value was made of come to
        series = dataclasses.replace(series, noise=np.maximum(noise, ladder.wobble(series, lost)))
        estimate, nature = ladder.two_sided(series), ladder.nature(series)
        kind = np.where(stairs > max(SINGLE, STAIR * eps) * largest, ladder.STAIRCASE, nature)
        low, high, value, error = _sides(series, estimate, kind)
        reach = ladder.reach(series, value, error, LOST * eps * np.maximum(np.abs(middle), noise))
        curve = ladder.curve(series, value)
    return Refined(entries, value, error, low, high, kind, *curve, estimate.rung, series.noise, reach)


def _sides(series: ladder.LadderValues, both: ladder.Estimate, kind: Array) -> tuple[Array, Array, Array, Array]:
    """Return lower and upper bound of the derivatives around x, the best value, and its error bar."""
    pairs = {
        ladder.KINK: (ladder.one_sided(series, False), ladder.one_sided(series, True)),
        ladder.JUMP: (ladder.beyond(series, False), ladder.beyond(series, True)),
    }
    left, right = pairs[ladder.KINK]
    value = np.select([kind == ladder.EDGE_RIGHT, kind == ladder.EDGE_LEFT], [right.value, left.value], both.value)
    error = np.select([kind == ladder.EDGE_RIGHT, kind == ladder.EDGE_LEFT], [right.error, left.error], both.error)
    low, high = value - error, value + error
    stairs = kind == ladder.STAIRCASE
    low = np.where(stairs, np.minimum(value - ERROR_BARS * error, 0.0), low)
    high = np.where(stairs, np.maximum(value + ERROR_BARS * error, 0.0), high)
    for which, (one, other) in pairs.items():
        at = kind == which
        low = np.where(at, np.minimum(one.value - 2 * one.error, other.value - 2 * other.error), low)
        high = np.where(at, np.maximum(one.value + 2 * one.error, other.value + 2 * other.error), high)
        error = np.where(at, np.maximum(one.error, other.error), error)
        value = np.where(at, (one.value + other.value) / 2, value)
    return low, high, value, error


# three steps and a guard


def evaluate_three_steps(
    forward: Values, directions: Directions, columns: Columns, known: Refined, finer: int = 0
) -> Iterator[Refined]:
    """Differentiate the entries of many columns at three steps, column by column.

    Args:
        directions: how its input is moved.
        columns: the directions, each with its entries.
        known: what the whole ladder found for other columns: which steps served best, and how noisy values are.
        finer: take steps so many rungs below those.
    """
    i, j = directions.ij
    *three, guard = ladder.factors(ladder.LONG_RUNGS)[_rungs(known, finer)]
    factors = np.concatenate([three, np.negative(three), [guard, -guard]])
    here = directions.layout.rows(forward.values[i][None])[0]
    for start in range(0, len(columns), CHUNK):
        chunk = columns[start : start + CHUNK]
        values, steps = directions.evaluate(forward, chunk, factors, unit_scale(forward, j))
        entries = np.concatenate([entries for _, entries in chunk])
        found = _estimate_of_three(
            entries, (values, steps, here[entries[:, 0], entries[:, 1]]), forward.eps, known.noise
        )
        which = np.repeat(np.arange(len(chunk)), [len(entries) for _, entries in chunk])
        yield from (found.select(which == k) for k in range(len(chunk)))


def _rungs(known: Refined, finer: int) -> Array:
    """Return the three rungs that served the whole ladder best, coarsest first, and the finest one as a guard."""
    smooth = known.rung[known.nature == ladder.SMOOTH]
    finest = int(np.median(smooth)) if smooth.size else USUAL
    first = max(finest - 2, 0) + finer
    last = ladder.LONG_RUNGS - 1 if first + 2 >= ladder.RUNGS - 1 else ladder.RUNGS - 1
    first = min(first, last - 3)
    return np.array([first, first + 1, first + 2, last])


def _estimate_of_three(entries: Array, seen: tuple[Array, Array, Array], eps: float, noises: Array) -> Refined:
    """Return the derivative from three differences, with an error bar; a kink where the gap between the sides stays.

    Args:
        entries: (block, row, column) of each.
        seen: values and steps of three rungs up, the same down, the guard up and down; and f(x).
        eps: spacing of floating numbers at 1.
        noises: how uncertain the values of other entries are.
    """
    values, steps, middle = seen
    with np.errstate(all="ignore"):
        largest = np.abs(np.concatenate([values, middle[None]])).max(axis=0)
        noise = np.maximum(4 * eps * largest, float(np.nan_to_num(noises).max(initial=0.0)))
        series = ladder.series(values[:6], steps[:6], middle, noise)
        found = ladder.two_sided(series)
        # three steps that agree beyond a pole say nothing of x itself; a much finer one shows it
        span = steps[6] - steps[7]
        apart = np.abs((values[6] - values[7]) / span - found.value) - ERROR_BARS * 2 * noise / span
        error = np.fmax(found.error, apart)
        right, left = ladder.one_sided_differences(series)
        gap, slope = (right - left)[-2:], np.maximum(np.abs(right), np.abs(left))[-1]
        blur = 2 * noise / series.above[-1]
        stays = (np.abs(gap[1]) > STAYING * np.abs(gap[0])) & (np.abs(gap[1]) > ladder.VISIBLE * slope + 4 * blur)
        low, high = np.minimum(right, left)[-1] - 2 * error, np.maximum(right, left)[-1] + 2 * error
    nature = np.where(np.isfinite(found.value), np.where(stays, ladder.KINK, ladder.SMOOTH), ladder.NOWHERE)
    unknown = np.full((ladder.RUNGS, len(entries)), np.nan)
    sides = np.where(stays, low, found.value - error), np.where(stays, high, found.value + error)
    return Refined(
        entries, found.value, error, *sides, nature, unknown, unknown, found.rung, noise, np.zeros(len(entries))
    )


# one difference of fourth order


def agreeing_entries(raw: FirstPass, chosen: tuple[Array, Array], agrees: Agrees) -> tuple[Array, Array]:
    """Find the chosen entries that agree with backward by one difference of fourth order.

    Most entries that the first pass leaves in doubt are small ones whose difference was blurred by round-off. Four
    points at a wider step say the same to three more digits, where the ladder would take 37; a few need a finer or a
    wider one. Those that are far from agreeing may lie beside a kink: a very fine step stays on their side of it.

    Args:
        raw: the block; it must have directions.
        chosen: which entries to look at, boolean arrays like the stored matrices: those that nearly agree, and others.
        agrees: for entries (block, row, column) and derivatives, where these are what backward says.

    Returns:
        The entries that agree, shaped (number, 3), and their derivatives.
    """
    near, others = (each.copy() for each in chosen)
    looks = [(np.empty((0, 3), dtype=int), np.empty(0))]
    for left, size in [*((near, size) for size in STEP_SIZES), (others, FINEST)]:
        for entries, values in _agreeing_at_step(raw, left, size, agrees):
            looks.append((entries, values))
            left[tuple(entries.T)] = False
    entries, values = map(np.concatenate, zip(*looks, strict=True))
    return entries, values


def _agreeing_at_step(raw: FirstPass, chosen: Array, size: float, agrees: Agrees) -> Iterator[tuple[Array, Array]]:
    """Yield the entries that agree at one size of step, and their derivatives, some directions at a time.

    These are Richardson's extrapolation of two central differences, at h and 2h.
    """
    forward = raw.forward
    step = max(size * float(forward.eps ** (1 / 5)), RESOLVED * forward.eps)
    scale = unit_scale(forward, raw.directions.ij[1])
    waiting, most = np.flatnonzero(raw.directions.counts(chosen)).tolist(), FIRST
    while waiting:
        columns = raw.directions.columns(waiting[:most], chosen)
        waiting, most = waiting[most:], CHUNK
        entries = np.concatenate([entries for _, entries in columns])
        ends, steps = raw.directions.evaluate(forward, columns, step * FOUR_POINTS, scale)
        with np.errstate(all="ignore"):
            near, far = (ends[0] - ends[1]) / (steps[0] - steps[1]), (ends[2] - ends[3]) / (steps[2] - steps[3])
            values = richardson(far, near, 2.0**2)
        good = agrees(entries, values)
        yield entries[good], values[good]
        if not good.any():
            return


# which entries get which


def sample_of(chosen: Array, differences: Array, seed: int) -> Array:
    """Return a boolean array of the chosen entries; of more than ``SAMPLED_FROM`` the worst, and others by chance.

    Args:
        chosen: boolean, like the stored matrices.
        differences: absolute differences of the two Jacobians, like the stored matrices.
    """
    at = np.flatnonzero(chosen)
    if len(at) <= SAMPLED_FROM:
        return chosen
    size = np.nan_to_num(differences.reshape(-1)[at], nan=np.inf)
    order = np.argpartition(-size, WORST)
    drawn = draws.array_generator(seed, "sample").choice(order[WORST:], DRAWN, replace=False)
    sample = np.zeros_like(chosen)
    sample.reshape(-1)[at[np.concatenate([order[:WORST], drawn])]] = True
    return sample


def refine(raw: FirstPass, chosen: Array) -> Refined:
    """Run the ladder for the chosen entries, a boolean array like the stored matrices.

    Where that would take more points than central differences of everything, some columns get the whole ladder, the
    others the three steps that served those best, and again the whole ladder where these are not sharp enough.
    """
    forward, directions = raw.forward, raw.directions
    counts = directions.counts(chosen)
    by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist()
    columns = directions.columns(by_count, chosen)
    cheap = counts.sum() <= CHEAP_ENTRIES if forward.batched else len(columns) <= forward.left // POINTS
    whole = len(columns) if cheap else min(FIRST_COLUMNS, len(columns))
    looks = list(evaluate_ladder(forward, directions, columns[:whole]))
    return concatenate(looks + _by_three_steps(raw, columns[whole:], concatenate(looks)))


def _by_three_steps(raw: FirstPass, columns: Columns, known: Refined) -> list[Refined]:
    forward, directions = raw.forward, raw.directions
    looks = list(evaluate_three_steps(forward, directions, columns, known))
    blurred = [k for k, look in enumerate(looks) if not _is_sharp(look, raw.matrices.analytical)]
    finer = evaluate_three_steps(forward, directions, [columns[k] for k in blurred], known, FINER)
    for k, look in zip(blurred, finer, strict=True):
        looks[k] = looks[k].where(look.error < looks[k].error, look)
    most = MOST_COLUMNS if forward.batched else max(FIRST_COLUMNS, forward.left // POINTS)
    rest = [k for k in blurred if not _is_sharp(looks[k], raw.matrices.analytical)][:most]
    done = [look for k, look in enumerate(looks) if k not in set(rest)]
    return [*done, *evaluate_ladder(forward, directions, [columns[k] for k in rest])]


def _is_sharp(look: Refined, analytical: Array) -> bool:
    size = np.maximum(np.abs(look.value), np.abs(np.nan_to_num(analytical[tuple(look.entries.T)])))
    sharp = look.error <= SHARP * np.maximum(size, SMALL_IN_ROW * np.nan_to_num(size).max(initial=0.0))
    return bool(((look.nature == ladder.SMOOTH) & sharp).all())


def convergence_curve(raw: FirstPass) -> tuple[Array, Array]:
    """Return steps and errors of differences at the entry of a block that differs most from backward: a V."""
    apart = np.abs(raw.matrices.stored("difference"))
    if not np.isfinite(apart).any():
        return np.empty(0), np.empty(0)
    block, row, col = np.unravel_index(int(np.nanargmax(apart)), apart.shape)
    layout, forward, (i, j) = raw.matrices.layout, raw.forward, raw.directions.ij
    entry = np.array([[0, layout.row_ids[block, row], layout.col_ids[block, col]]])
    dense = BlockLayout(layout.output_shape, layout.input_shape)
    alone = Directions((i, j), dense, (entry[0, 2:],))  # other elements stay: what they do is not asked
    steps = ladder.factors()
    values, taken = alone.evaluate(forward, [(0, entry)], np.concatenate([steps, -steps]), unit_scale(forward, j))
    middle = forward.values[i].reshape(-1)[entry[:, 1]]
    with np.errstate(all="ignore"):
        series = ladder.series(values, taken, middle, forward.eps * np.abs(middle))
        curve = ladder.curve(series, ladder.two_sided(series).value)
    return curve[0][:, 0], curve[1][:, 0]
