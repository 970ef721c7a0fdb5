"""Forwards that read one triangle of a symmetric matrix, as a Cholesky factorisation does.

Such a forward is a function of symmetric matrices. Its derivative is taken for symmetric changes, and a gradient has
half of it on either side of the diagonal: so do the gradients of ``torch.linalg.cholesky`` and ``eigh``.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from torch import Tensor

from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.compare import largest_finite, symmetric
from nbautograd.core.numerics.constants import SIGNIFICANT


def for_symmetric_changes(x: Tensor, matrices: Matrices) -> Matrices | None:
    """Return both Jacobians with the numerical one spread over both triangles, if the analytical one is just that.

    Args:
        matrices: of the block; None where they are known in part only.

    Returns:
        None where the input is no real symmetric matrix, where forward reads both triangles, or where backward gives
        something else than the derivative for symmetric changes.
    """
    if matrices.rows is not None or x.is_complex() or not symmetric(x):
        return None
    n = x.shape[-1]
    partner = np.arange(x.numel()).reshape(-1, n, n).swapaxes(1, 2).reshape(-1)
    half = np.zeros_like(matrices.numerical)
    for block, (columns, numbers) in enumerate(zip(matrices.layout.col_ids, matrices.numerical, strict=True)):
        order = np.argsort(columns)
        places = np.searchsorted(columns, partner[columns], sorter=order)
        if places.max() >= len(columns) or not np.array_equal(columns[order[places]], partner[columns]):
            return None  # entries on the other side of the diagonal are in another block
        row, column = columns // n % n, columns % n
        if not (_zero(numbers, row < column) or _zero(numbers, row > column)):
            return None
        half[block] = (numbers + numbers[:, order[places]]) / 2
    off = np.abs(matrices.analytical - half)
    if not off.max(initial=0.0) <= SIGNIFICANT * largest_finite(half):
        return None
    return dataclasses.replace(matrices, numerical=half, wrong=np.zeros_like(matrices.wrong))


def _zero(numbers: Array, side: Array) -> bool:
    return bool(side.any()) and not numbers[:, side].any() and bool(numbers[:, ~side].any())
