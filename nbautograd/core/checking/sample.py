"""A sample of a Jacobian that is too large to hold: some rows crossed with some columns."""

from __future__ import annotations

import math

import numpy as np

from nbautograd.core.checking import columns
from nbautograd.core.checking.forward import Forward
from nbautograd.core.checking.real import Array
from nbautograd.core.checking.rows import Rows
from nbautograd.core.checking.storage import Layout, Matrices

SIZE = 64


def sampled(
    rows: Rows, forward: Forward, where: tuple[int, int], steps: Array, random: np.random.Generator
) -> Matrices:
    """Both Jacobians at up to 64 rows and 64 columns, chosen at random.

    Args:
        rows: the vjp of the output.
        forward: values of the function.
        where: numbers of output and input among the differentiable ones.
        steps: steps of the differences per element of the input.
        random: chooses rows and columns.
    """
    i, j = where
    output, point = forward.shapes[i], forward.points[j]
    row_ids = np.sort(random.choice(math.prod(output), min(SIZE, math.prod(output)), replace=False))
    col_ids = np.sort(random.choice(point.size, min(SIZE, point.size), replace=False))
    analytical = np.stack([rows.one(_unit(row, output))[j].reshape(-1)[col_ids] for row in row_ids])
    numerical = np.stack([_column(forward, where, col, steps)[row_ids] for col in col_ids], axis=1)
    return Matrices(Layout((len(row_ids),), (len(col_ids),)), analytical[None], numerical[None], None, row_ids, col_ids)


def _unit(position: int, shape: tuple[int, ...]) -> Array:
    unit = np.zeros(math.prod(shape))
    unit[position] = 1.0
    return unit.reshape(shape)


def _column(forward: Forward, where: tuple[int, int], col: int, steps: Array) -> Array:
    i, j = where
    spacing, changes = columns.differences(forward, j, (_unit(col, steps.shape) * steps)[None])
    return changes[i][0].reshape(-1) / spacing.reshape(-1)[col]
