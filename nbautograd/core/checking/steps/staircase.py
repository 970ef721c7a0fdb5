"""Is a function a staircase along an input: flat wherever one looks, yet not constant."""

from __future__ import annotations

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.checking.steps.column_entries import counts, entries_of
from nbautograd.core.numerics.arrays import Array

# How far from x a staircase is looked at, in standard deviations of a random move of each element
DISTANCES = (0.3, 1.0, 3.0, 10.0)
STEP, STEPS = 0.0573, 64  # of x or 1, and so many to each side: about as far as the coarsest step of the ladder, and on
COLUMNS = 64  # that are looked at


def piecewise_constant(forward: Values, ij: tuple[int, int], matrices: Matrices, jumps: Array) -> bool:
    """Return True where backward claims a slope and the function is flat, here and at random points further off.

    Such a function with a gradient is a surrogate (straight-through, spiking neurons), not a mistake of arithmetic. A
    function that has a slope somewhere else (a clamp) or never changes at all is not called flat. Where it jumps at
    the very input (``jumps``, like the stored matrices) it may be flat all the same.
    """
    if matrices.numerical[~jumps].any() or not matrices.analytical.any() or not matrices.numerical.size:
        return False
    i, j = ij
    random = np.random.default_rng(0)
    point = forward.points[j]
    far = np.stack([point + f * random.normal(size=point.shape) for f in DISTANCES])
    # far below what a staircase is made of, yet far above the spacing of the numbers that values pass through
    step = max(float(forward.eps ** (1 / 3)) * 1e-2, 64 * forward.eps) * np.maximum(1.0, np.abs(far))
    here, up, down = (forward.at(j, p)[i] for p in (far, far + step, far - step))
    level = np.isclose(up, down, rtol=0, atol=0) | np.isnan(up - down)
    size = np.abs(forward.values[i])
    moves = np.abs(here - forward.values[i]) > 1e3 * forward.eps * size  # more than digits lost in a large value
    return bool(moves.any() and level.mean() > 0.99)


def lost_in_rounding(forward: Values, raw: FirstPass, ij: tuple[int, int], still: Array) -> Array:
    """Return those of the entries at which f(x + h) equals f(x) where that is rounding inside, not the function.

    A function that really is constant here has a slope further on, or none at all; one that is rounded goes on in
    stairs: most of its changes stand alone.

    Args:
        forward: values of the function.
        raw: the block.
        ij: numbers of output and input among the differentiable ones.
        still: where no step showed any change, a boolean array like the stored matrices.
    """
    found = np.zeros_like(still)
    if not forward.inside:
        return found
    i, j = ij
    point = forward.points[j]
    size = STEP * np.maximum(1.0, np.abs(np.nan_to_num(point)))
    factors = np.concatenate([-np.arange(STEPS, 0, -1), np.arange(STEPS + 1)]).reshape(-1, *[1] * point.ndim)
    for number in np.flatnonzero(counts(raw, still))[:COLUMNS]:
        entries = entries_of(raw, still, int(number))
        moved = raw.directions.masks([int(number)])[0] * size
        values = raw.directions.layout.rows(forward.at(j, forward.rounded(j, point + factors * moved))[i])
        stairs = values[:, entries[:, 0], entries[:, 1]]
        for side in (stairs[: STEPS + 1][::-1], stairs[STEPS:]):
            changes = np.diff(side, axis=0) != 0
            padded = np.pad(changes, ((1, 1), (0, 0)))
            alone = changes & ~padded[:-2] & ~padded[2:]
            hidden = changes.any(axis=0) & (2 * alone.sum(axis=0) > changes.sum(axis=0))
            found[tuple(entries[hidden].T)] = True
    return found
