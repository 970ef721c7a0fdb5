"""What a difference between two Jacobians is measured against."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import AGREED, SLIGHT


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """Tolerances given to ``gradcheck``, and the precision of the backward.

    Attributes:
        atol, rtol: an entry that differs by at most atol + rtol |numerical| is right; None for the error bars alone.
        precision: spacing at 1 of the numbers that backward computes with.
    """

    atol: float | None
    rtol: float | None
    precision: float

    @property
    def rounding(self) -> float:
        """Rounding of an entry in backward, relative to its row; sums are short where precision is lowest."""
        return (64 if self.precision < 1e-5 else 8) * self.precision

    def given(self, analytical: Array, numerical: Array) -> Array | None:
        """Mark the entries that meet the caller's tolerance; None when the caller gave none."""
        if self.atol is None and self.rtol is None:
            return None
        within: Array = np.abs(analytical - numerical) <= (self.atol or 0.0) + (self.rtol or 0.0) * np.abs(numerical)
        return within


@dataclasses.dataclass(frozen=True)
class Scale:
    """Sizes that a difference is measured against.

    Attributes:
        size: the entry itself, but at least 1e-3 of the largest of its row and 1e-6 of the largest of the block.
        row: the largest of its row, which rounding in backward goes by.
    """

    size: Array
    row: Array

    def slack(self, relative: float, tolerance: Tolerance) -> Array:
        """A difference that means nothing: relative to the size, or from rounding in backward."""
        result: Array = np.maximum(relative * self.size, tolerance.rounding * self.row)
        return result

    def __getitem__(self, at: Any) -> Scale:
        return Scale(self.size[at], np.broadcast_to(self.row, self.size.shape)[at])


def scales(matrices: Matrices) -> Scale:
    """The scale of all stored entries."""
    size = np.maximum(_size(matrices.analytical), _size(matrices.numerical))
    row = size.max(axis=2, keepdims=True, initial=0.0)
    return Scale(np.maximum(np.maximum(size, 1e-3 * row), 1e-6 * row.max(initial=0.0)), row)


def close(matrices: Matrices, scale: Scale, tolerance: Tolerance) -> Array:
    """Mark the entries where the two Jacobians agree at first sight."""
    return same(matrices.analytical, matrices.numerical, scale, tolerance)


def same(analytical: Array, numerical: Array, scale: Scale, tolerance: Tolerance, relative: float = AGREED) -> Array:
    """Mark the numbers that agree within a relative difference, or within the caller's tolerance."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(analytical - numerical)
        agreed: Array = apart <= np.maximum(scale.slack(relative, tolerance), SLIGHT * scale.row)
    given = tolerance.given(analytical, numerical)
    return agreed if given is None else given


def _size(array: Array) -> Array:
    """Absolute values, 0 for what is not finite."""
    size: Array = np.abs(array)
    known = np.isfinite(size)
    return size if known.all() else np.where(known, size, 0.0)
