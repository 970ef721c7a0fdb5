"""Numbers that describe an array: statistics and a thumbnail. numpy only, no torch op is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SHOWN = 64  # an array of at most so many elements is kept whole, for showing
SIDE = 32  # largest side of a thumbnail


def statistics(array: Array) -> dict[str, Any]:
    """Return a TensorSummary's min, max, mean, std, norm over finite elements; counts of nan, inf and zeros.

    Args:
        array: of any shape and a real, complex, integer or bool dtype; complex ones count by absolute value.

    Returns:
        The fields by name. min, max, mean, std and norm are left out when no element is finite.
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
        scale = float(np.abs(numbers).max()) or 1.0  # no overflow for entries near the largest double
        scaled = numbers / scale
        moments = {"mean": scaled.mean(), "std": scaled.std(), "norm": np.sqrt(np.dot(scaled, scaled))}
        fields |= {"min": float(numbers.min()), "max": float(numbers.max())}
        fields |= {name: float(moment) * scale for name, moment in moments.items()}
    return fields


@dataclass(frozen=True, eq=False)
class Ranges:
    """Between which numbers the elements under each cell of a thumbnail lie.

    Attributes:
        rows, cols: how many a cell stands for; at the end it may be fewer.
        low, high: smallest and largest element that is not NaN; NaN where all are.
    """

    rows: int
    cols: int
    low: Array
    high: Array


def pictured(array: Array, side: int = SIDE) -> dict[str, Any]:
    """Return a thumbnail of at most ``side`` x ``side`` cells, and their ranges where it is pooled.

    Dimensions before the last are joined into rows; a vector is one row; a scalar one cell. Each cell shows the element
    of largest size in it with its sign, or NaN where there is any; a complex array is shown by absolute values.
    """
    real = np.abs(array) if np.iscomplexobj(array) else array
    sheet = np.atleast_2d(real)
    sheet = sheet.reshape(-1, sheet.shape[-1]) if sheet.size else sheet.reshape(0, 0)
    rows, cols = (-(-size // side) for size in sheet.shape)
    if max(rows, cols) <= 1:
        return {"thumbnail": sheet.astype(np.float64)}
    with np.errstate(invalid="ignore"):  # a cell of nothing but NaN is no mistake
        low, high = (_pool(extreme, sheet, rows, cols) for extreme in (np.fmin, np.fmax))
    cells = np.where(np.abs(high) >= np.abs(low), high, low)
    if sheet.dtype.kind == "f":
        cells[_pool(np.logical_or, np.isnan(sheet), rows, cols) > 0] = np.nan
    return {"thumbnail": cells, "ranges": Ranges(rows, cols, low, high)}


def _pool(extreme: np.ufunc, sheet: Array, rows: int, cols: int) -> Array:
    for axis, step in enumerate((rows, cols)):
        sheet = extreme.reduceat(sheet, range(0, sheet.shape[axis], step), axis=axis)
    return sheet.astype(np.float64)


def shown(array: Array) -> tuple[Any, ...] | None:
    """Return all elements in row-major order as Python numbers, None when there are more than 64."""
    return tuple(array.ravel().tolist()) if array.size <= SHOWN else None
