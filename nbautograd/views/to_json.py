"""Documents, and the states that hold them, as plain data for a live view; frontend/document.js draws the same tree.

Each part of a document goes with its ``kind``, the name of its class in small letters, and with those fields that say
something else than their default; a state goes with all its fields but those that are None by default and still are.
frontend/tree.d.ts and states.d.ts are generated from the same classes.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from nbautograd import messages
from nbautograd.core.display import plain
from nbautograd.core.values import TensorSummary
from nbautograd.views.document import Block, Document, Drawing, Heatmaps, PageOnly, Series, Span, Thumbnail, paragraph
from nbautograd.views.layout import first_layout
from nbautograd.views.packing import Packed, drawn_state, small
from nbautograd.views.phrases import contents, counted, pooling

CELLS = 32  # along one side of the heat maps in a document, as on a stored page
MOST_NODES = 300  # of a graph that is drawn in a document
NOT_FOR_PAGES = ("plain", "in_text", "cut", "budget", "attribute", "error_bar")  # fields that no page reads
PARTS = (*typing.get_args(Block), *typing.get_args(Span))  # of a document


@dataclasses.dataclass(frozen=True)
class Pooling:
    """Elements under each cell of a small heat map: how many rows and columns, between which numbers; in words."""

    rows: int
    cols: int
    low: Packed
    high: Packed
    words: str


def pooling_of(tensor: TensorSummary) -> Pooling | None:
    """Return what the cells of a tensor's thumbnail stand for, None where each is one element or that is not known."""
    if (found := tensor.ranges) is None:
        return None
    return Pooling(found.rows, found.cols, small(found.low), small(found.high), pooling(tensor))


def matrix(thumbnail: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a thumbnail as rows and columns, whatever its number of dimensions."""
    numbers = np.real(thumbnail)
    return numbers if numbers.ndim == 2 else np.atleast_2d(numbers.reshape(-1))


def to_json(part: Any) -> Any:
    """Return a document, or a state, as plain data; arrays hold their bytes.

    Example:
        >>> from nbautograd.views.document import Strong, paragraph
        >>> from nbautograd.views.to_json import to_json
        >>> to_json((paragraph(Strong("f"), "is right"),))
        [{'kind': 'paragraph', 'spans': [{'kind': 'strong', 'words': 'f'}, ' ', 'is right']}]
    """
    if part is None or isinstance(part, (bool, int, str, bytes)):
        return part
    if isinstance(part, Thumbnail):
        return _thumbnail(part)
    if isinstance(part, Drawing):
        return _drawing(part)
    if isinstance(part, Heatmaps):
        return _heatmaps(part)
    if isinstance(part, (tuple, list)):  # documents without what a live view does not draw
        return [to_json(one) for one in _live(part)]
    if isinstance(part, Mapping):
        return {str(name): to_json(value) for name, value in part.items()}
    if not dataclasses.is_dataclass(part):
        return plain(part)
    cls: Any = type(part)
    facts = ((name, getattr(part, name), default) for name, default in _fields(cls))
    kind = {"kind": cls.__name__.lower()} if isinstance(part, PARTS) else {}
    return kind | {name: to_json(value) for name, value, default in facts if value is not default and value != default}


@functools.cache
def _fields(cls: Any) -> list[tuple[str, Any]]:
    """List the fields that go, each with the value with which it is left out."""
    fields = [f for f in dataclasses.fields(cls) if f.name not in NOT_FOR_PAGES]
    drawn = issubclass(cls, PARTS)
    return [(f.name, f.default if drawn or f.default is None else dataclasses.MISSING) for f in fields]


def _live(document: Document | list[Any]) -> Iterator[Any]:
    """Yield the blocks that a live view draws: it has room for every part of a series."""
    for block in document:
        if isinstance(block, Series):
            for part in block.parts:
                yield from _live(part)
            if block.left:
                yield paragraph(counted(block.noun, block.left), look="faint")
        elif isinstance(block, PageOnly):
            yield from _live(block.body)
        elif not (isinstance(block, Thumbnail) and block.blank):
            yield block


def _thumbnail(part: Thumbnail) -> dict[str, Any] | None:
    """Return a small heat map, and whether each of its cells is one element; None where there is nothing to see."""
    tensor = part.value.tensor
    if tensor is None or tensor.thumbnail is None or part.blank:
        return None
    numbers = matrix(tensor.thumbnail)
    alt = messages.text("views.tensor.thumb", name=part.value.name, contents=contents(tensor))
    return {
        "kind": "thumbnail",
        "alt": alt,
        "array": to_json(small(numbers)),
        "exact": numbers.size == tensor.numel,
        "name": str(part.value.name),
        "shape": list(tensor.shape),
        "sampled": bool(tensor.sampled),
        "pooling": to_json(pooling_of(tensor)),
    } | ({} if part.most is None else {"most": part.most, "floor": part.floor})


def _heatmaps(part: Heatmaps) -> dict[str, Any]:
    """Return a block with its heat maps, which know no kernel; a sentence where its numbers were not kept."""
    try:
        return {"kind": "heatmaps", "block": to_json(drawn_state(part.block, CELLS))}
    except (LookupError, TypeError, ValueError):
        unread: dict[str, Any] = to_json(paragraph(messages.text("views.panel.unread"), look="faint"))
        return unread


def _drawing(part: Drawing) -> dict[str, Any]:
    """Return the layout of a graph; of a large one only its name, as it has a view of its own."""
    small = 0 < len(part.graph.nodes) <= MOST_NODES
    drawn = to_json(first_layout(part.graph)) if small else None
    return {"kind": "drawing", "title": part.title, "layout": drawn}
