"""The whole ladder climbed along some directions, for the entries that these move."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.jacobian.central_differences import CHUNK_ELEMENTS, Directions
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.steps import kinks, ladder
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import ERROR_BARS

POINTS = 2 * ladder.RUNGS + len(
    ladder.TABLE
)  # of one evaluation of the ladder: two per rung, and the table for the noise
LOST = 64  # last bits
SINGLE = 2.0**-22  # steps this small beside the largest value come from single precision inside, not from a staircase
CLEAR = 1e-3  # an error bar no larger than this, relative to the derivative, makes it clear
STAIR = 2  # spacings of the numbers that values pass through: a step this small is their rounding
NEAR_ZERO = 0.05  # where |x| is smaller than this, a second ladder is scaled by |x|
LEAST = 1e-280  # of an input: steps that are parts of a smaller one come near the least normal number, 2e-308


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


FIELDS = tuple(field.name for field in dataclasses.fields(Refined) if field.name != "entries")


def concatenate(parts: list[Refined]) -> Refined:
    """All entries of several looks in one."""
    if not parts:
        none = np.empty(0)
        wide = np.empty((ladder.RUNGS, 0))
        whole = none.astype(int)
        return Refined(np.empty((0, 3), dtype=int), none, none, none, none, whole, wide, wide, whole, none, none)
    by_name = {name: np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in FIELDS}
    return Refined(entries=np.concatenate([p.entries for p in parts]), **by_name)


def select(found: Refined, which: Array) -> Refined:
    """Some of the entries, by a boolean array."""
    by_name = {name: getattr(found, name)[..., which] for name in FIELDS}
    return Refined(entries=found.entries[which], **by_name)


def evaluate_ladder(
    forward: Values, directions: Directions, ij: tuple[int, int], columns: Sequence[tuple[int, Array]]
) -> Iterator[Refined]:
    """The ladder for some entries (block, row, column) of several directions, given by their numbers."""
    size = forward.points[ij[1]].size + forward.values[ij[0]].size
    most = max(1, allowed_elements(CHUNK_ELEMENTS) // (POINTS * max(1, size)))
    for start in range(0, len(columns), most):
        yield _evaluate_direction(forward, directions, ij, columns[start : start + most])


def _evaluate_direction(
    forward: Values, directions: Directions, ij: tuple[int, int], columns: Sequence[tuple[int, Array]]
) -> Refined:
    point = np.abs(np.nan_to_num(forward.points[ij[1]]))
    found = _evaluate_once(forward, directions, ij, columns, np.maximum(1.0, point))
    layout = directions.layout
    small = layout.cols(point[None])[0][found.entries[:, 0], found.entries[:, 2]]
    again = (small < NEAR_ZERO) & (small > LEAST)
    wide = found.reach > 0
    if wide.any():
        found = _resolved(found, wide, forward, directions, ij, columns, np.maximum(1.0, point))
    if again.any():
        closer = _evaluate_once(forward, directions, ij, columns, np.where(point > 0, point, 1.0))
        # a kink, a jump or an edge further away than |x| is not at x: what is smooth and clear close by counts
        clear = (closer.nature == kinks.SMOOTH) & (closer.error <= CLEAR * np.abs(closer.value))
        near = clear & (found.nature != kinks.SMOOTH)
        found = _choose(found, closer, again & (closer.reach <= found.reach) & ((closer.error < found.error) | near))
    return found


def _resolved(
    found: Refined, wide: Array, forward: Values, directions: Directions, ij: tuple[int, int],
    columns: Sequence[tuple[int, Array]], scale: Array,
) -> Refined:  # fmt: skip
    """Return the entries with those taken from the long ladder at which the finest steps were too wide still."""
    which = np.concatenate([np.full(len(entries), k) for k, (_, entries) in enumerate(columns)])
    chosen = [(columns[k][0], found.entries[wide & (which == k)]) for k in np.unique(which[wide])]
    longer = _evaluate_once(forward, directions, ij, chosen, scale, ladder.LONG)
    by_name = {name: getattr(found, name).copy() for name in FIELDS}
    for name, array in by_name.items():
        array[..., wide] = getattr(longer, name)
    return Refined(entries=found.entries, **by_name)


def sharper(first: Refined, second: Refined) -> Refined:
    """Of two looks at the same entries the one with the smaller error bar, entry by entry."""
    return _choose(first, second, second.error < first.error)


def _choose(first: Refined, second: Refined, take: Array) -> Refined:
    picked = {name: np.where(take, getattr(second, name), getattr(first, name)) for name in FIELDS}
    return Refined(entries=first.entries, **picked)


def _evaluate_once(
    forward: Values,
    directions: Directions,
    ij: tuple[int, int],
    columns: Sequence[tuple[int, Array]],
    scale: Array,
    rungs: int = ladder.RUNGS,
) -> Refined:
    i, j = ij
    which = np.concatenate([np.full(len(entries), k) for k, (_, entries) in enumerate(columns)])
    entries = np.concatenate([entries for _, entries in columns])
    moved = directions.masks([number for number, _ in columns]) * scale
    point, layout = forward.points[j], directions.layout
    climbs = np.concatenate([ladder.factors(rungs), -ladder.factors(rungs), ladder.table(rungs)])
    values, steps = np.empty((len(climbs), len(entries))), np.empty((len(climbs), len(entries)))
    most = max(1, allowed_elements(CHUNK_ELEMENTS) // max(1, moved.size + len(columns) * forward.values[i].size))
    for start in range(0, len(climbs), most):  # of many elements only those that are asked for are kept
        part = slice(start, start + most)
        wanted = (climbs[part].reshape(-1, 1, *[1] * point.ndim) * moved).reshape(-1, *point.shape)
        points = forward.rounded(j, point + wanted)
        for found, every, axis in (
            (values, layout.rows(forward.at(j, points)[i]), 1),
            (steps, layout.cols(np.where(np.isfinite(point), points - point, wanted)), 2),
        ):
            by_column = every.reshape(-1, len(columns), *every.shape[1:])
            found[part] = by_column[:, which, entries[:, 0], entries[:, axis]]
    middle = layout.rows(forward.values[i][None])[0][entries[:, 0], entries[:, 1]]
    known = layout.rows(forward.noise[i][None])[0][entries[:, 0], entries[:, 1]]
    return _judge(entries, values, steps, (middle, known, forward.eps, _largest(forward, i)))


def _largest(forward: Values, i: int) -> float:
    return float(np.abs(np.nan_to_num(forward.values[i])).max(initial=0.0))


def _judge(entries: Array, values: Array, steps: Array, at: tuple[Array, Array, float, float]) -> Refined:
    middle, known, eps, largest = at
    n = (len(values) - len(ladder.TABLE)) // 2
    with np.errstate(all="ignore"):
        noise = ladder.uncertainty(middle, values[2 * n :], values[: 2 * n], eps, known)
        stairs = ladder.steps_in(middle, values[: 2 * n])
        noise = np.maximum(noise, stairs)
        series = ladder.Series(values[:n], values[n : 2 * n], steps[:n], -steps[n : 2 * n], middle, noise)
        lost = LOST * eps * max(1.0, largest)  # what a few last bits of what a value was made of come to
        series = dataclasses.replace(series, noise=np.maximum(noise, ladder.wobble(series, lost)))
        estimate, nature = ladder.two_sided(series), kinks.nature(series)
        kind = np.where(stairs > max(SINGLE, STAIR * eps) * largest, kinks.STAIRCASE, nature)
        low, high, value, error = _sides(series, estimate, kind)
        reach = ladder.reach(series, value, error, LOST * eps * np.maximum(np.abs(middle), noise))
        slopes = ladder.central(series)[: ladder.RUNGS]
        # two equal numbers are still only known to the last bit
        last = np.finfo(float).eps * np.maximum(np.abs(slopes).max(axis=0), np.abs(value))
        errors = np.maximum(np.abs(slopes - value), last)
    steps = (series.above + series.below)[: ladder.RUNGS] / 2
    return Refined(entries, value, error, low, high, kind, steps, errors, estimate.rung, series.noise, reach)


def _sides(series: ladder.Series, both: ladder.Estimate, kind: Array) -> tuple[Array, Array, Array, Array]:
    """Lower and upper bound of the derivatives around x, the best value, and its error bar."""
    pairs = {
        kinks.KINK: (ladder.one_sided(series, False), ladder.one_sided(series, True)),
        kinks.JUMP: (ladder.beyond(series, False), ladder.beyond(series, True)),
    }
    right, left = pairs[kinks.KINK][1], pairs[kinks.KINK][0]
    value = np.select([kind == kinks.EDGE_RIGHT, kind == kinks.EDGE_LEFT], [right.value, left.value], both.value)
    error = np.select([kind == kinks.EDGE_RIGHT, kind == kinks.EDGE_LEFT], [right.error, left.error], both.error)
    low, high = value - error, value + error
    stairs = kind == kinks.STAIRCASE
    low = np.where(stairs, np.minimum(value - ERROR_BARS * error, 0.0), low)
    high = np.where(stairs, np.maximum(value + ERROR_BARS * error, 0.0), high)
    for which, (one, other) in pairs.items():
        at = kind == which
        low = np.where(at, np.minimum(one.value - 2 * one.error, other.value - 2 * other.error), low)
        high = np.where(at, np.maximum(one.value + 2 * one.error, other.value + 2 * other.error), high)
        error = np.where(at, np.maximum(one.error, other.error), error)
        value = np.where(at, (one.value + other.value) / 2, value)
    return low, high, value, error
