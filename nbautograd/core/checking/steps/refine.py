"""A second look at the entries where the first pass disagrees: the ladder run along their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nbautograd.core.checking.jacobians.assembly import Raw
from nbautograd.core.checking.jacobians.columns import Directions
from nbautograd.core.checking.jacobians.forward import Values
from nbautograd.core.checking.jacobians.real import Array
from nbautograd.core.checking.steps import kinks, ladder
from nbautograd.core.checking.steps.brief import brief

DIRECTIONS = 400  # columns that get the whole ladder; where more disagree,
SOME = 64  # of them do, and two steps must do for the others
LOST = 64  # last bits
NEAR_ZERO = 0.05  # where |x| is smaller than this, a second ladder is scaled by |x|


@dataclass(frozen=True)
class Refined:
    """What the ladder says of some entries.

    Attributes:
        entries: (block, row, column) of each, shaped (number, 3).
        value, error: the derivative and its error bar.
        low, high: the one-sided derivatives at a kink, jump or edge (their error added); else the value.
        nature: see ``kinks``.
        steps, errors: for each entry the steps of the ladder and the difference from the value there.
    """

    entries: Array
    value: Array
    error: Array
    low: Array
    high: Array
    nature: Array
    steps: Array
    errors: Array


def refine(forward: Values, raw: Raw, where: tuple[int, int], chosen: Array) -> Refined:
    """Run the ladder for the chosen entries, a boolean array like the stored matrices.

    Args:
        forward: values of the function.
        raw: the block; it must have directions.
        where: numbers of output and input among the differentiable ones.
        chosen: which entries to look at; where more than 400 columns have some, 64 get the whole ladder and the others
            two steps.
    """
    parts = list(_parts(forward, raw, where, chosen))
    if not parts:
        return _nothing()
    joined = {name: np.concatenate([getattr(p, name) for p in parts], axis=-1) for name in _LAST}
    return Refined(entries=np.concatenate([p.entries for p in parts]), **joined)


def curve(raw: Raw, where: tuple[int, int]) -> tuple[Array, Array]:
    """Steps and errors of differences at the entry of a block that differs most from backward."""
    apart = np.abs(raw.matrices.stored("difference"))
    if not np.isfinite(apart).any():
        return np.empty(0), np.empty(0)
    chosen = np.zeros(apart.shape, dtype=bool)
    chosen.reshape(-1)[int(np.nanargmax(apart))] = True
    held = raw.matrices.layout
    block, row, col = np.argwhere(chosen)[0]
    return _course(raw.forward, where, (int(held.row_ids[block, row]), int(held.col_ids[block, col])))


def _course(forward: Values, where: tuple[int, int], entry: tuple[int, int]) -> tuple[Array, Array]:
    """The ladder for one entry that is not in doubt: its steps, and how far differences are from the best value.

    Args:
        forward: values of the function.
        where: numbers of output and input among the differentiable ones.
        entry: row and column.
    """
    (i, j), (row, col) = where, entry
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


_LAST = ("value", "error", "low", "high", "nature", "steps", "errors")


def _nothing() -> Refined:
    none = np.empty(0)
    wide = np.empty((ladder.RUNGS, 0))
    return Refined(np.empty((0, 3), dtype=int), none, none, none, none, none.astype(int), wide, wide)


def _parts(forward: Values, raw: Raw, where: tuple[int, int], chosen: Array) -> Iterator[Refined]:
    directions = raw.directions
    counts = np.array([int(_own(raw, chosen, group).sum()) for group in directions.groups])
    order = np.argsort(-counts, kind="stable")
    deep = DIRECTIONS if (counts > 0).sum() <= DIRECTIONS else SOME
    for number in order[:deep]:
        if counts[number] == 0:
            return
        yield _along(forward, directions, where, (int(number), _entries(raw, chosen, number)))
    more = [int(number) for number in order[deep:] if counts[number]]
    columns = [(number, _entries(raw, chosen, number)) for number in more]
    for entries, found in brief(forward, directions, where, columns):
        yield Refined(entries=entries, **found)


def _entries(raw: Raw, chosen: Array, number: int) -> Array:
    """The chosen entries of one direction as (block, row, column)."""
    group = raw.directions.groups[number]
    entries = np.argwhere(_own(raw, chosen, group))
    entries[:, 2] = group[entries[:, 2]]
    return entries


def _own(raw: Raw, chosen: Array, group: Array) -> Array:
    """The chosen entries that belong to the columns of one direction."""
    mine = chosen[:, :, group]
    return mine if raw.pattern is None or len(group) == 1 else mine & raw.pattern[None][:, :, group]


def _along(forward: Values, directions: Directions, where: tuple[int, int], what: tuple[int, Array]) -> Refined:
    number, entries = what
    point = np.abs(np.nan_to_num(forward.points[where[1]]))
    found = _climb(forward, directions, where, what, np.maximum(1.0, point))
    small = directions.layout.cols(point[None])[0][entries[:, 0], entries[:, 2]]
    again = (small < NEAR_ZERO) & (small > 0)
    if again.any():
        closer = _climb(forward, directions, where, (number, entries), np.where(point > 0, point, 1.0))
        found = _choose(found, closer, again & (closer.error < found.error))
    return found


def _choose(first: Refined, second: Refined, take: Array) -> Refined:
    picked = {name: np.where(take, getattr(second, name), getattr(first, name)) for name in _LAST}
    return Refined(entries=first.entries, **picked)


def _climb(
    forward: Values, directions: Directions, where: tuple[int, int], what: tuple[int, Array], scale: Array
) -> Refined:
    i, j = where
    number, entries = what
    moved = directions.masks([number])[0] * scale
    point = forward.points[j]
    climbs = np.concatenate([ladder.factors(), -ladder.factors(), ladder.TABLE])
    wanted = climbs.reshape(-1, *[1] * point.ndim) * moved
    points = forward.rounded(j, point + wanted)
    layout = directions.layout
    values = layout.rows(forward.at(j, points)[i])[:, entries[:, 0], entries[:, 1]]
    steps = layout.cols(np.where(np.isfinite(point), points - point, wanted))[:, entries[:, 0], entries[:, 2]]
    middle = layout.rows(forward.values[i][None])[0][entries[:, 0], entries[:, 1]]
    known = layout.rows(forward.noise[i][None])[0][entries[:, 0], entries[:, 1]]
    return _judge(entries, values, steps, (middle, known, forward.eps, _lost(forward, i)))


def _lost(forward: Values, i: int) -> float:
    """The most that a value can be off by a few last bits of what it was made of."""
    return LOST * forward.eps * max(1.0, float(np.abs(np.nan_to_num(forward.values[i])).max(initial=0.0)))


def _judge(entries: Array, values: Array, steps: Array, at: tuple[Array, Array, float, float]) -> Refined:
    middle, known, eps, lost = at
    n = ladder.RUNGS
    with np.errstate(all="ignore"):
        noise = ladder.uncertainty(middle, values[2 * n :], values[: 2 * n], eps, known)
        stairs = ladder.steps_in(middle, values[: 2 * n])
        noise = np.maximum(noise, stairs)
        series = ladder.Series(values[:n], values[n : 2 * n], steps[:n], -steps[n : 2 * n], middle, noise)
        series = dataclasses.replace(series, noise=np.maximum(noise, ladder.wobble(series, lost)))
        estimate, kind = ladder.two_sided(series), np.where(stairs > 0, kinks.STAIRCASE, kinks.nature(series))
        low, high, value, error = _sides(series, estimate, kind)
        slopes = ladder.central(series)
        # two equal numbers are still only known to the last bit
        last = np.finfo(float).eps * np.maximum(np.abs(slopes).max(axis=0), np.abs(value))
        errors = np.maximum(np.abs(slopes - value), last)
    return Refined(entries, value, error, low, high, kind, (series.above + series.below) / 2, errors)


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
    low, high = np.where(stairs, np.minimum(low, 0.0), low), np.where(stairs, np.maximum(high, 0.0), high)
    for which, (one, other) in pairs.items():
        at = kind == which
        low = np.where(at, np.minimum(one.value - 2 * one.error, other.value - 2 * other.error), low)
        high = np.where(at, np.maximum(one.value + 2 * one.error, other.value + 2 * other.error), high)
        error = np.where(at, np.maximum(one.error, other.error), error)
        value = np.where(at, (one.value + other.value) / 2, value)
    return low, high, value, error
