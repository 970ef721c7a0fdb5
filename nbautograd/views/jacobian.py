"""Base of every picture of a Jacobian block: an order of interest, index names, the cell of the worst entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from nbautograd.core.checking.block import Block, JacobianBlock, Pooled

Array = np.ndarray[Any, Any]
AnyBlock = TypeVar("AnyBlock", bound=JacobianBlock)
THREE_DIGITS = 100  # a dimension of more has indices that look like thousands behind a comma
PANELS = ("analytical", "numerical", "difference")
RANK = {"mismatch": 0, "undecided": 1, "flat": 2, "subgradient": 3, "match": 4}


def by_interest(blocks: Sequence[AnyBlock]) -> list[AnyBlock]:
    """Return wrong blocks first, then those that were not decided, then the others; the order is kept within each."""
    return sorted(blocks, key=lambda b: RANK[b.verdict] if isinstance(b, Block) else 4)


def pick(blocks: Sequence[AnyBlock], most: int) -> tuple[list[AnyBlock], list[AnyBlock]]:
    """Return the blocks to show, the worst first, and those to fold: of many checked ones just those that agree."""
    ordered = by_interest(blocks)
    if len(ordered) <= most:
        return ordered, []
    checked = all(isinstance(b, Block) for b in ordered)
    shown = sum(not (isinstance(b, Block) and b.verdict == "match") for b in ordered) if checked else most
    return ordered[:shown], ordered[shown:]


def drawable(values: Array) -> Array:
    """Return real numbers as they are, complex ones by their size."""
    return np.abs(values) if np.iscomplexobj(values) else np.asarray(values, float)


def labels(shape: tuple[int, ...], per_cell: int, cells: int, pairs: bool = False) -> list[str]:
    """Return the index of the first element under each cell, such as ``1,2``; nothing for a scalar.

    With ``pairs`` the last dimension holds real and imaginary parts: ``1,2 re``, ``1,2 im``. Where a number may have
    three digits the numbers stand apart, ``46, 875``: without the space that is read as one number.

    Example:
        >>> from nbautograd.views.jacobian import labels
        >>> labels((2, 3), 2, 3)
        ['0,0', '0,2', '1,1']
        >>> labels((64, 1000), 875, 2)
        ['0, 0', '0, 875']
    """
    if not shape:
        return []
    places = [_unravel(k * per_cell, shape) for k in range(cells)]
    comma = ", " if max(shape) > THREE_DIGITS else ","
    if not pairs:
        return [comma.join(map(str, place)) for place in places]
    return [f"{comma.join(map(str, place[:-1]))} {('re', 'im')[place[-1]]}".lstrip() for place in places]


def breaks(shape: tuple[int, ...], per_cell: int, cells: int) -> list[int]:
    """Return the cells at which the index along the slowest dimension changes, unless that is the only dimension.

    Example:
        >>> from nbautograd.views.jacobian import breaks
        >>> breaks((2, 3), 1, 6), breaks((6,), 1, 6)
        ([3], [])
    """
    slowest = next((d for d, size in enumerate(shape) if size > 1), len(shape))
    piece = math.prod(shape[slowest + 1 :])
    if piece == 1:
        return []
    at = [k * per_cell // piece for k in range(cells)]
    return [k for k in range(1, cells) if at[k] != at[k - 1]]


def wrong_cells(
    block: JacobianBlock, first: tuple[int, int], step: tuple[int, int], shape: tuple[int, ...]
) -> Array | None:
    """Return which cells of a picture hold an entry that the checker calls wrong; None when none does.

    Args:
        block: the block that is drawn.
        first: row and column of the entry at the upper left.
        step: rows and columns that a cell stands for.
        shape: cells of the picture.
    """
    if not isinstance(block, Block) or block.verdict != "mismatch":
        return None
    cells = (block.wrong_entries() - first) // step
    inside = cells[((cells >= 0) & (cells < shape)).all(axis=1)]
    wrong = np.zeros(shape, dtype=bool)
    wrong[tuple(inside.T)] = True
    return wrong if wrong.any() else None


def shown_difference(block: JacobianBlock, difference: Array, wrong: Array | None) -> Array:
    """Return the difference with 0 where the checker found agreement: what is left there is round-off."""
    if not isinstance(block, Block) or block.verdict not in ("match", "mismatch"):
        return difference
    if wrong is None:
        return np.zeros_like(difference) if block.verdict == "match" else difference
    return np.where(wrong, difference, 0.0)


def worst_cell(block: JacobianBlock, pooled: Pooled) -> tuple[int, int] | None:
    """Return the cell under which the worst entry lies; None unless the block is wrong."""
    if not isinstance(block, Block) or block.worst is None or block.verdict != "mismatch":
        return None
    row = _ravel(block.worst.output_index, block.output_shape)
    col = _ravel(block.worst.input_index, block.input_shape)
    return row // pooled.rows, col // pooled.cols


def _unravel(flat: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the position of a row-major element number in a tensor of these sizes; of a scalar the empty one."""
    return tuple(int(k) for k in np.unravel_index(flat, sizes)) if sizes else ()


def _ravel(position: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    return int(np.ravel_multi_index(position, sizes)) if sizes else 0
