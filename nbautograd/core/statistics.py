"""Numbers that describe an array: statistics and a thumbnail. numpy only, no torch op is run."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SHOWN = 64  # an array of at most so many elements is kept whole, for showing
SIDE = 32  # largest side of a thumbnail


def statistics(array: Array) -> dict[str, Any]:
    """Fields of a TensorSummary: min, max, mean, std, norm over the finite elements; counts of nan, inf and zeros.

    Args:
        array: of any shape and a real, complex, integer or bool dtype; complex ones count by absolute value.

    Returns:
        The fields by name. min, max, mean, std and norm are left out when no element is finite.

    Example:
        >>> import numpy as np
        >>> from nbautograd.core.statistics import statistics
        >>> statistics(np.array([3.0, -4.0, np.nan]))["norm"]
        5.0
    """
    sizes = np.abs(array) if np.iscomplexobj(array) else array
    fields: dict[str, Any] = {"zeros": int(array.size - np.count_nonzero(array)), "nan": 0, "inf": 0}
    numbers = sizes.astype(np.float64, copy=False).ravel()
    if sizes.dtype.kind == "f":
        finite = np.isfinite(numbers)
        if not finite.all():
            fields["nan"] = int(np.isnan(numbers).sum())
            fields["inf"] = int(numbers.size - finite.sum()) - fields["nan"]
            numbers = numbers[finite]
    if numbers.size:
        fields.update(min=float(numbers.min()), max=float(numbers.max()), **_moments(numbers))
    return fields


def _moments(numbers: Array) -> dict[str, float]:
    scale = float(np.abs(numbers).max()) or 1.0  # no overflow for entries near the largest double
    scaled = numbers / scale
    mean, std = float(scaled.mean()) * scale, float(scaled.std()) * scale
    return {"mean": mean, "std": std, "norm": float(np.sqrt(np.dot(scaled, scaled))) * scale}


def thumbnail(array: Array, side: int = SIDE) -> Array:
    """The array as a picture of at most ``side`` x ``side``: rows x columns, each cell the entry of largest size in it.

    Dimensions before the last are joined into rows; a vector is one row; a scalar one cell. Signs are kept; for a
    complex array it is the absolute values.
    """
    real = np.abs(array) if np.iscomplexobj(array) else array
    sheet = np.atleast_2d(real).astype(np.float64, copy=True)
    sheet = sheet.reshape(-1, sheet.shape[-1]) if sheet.size else sheet.reshape(0, 0)
    return _pool(_pool(sheet, side).T, side).T


def _pool(sheet: Array, side: int) -> Array:
    """Rows pooled to at most ``side``; a cell with a NaN shows NaN."""
    rows = sheet.shape[0]
    if rows <= side:
        return sheet
    edges = np.linspace(0, rows, side + 1).astype(int)[:-1]
    top, bottom = np.maximum.reduceat(sheet, edges, axis=0), np.minimum.reduceat(sheet, edges, axis=0)
    return np.where(np.abs(top) >= np.abs(bottom), top, bottom)  # NaN is in both, and no size is as large as it


def shown(array: Array) -> tuple[Any, ...] | None:
    """All elements in row-major order as Python numbers, None when there are more than 64."""
    return tuple(array.ravel().tolist()) if array.size <= SHOWN else None
