"""A closer look at entries that nearly agree: one difference of fourth order, before the whole ladder is climbed.

Most entries that the first pass leaves in doubt are small ones whose difference was blurred by round-off. Four points
at a wider step say the same to three more digits, where the ladder would take 37; a few need a finer or a wider one.
Those that are far from agreeing may lie beside a kink: a very fine step stays on their side of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.forward_values import Values
from nbautograd.core.checking.steps.column_entries import counts, entries_of
from nbautograd.core.numerics.arrays import Array

# Sizes of steps, relative to eps ** (1/5) max(1, |x|), where truncation h ** 4 and round-off eps / h balance
SIZES = 1.0, 1 / 16, 8.0  # for entries that nearly agree
FINEST = 1 / 4096  # for the others, which may lie beside a kink
RESOLVED = 64  # spacings of the numbers that values pass through: in a smaller step f(x + h) may equal f(x)
FIRST, CHUNK = 4, 64  # directions at once; where the first few settle nothing, the others are not tried
Agrees = Callable[[Array, Array], Array]


def agreeing_entries(
    forward: Values, raw: FirstPass, ij: tuple[int, int], chosen: tuple[Array, Array], agrees: Agrees
) -> tuple[Array, Array]:
    """Find the chosen entries that agree with backward after all.

    Args:
        forward: values of the function.
        raw: the block; it must have directions.
        ij: numbers of output and input among the differentiable ones.
        chosen: which entries to look at, boolean arrays like the stored matrices: those that nearly agree, and others.
        agrees: for entries (block, row, column) and derivatives, where these are what backward says.

    Returns:
        The entries that agree, shaped (number, 3), and their derivatives.
    """
    near, others = (each.copy() for each in chosen)
    looks = [(np.empty((0, 3), dtype=int), np.empty(0))]
    for left, size in [*((near, size) for size in SIZES), (others, FINEST)]:
        for entries, values in _agreeing_at_step(forward, raw, ij, (left, size), agrees):
            looks.append((entries, values))
            left[tuple(entries.T)] = False
    entries, values = map(np.concatenate, zip(*looks, strict=True))
    return entries, values


def _agreeing_at_step(
    forward: Values, raw: FirstPass, ij: tuple[int, int], what: tuple[Array, float], agrees: Agrees
) -> Iterator[tuple[Array, Array]]:
    """The entries that agree at one size of step, and their derivatives, some directions at a time."""
    chosen, size = what
    waiting, most = [int(number) for number in np.flatnonzero(counts(raw, chosen))], FIRST
    while waiting:
        part, waiting, most = waiting[:most], waiting[most:], CHUNK
        entries, values = map(np.concatenate, zip(*_derivatives(forward, raw, ij, (part, chosen), size), strict=True))
        good = agrees(entries, values)
        yield entries[good], values[good]
        if not good.any():
            return


def _derivatives(
    forward: Values, raw: FirstPass, ij: tuple[int, int], what: tuple[list[int], Array], factor: float
) -> Iterator[tuple[Array, Array]]:
    """The entries of each direction, their derivatives, from four points."""
    (i, j), (numbers, chosen) = ij, what
    point, layout = forward.points[j], raw.directions.layout
    step = max(factor * float(forward.eps ** (1 / 5)), RESOLVED * forward.eps)
    size = step * np.maximum(1.0, np.abs(np.nan_to_num(point)))
    moved = raw.directions.masks(numbers) * size
    points = forward.rounded(j, point + np.concatenate([moved, -moved, 2 * moved, -2 * moved]))
    values = layout.rows(forward.at(j, points)[i]).reshape(4, len(numbers), *layout.sizes[:2])
    steps = layout.cols(points - point).reshape(4, len(numbers), layout.sizes[0], layout.sizes[2])
    for k, number in enumerate(numbers):
        entries = entries_of(raw, chosen, number)
        seen = values[:, k][:, entries[:, 0], entries[:, 1]]
        gaps = steps[:, k][:, entries[:, 0], entries[:, 2]]
        with np.errstate(all="ignore"):
            near, far = (seen[0] - seen[1]) / (gaps[0] - gaps[1]), (seen[2] - seen[3]) / (gaps[2] - gaps[3])
            yield entries, near + (near - far) / 3
