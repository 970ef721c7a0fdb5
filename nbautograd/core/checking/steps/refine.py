"""A second look at the entries where the first pass disagrees: the ladder run along their columns."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.steps import kinks
from nbautograd.core.checking.steps.column_entries import counts, entries_of
from nbautograd.core.checking.steps.evaluate_ladder import POINTS, Refined, concatenate, evaluate_ladder, sharper
from nbautograd.core.checking.steps.three_steps import evaluate_three_steps
from nbautograd.core.numerics.arrays import Array

MANY = 2_000  # entries that differ from which on a sample of them is refined first
WORST, DRAWN = 100, 100  # entries of a sample, where many differ: the largest differences, and others by chance
ALIKE = 0.5  # a difference of at least so much of the smallest one that is known to be an error is the same error
FEW = 128  # entries that always get the whole ladder, where many points are evaluated at once
LEAST = 2  # columns that get the whole ladder first, where more entries differ: they show which steps serve best
MOST = 400  # columns that get the whole ladder after three steps told too little
CLEAR = 1e-7  # an error bar larger than this, relative to the derivative, is worth another look
FINER = 3  # rungs down for three steps where the first three tell too little


def sample_of(chosen: Array, differences: Array, seed: int) -> Array:
    """Return a boolean array of the chosen entries; of more than ``MANY`` the worst, and others by chance.

    Args:
        chosen: boolean, like the stored matrices.
        differences: absolute differences of the two Jacobians, like the stored matrices.
        seed: of the choice.
    """
    at = np.flatnonzero(chosen)
    if len(at) <= MANY:
        return chosen
    size = np.nan_to_num(differences.reshape(-1)[at], nan=np.inf)
    order = np.argpartition(-size, WORST)
    drawn = np.random.default_rng(seed).choice(order[WORST:], DRAWN, replace=False)
    sample = np.zeros_like(chosen)
    sample.reshape(-1)[at[np.concatenate([order[:WORST], drawn])]] = True
    return sample


def refine(forward: Values, raw: FirstPass, ij: tuple[int, int], chosen: Array) -> Refined:
    """Run the ladder for the chosen entries, a boolean array like the stored matrices.

    Where that would take more points than central differences of everything, some columns get the whole ladder, the
    others the three steps that served those best, and again the whole ladder where these tell too little.

    Args:
        forward: values of the function.
        raw: the block; it must have directions.
        ij: numbers of output and input among the differentiable ones.
        chosen: which entries to look at.
    """
    number_of = counts(raw, chosen)
    waiting = [int(n) for n in np.argsort(-number_of, kind="stable")[: np.count_nonzero(number_of)]]
    deep = _columns_with_whole_ladder(forward, len(waiting), int(number_of.sum()))
    parts = _by_whole_ladder(forward, raw, ij, (waiting[:deep], chosen))
    if waiting[deep:]:
        parts += _by_three_steps(forward, raw, ij, (waiting[deep:], chosen), concatenate(parts))
    return concatenate(parts)


def _columns_with_whole_ladder(forward: Values, columns: int, entries: int) -> int:
    """Count the columns that get the whole ladder first: all of them where that is cheap."""
    cheap = entries <= FEW if forward.batched else columns <= forward.left // POINTS
    return columns if cheap else min(LEAST, columns)


def _columns_with_second_ladder(forward: Values) -> int:
    """Count the columns that may have the whole ladder where three steps tell too little."""
    return MOST if forward.batched else max(LEAST, forward.left // POINTS)


def _by_whole_ladder(
    forward: Values, raw: FirstPass, ij: tuple[int, int], what: tuple[list[int], Array]
) -> list[Refined]:
    numbers, chosen = what
    return list(evaluate_ladder(forward, raw.directions, ij, [(n, entries_of(raw, chosen, n)) for n in numbers]))


def _by_three_steps(
    forward: Values, raw: FirstPass, ij: tuple[int, int], what: tuple[list[int], Array], known: Refined
) -> list[Refined]:
    """Three steps for these columns, and the whole ladder for some of those where they tell too little."""
    numbers, chosen = what
    columns = [(n, entries_of(raw, chosen, n)) for n in numbers]
    parts = list(evaluate_three_steps(forward, raw.directions, ij, columns, known))
    unclear = [k for k, part in enumerate(parts) if not _is_sharp(part, raw.matrices.analytical)]
    finer = evaluate_three_steps(forward, raw.directions, ij, [columns[k] for k in unclear], known, FINER)
    for k, part in zip(unclear, finer, strict=True):
        parts[k] = sharper(parts[k], part)
    again = [k for k in unclear if not _is_sharp(parts[k], raw.matrices.analytical)][
        : _columns_with_second_ladder(forward)
    ]
    kept = [part for k, part in enumerate(parts) if k not in set(again)]
    return [*kept, *evaluate_ladder(forward, raw.directions, ij, [columns[k] for k in again])]


def _is_sharp(part: Refined, analytical: Array) -> bool:
    size = np.maximum(np.abs(part.value), np.abs(np.nan_to_num(analytical[tuple(part.entries.T)])))
    sharp = part.error <= CLEAR * np.maximum(size, 1e-3 * np.nan_to_num(size).max(initial=0.0))
    return bool(((part.nature == kinks.SMOOTH) & sharp).all())
