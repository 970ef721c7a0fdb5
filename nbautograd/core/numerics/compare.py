"""Comparisons of numbers: in every bit, within rounding, within an error bar, or relative to their size.

All comparisons of the checker's numbers are made of these; the bound is the caller's, with its reason.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import SMALL_IN_ROW, SUM_ROUNDINGS


def agree_bitwise(a: Tensor | None, b: Tensor | None) -> bool:
    """Compare two tensors value by value, NaN with NaN; None agrees with None only."""
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    a, b = a.detach(), b.detach()
    return bool(torch.equal(a, b)) or bool(((a == b) | ((a != a) & (b != b))).all())


def agree_within_rounding(exact: Array, rough: Array, bound: float, floor: float = SMALL_IN_ROW) -> bool:
    """Compare an array with its rounded version; NaN agrees with NaN.

    Args:
        exact: the reference.
        rough: the same numbers, rounded on the way.
        bound: how far an entry may be off, relative to its own size plus ``floor`` times the largest size.
        floor: how much the largest entry counts; small entries are often differences of large ones.
    """
    if np.array_equal(exact, rough):
        return True
    with np.errstate(invalid="ignore"):
        size = np.abs(exact) + floor * largest_finite(exact)
        near = (np.abs(exact - rough) <= bound * size) | (exact == rough) | (np.isnan(exact) & np.isnan(rough))
    return bool(near.all())


def agree_within(a: Any, b: Any, bound: Any) -> Any:
    """Compare numbers or arrays entry by entry with the largest difference allowed; NaN does not agree."""
    with np.errstate(invalid="ignore"):
        return np.abs(a - b) <= bound


def largest_finite(array: Array) -> float:
    """Return the largest absolute value of what is finite; 0 where nothing is."""
    size = float(np.abs(array).max(initial=0.0))
    return size if math.isfinite(size) else float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def symmetric(matrices: Tensor) -> bool:
    """Return True for square matrices, larger than 1 by 1, symmetric within the rounding of a product, or Hermitian."""
    numbers = matrices.is_floating_point() or matrices.is_complex()
    if matrices.dim() < 2 or not numbers or not 2 <= matrices.shape[-1] == matrices.shape[-2]:
        return False
    return agree_relative(matrices, matrices.mH, SUM_ROUNDINGS * float(torch.finfo(matrices.dtype).eps))


def agree_in_sum(terms: Array, others: Array, rel: float, noise: float) -> bool:
    """Compare two sums, relative to the absolute values of all their terms, beside the noise of the terms."""
    size = float(np.abs(terms).sum() + np.abs(others).sum())
    return bool(agree_within(float(terms.sum()), float(others.sum()), rel * size + noise))


def agree_relative(a: Tensor | None, b: Tensor | None, rel: float, low: float = 0.0) -> bool:
    """Compare two gradients relative to their largest entry; None counts as zeros, NaN agrees with NaN.

    Args:
        a, b: tensors of one shape, or None.
        rel: largest difference, relative to the entry plus the largest entry of both.
        low: the size below which a number is only noise.
    """
    if a is None or b is None:
        other = b if a is None else a
        return other is None or not bool((other.detach().abs().nan_to_num() > low).any())
    if a.shape != b.shape:
        return False
    a, b = a.detach(), b.detach()
    if torch.equal(a, b):
        return True
    scale = float(torch.maximum(a.abs().nan_to_num().max(), b.abs().nan_to_num().max())) if a.numel() else 0.0
    return bool(torch.isclose(a, b.to(a.dtype), rtol=rel, atol=rel * scale + low, equal_nan=True).all())
