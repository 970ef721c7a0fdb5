"""Layout of a Jacobian's numbers: only the entries that can differ from zero are stored, in plain numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nbautograd.core.forks import cached
from nbautograd.errors import InputError

Array = np.ndarray[Any, Any]
Which = Literal["analytical", "numerical", "difference"]
MOST_ENTRIES = 4_000_000  # entries that may be made at once


@dataclass(frozen=True)
class BlockLayout:
    """A block diagonal Jacobian: it is zero unless the indices along each pair of dimensions are equal.

    Without pairs it is dense; when all dimensions are paired it is diagonal (up to their order).

    Attributes:
        output_shape, input_shape: shapes of the two (real) tensors.
        pairs: (dimension of the output, dimension of the input), each dimension at most once.
    """

    output_shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...] = ()

    @cached
    def sizes(self) -> tuple[int, int, int]:
        """(number of diagonal blocks, rows of each, columns of each)."""
        blocks = math.prod(self.output_shape[a] for a, _ in self.pairs)
        rows, cols = math.prod(self.output_shape), math.prod(self.input_shape)
        return blocks, rows // blocks if blocks else 0, cols // blocks if blocks else 0

    @cached
    def row_order(self) -> tuple[int, ...]:
        """The output's dimensions, paired ones first."""
        first = [a for a, _ in self.pairs]
        return (*first, *(d for d in range(len(self.output_shape)) if d not in first))

    @cached
    def col_order(self) -> tuple[int, ...]:
        """The input's dimensions, paired ones first."""
        first = [b for _, b in self.pairs]
        return (*first, *(d for d in range(len(self.input_shape)) if d not in first))

    @property
    def structure(self) -> str:
        """``"dense"``, ``"diagonal"`` or ``"block diagonal"``."""
        blocks, rows, cols = self.sizes
        if blocks <= 1:
            return "dense"
        return "diagonal" if rows == cols == 1 else "block diagonal"

    def rows(self, array: Array) -> Array:
        """Return an array shaped (k, *output_shape) as (k, blocks, rows of each)."""
        return _split(array, self.row_order, self.sizes[0], self.sizes[1])

    def cols(self, array: Array) -> Array:
        """Return an array shaped (k, *input_shape) as (k, blocks, columns of each)."""
        return _split(array, self.col_order, self.sizes[0], self.sizes[2])

    def output_like(self, array: Array) -> Array:
        """Undo ``rows``."""
        return _join(array, self.row_order, self.output_shape)

    def input_like(self, array: Array) -> Array:
        """Undo ``cols``."""
        return _join(array, self.col_order, self.input_shape)

    @cached
    def row_ids(self) -> Array:
        """Row number in the whole Jacobian, by (block, row of the block)."""
        ids = np.arange(math.prod(self.output_shape)).reshape(1, *self.output_shape)
        result: Array = self.rows(ids)[0]
        return result

    @cached
    def col_ids(self) -> Array:
        """Column number in the whole Jacobian, by (block, column of the block)."""
        ids = np.arange(math.prod(self.input_shape)).reshape(1, *self.input_shape)
        result: Array = self.cols(ids)[0]
        return result

    def place(self, entry: tuple[int, int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return indices of an entry (block, row, column) in the output and in the input."""
        (block, row, col), (_, rows, cols) = entry, self.sizes
        out = _unravel(block * rows + row, self.row_order, self.output_shape)
        return out, _unravel(block * cols + col, self.col_order, self.input_shape)


def _unravel(number: int, order: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    by_dim = dict(zip(order, np.unravel_index(number, [shape[d] for d in order]), strict=True))
    return tuple(int(by_dim[d]) for d in range(len(shape)))


@dataclass(frozen=True)
class Matrices:
    """Both Jacobians of a block, stored as ``layout`` says.

    Attributes:
        layout: which entries are stored; all others are zero.
        analytical, numerical: arrays (blocks, rows of each, columns of each).
        wrong: True where the two differ by more than the error bar, or None when not judged.
        kinks: True where one-sided differences found a kink, or None when none was looked for.
        rows, cols: when only a sample of a huge dense block is known: the rows and columns of the sample. The layout
            is then that of the sample, and all other entries are NaN.
        shapes: of the whole output and input, for a sample.
    """

    layout: BlockLayout
    analytical: Array
    numerical: Array
    wrong: Array | None = None
    kinks: Array | None = None
    rows: Array | None = None
    cols: Array | None = None
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    @property
    def known(self) -> int:
        """Count the stored entries that both are known of."""
        return int(np.isfinite(self.stored("difference")).sum())

    def place(self, entry: tuple[int, int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return indices of a stored entry (block, row, column) in the output and in the input."""
        if self.rows is None or self.cols is None or self.shapes is None:
            return self.layout.place(entry)
        out = np.unravel_index(int(self.rows[entry[1]]), self.shapes[0])
        inp = np.unravel_index(int(self.cols[entry[2]]), self.shapes[1])
        return tuple(map(int, out)), tuple(map(int, inp))

    def positions(self, chosen: Array | None) -> Array:
        """Return row and column in the whole Jacobian of the stored entries that are chosen, shaped (count, 2)."""
        if chosen is None:
            return np.empty((0, 2), dtype=int)
        block, row, col = np.nonzero(chosen)
        rows, cols = self.layout.row_ids[block, row], self.layout.col_ids[block, col]
        if self.rows is not None and self.cols is not None:
            rows, cols = self.rows[rows], self.cols[cols]
        return np.stack([rows, cols], axis=1)

    def stored(self, which: Which) -> Array:
        """Return the stored entries of one of the two, or of their difference."""
        if which == "difference":
            return self.analytical - self.numerical
        return self.analytical if which == "analytical" else self.numerical

    def part(self, which: Which, rows: Array, cols: Array) -> Array:
        """Return the dense matrix of these rows and columns."""
        if len(rows) * len(cols) > MOST_ENTRIES:
            raise InputError("checking.too_many_entries", rows=len(rows), cols=len(cols), limit=MOST_ENTRIES)
        data = self.stored(which)
        if self.rows is not None and self.cols is not None:
            sampled: Array = np.full((len(rows), len(cols)), np.nan)  # of what is not in the sample nothing is known
            known_row, known_col = np.isin(rows, self.rows), np.isin(cols, self.cols)
            at_row, at_col = np.searchsorted(self.rows, rows[known_row]), np.searchsorted(self.cols, cols[known_col])
            sampled[np.ix_(known_row, known_col)] = data[0][np.ix_(at_row, at_col)]
            return sampled
        if self.layout.sizes[0] == 1:
            part: Array = data[0][np.ix_(self.row_rank[rows], self.col_rank[cols])]
            return part
        row_block, row = np.divmod(self.row_rank[rows], data.shape[1])
        col_block, col = np.divmod(self.col_rank[cols], data.shape[2])
        result = data[row_block[:, None], row[:, None], col[None, :]]
        return np.where(row_block[:, None] == col_block[None, :], result, 0)

    @cached
    def row_rank(self) -> Array:
        """For each row its place in storage order."""
        return np.argsort(self.layout.row_ids.reshape(-1))

    @cached
    def col_rank(self) -> Array:
        """For each column its place in storage order."""
        return np.argsort(self.layout.col_ids.reshape(-1))

    def pool(self, which: Which, shape: tuple[int, int], cell: tuple[int, int]) -> Array:
        """Return the entry of largest size under each cell, with its sign; NaN where one is NaN."""
        data = self.stored(which)
        rows, cols = self.layout.row_ids, self.layout.col_ids
        if self.rows is not None and self.cols is not None:
            rows, cols = self.rows[rows], self.cols[cols]
        high, low = np.zeros(shape), np.zeros(shape)
        for block in range(0, data.shape[0], step := max(1, MOST_ENTRIES // 4 // max(1, data[0].size))):
            part = slice(block, block + step)
            cells = (rows[part] // cell[0])[:, :, None] * shape[1] + (cols[part] // cell[1])[:, None, :]
            with np.errstate(invalid="ignore"):  # a NaN entry is meant to win
                np.maximum.at(high.reshape(-1), cells.reshape(-1), data[part].reshape(-1))
                np.minimum.at(low.reshape(-1), cells.reshape(-1), data[part].reshape(-1))
        return np.where(high >= -low, high, np.where(np.isnan(high), high, low))


def indices(chosen: slice | Sequence[int] | None, size: int) -> Array:
    """Return row or column numbers for a slice, a sequence (negative ones count from the end) or None for all."""
    if chosen is None or isinstance(chosen, slice):
        return np.arange(size)[chosen if chosen is not None else slice(None)]
    wanted = np.asarray(chosen, dtype=int).reshape(-1)
    if wanted.size and (wanted.min() < -size or wanted.max() >= size):
        raise InputError("checking.no_such_entry", size=size)
    return wanted % size if size else wanted


def _split(array: Array, order: tuple[int, ...], blocks: int, rest: int) -> Array:
    return array.transpose(0, *(d + 1 for d in order)).reshape(array.shape[0], blocks, rest)


def _join(array: Array, order: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    ordered = array.reshape(array.shape[0], *(shape[d] for d in order))
    back = [order.index(d) + 1 for d in range(len(order))]
    return np.ascontiguousarray(ordered.transpose(0, *back))
