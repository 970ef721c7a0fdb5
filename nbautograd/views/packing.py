"""Arrays, and blocks of a Jacobian with their heat maps, as plain data for a live view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np

from nbautograd.core.checking.block import Block, BlockVerdict, Entry, JacobianBlock
from nbautograd.views.document import Document
from nbautograd.views.jacobian import wrong_cells

Figure = float | str | tuple[float | str, float | str] | None  # "nan", "inf", "-inf" are words, complex numbers pairs
Pair = tuple[int, int]
Dtype = Literal["float64", "float32", "uint8"]
State = TypeVar("State")


@dataclass(frozen=True)
class Packed:
    """An array: its bytes in row-major little-endian order."""

    dtype: Dtype
    shape: tuple[int, ...]
    buffer: bytes


def array(values: Any, dtype: Dtype = "float64") -> Packed:
    """Return an array for the page.

    Example:
        >>> from nbautograd.views.packing import array
        >>> array([[1, 2]], "float32").shape
        (1, 2)
    """
    packed = np.ascontiguousarray(np.real(values), dtype=np.dtype(dtype).newbyteorder("<"))
    return Packed(dtype, np.shape(values), packed.tobytes())


def small(values: np.ndarray[Any, Any]) -> Packed:
    """Return an array in half the bytes, unless some of its numbers would become zero or infinite by that."""
    with np.errstate(over="ignore", under="ignore"):
        half = np.real(values).astype(np.float32)
    near = np.allclose(half.astype(np.float64), np.real(values), rtol=1e-6, atol=0, equal_nan=True)
    return array(values, "float32" if near else "float64")


@dataclass(frozen=True, kw_only=True)
class Maps:
    """The three heat maps of a block, or of a window of it.

    Attributes:
        rows, cols: how many entries a cell stands for.
        wrong: not 0 in cells with an entry that the checker calls wrong; only where there is one.
    """

    rows: int
    cols: int
    analytical: Packed
    numerical: Packed
    difference: Packed
    wrong: Packed | None = None


@dataclass(frozen=True, kw_only=True)
class Whole:
    """All entries of a pooled block, kept for pages without a kernel."""

    analytical: Packed
    numerical: Packed
    wrong: Packed | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorCurve:
    """Steps of finite differences at the worst entry, and their errors."""

    steps: Packed
    errors: Packed


@dataclass(frozen=True, kw_only=True)
class BlockState:
    """A block of a Jacobian; of many only the interesting ones come with their heat maps and evidence.

    Attributes:
        output, input: its place.
        output_complex, input_complex: True where the last dimension is the pair of real and imaginary part.
        entries: how many it has.
        methods: what each independent method says.
    """

    output: int
    input: int
    output_name: str
    input_name: str
    output_shape: Sequence[int]
    input_shape: Sequence[int]
    output_complex: bool
    input_complex: bool
    structure: str
    entries: int
    verdict: BlockVerdict | None = None
    wrong: int | None = None
    maps: Maps | None = None
    worst: Entry | None = None
    methods: Document | None = None
    curve: ErrorCurve | None = None
    whole: Whole | None = None


def state_of(state: type[State], value: Any, **others: Any) -> State:
    """Return a state that takes from a value each field of the same name, and the others as they are given.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.views.packing import BlockState, state_of
        >>> report = nbautograd.gradcheck(torch.sin, torch.ones(2, dtype=torch.float64))
        >>> state_of(BlockState, report.blocks[0, 0], curve=None, wrong=3).wrong
        3
    """
    cls: Any = state
    names = (f.name for f in fields(cls) if f.name not in others and hasattr(value, f.name))
    return state(**{name: getattr(value, name) for name in names}, **others)


def listed_state(block: JacobianBlock) -> BlockState:
    """Return one block in a list: names, shapes, verdict."""
    return state_of(BlockState, block, worst=None, curve=None)


def drawn_state(block: JacobianBlock, side: int) -> BlockState:
    """Return one block as it is drawn: the same with its worst entry and its three heat maps, of at most so many cells.

    Raises:
        LookupError, TypeError, ValueError: when its numbers were not kept.
    """
    return replace(
        listed_state(block), maps=_maps(block, side), worst=block.worst if isinstance(block, Block) else None
    )


def _maps(block: JacobianBlock, side: int) -> Maps:
    pooled = block.pooled(side, side)
    step = (pooled.rows, pooled.cols)
    maps = (pooled.analytical, pooled.numerical, pooled.difference)
    return packed_maps(block, (0, 0), step, maps, "float64" if step == (1, 1) else "float32")


def packed_maps(block: JacobianBlock, first: Pair, step: Pair, maps: Sequence[Any], dtype: Dtype = "float64") -> Maps:
    """Pack three heat maps, and which of their cells hold a wrong entry."""
    analytical, numerical, difference = (array(values, dtype) for values in maps)
    wrong = wrong_cells(block, first, step, maps[0].shape)
    return Maps(
        rows=step[0],
        cols=step[1],
        analytical=analytical,
        numerical=numerical,
        difference=difference,
        wrong=None if wrong is None else array(wrong, "uint8"),
    )
