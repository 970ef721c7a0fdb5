"""A window of a Jacobian block: some rows and columns, exact when they are few, else pooled cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.core.checking.block import JacobianBlock
from nbautograd.errors import InputError

Array = np.ndarray[Any, Any]
Range = tuple[int, int]
MOST = 4 * 10**8  # entries that are looked at for one window


def window(block: JacobianBlock, rows: Range, cols: Range, side: int) -> tuple[Array, Array, Array, tuple[int, int]]:
    """Analytical, numerical and difference in a window, pooled to at most ``side`` x ``side`` cells.

    Args:
        block: the block.
        rows, cols: (first, past the last) row and column.
        side: most cells along one side.

    Returns:
        The three arrays, of one shape, and how many (rows, columns) one cell stands for.

    Raises:
        InputError: when the window holds more entries than can be looked at while somebody waits.
    """
    if (rows[1] - rows[0]) * (cols[1] - cols[0]) > MOST:
        raise InputError("widgets.too_large")
    height, width = (-(-(end - start) // side) for start, end in (rows, cols))
    strips = [_strip(block, slice(r, min(r + height, rows[1])), slice(*cols), width) for r in range(*rows, height)]
    analytical, numerical, difference = (np.stack(parts) for parts in zip(*strips, strict=True))
    return analytical, numerical, difference, (height, width)


def _strip(block: JacobianBlock, rows: slice, cols: slice, width: int) -> tuple[Array, Array, Array]:
    """One row of cells of the three heat maps."""
    analytical, numerical = np.asarray(block.analytical(rows, cols)), np.asarray(block.numerical(rows, cols))
    return tuple(largest(a, width) for a in (analytical, numerical, analytical - numerical))  # type: ignore[return-value]


def largest(values: Array, width: int) -> Array:
    """The entry of largest size, its sign kept, of every ``width`` columns over all rows; NaN is larger than all.

    Example:
        >>> import numpy as np
        >>> from nbautograd.widgets.window import largest
        >>> largest(np.array([[1.0, -3.0, 2.0], [0.0, 2.0, -5.0]]), 2).tolist()
        [-3.0, -5.0]
    """
    starts = range(0, values.shape[1], width)
    return np.array([_extreme(values[:, start : start + width].reshape(-1)) for start in starts])


def _extreme(values: Array) -> Any:
    return values[np.argmax(np.where(np.isnan(values), np.inf, np.abs(values)))]
