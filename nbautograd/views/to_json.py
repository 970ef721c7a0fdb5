"""A document as plain data for a live view, which draws the same tree: frontend/document.js.

Each part of it goes with its ``kind``, the name of its class in small letters, and with those fields that say something
else than their default. frontend/tree.d.ts is generated from the same classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from nbautograd import messages
from nbautograd.views.document import Document, Drawing, Heatmaps, PageOnly, Series, Thumbnail
from nbautograd.views.layout import layout
from nbautograd.views.tensors import contents

MOST_NODES = 300  # of a graph that is drawn in a document
NOT_FOR_PAGES = ("plain", "in_text", "cut", "budget", "attribute")  # fields that only writers of stored reports read


def array(values: Any, dtype: str = "float64") -> dict[str, Any]:
    """Return an array for the page: its dtype, its shape, and its bytes in row-major little-endian order.

    Example:
        >>> from nbautograd.views.to_json import array
        >>> array([[1, 2]], "float32")["shape"]
        [1, 2]
    """
    packed = np.ascontiguousarray(np.real(values), dtype=np.dtype(dtype).newbyteorder("<"))
    return {"dtype": dtype, "shape": list(np.shape(values)), "buffer": packed.tobytes()}


def matrix(thumbnail: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a thumbnail as rows and columns, whatever its number of dimensions."""
    numbers = np.real(thumbnail)
    return numbers if numbers.ndim == 2 else np.atleast_2d(numbers.reshape(-1))


def to_json(document: Document) -> list[Any]:
    """Return the blocks of a document; arrays hold their bytes.

    Example:
        >>> from nbautograd.views.document import Strong, paragraph
        >>> from nbautograd.views.to_json import to_json
        >>> to_json((paragraph(Strong("f"), "is right"),))
        [{'kind': 'paragraph', 'spans': [{'kind': 'strong', 'words': 'f'}, ' ', 'is right']}]
    """
    return [_plain(block) for block in _live(document)]


def _live(document: Document) -> Iterator[Any]:
    """Yield the blocks that a live view draws: it has heat maps of its own, and room for every part of a series."""
    for block in document:
        if isinstance(block, Series):
            for part in block.parts:
                yield from _live(part)
        elif isinstance(block, PageOnly):
            yield from _live(block.body)
        elif not isinstance(block, Heatmaps):
            yield block


def _plain(part: Any) -> Any:
    """Return a part as plain data; documents inside it without what a live view does not draw."""
    if isinstance(part, Thumbnail):
        return _thumbnail(part)
    if isinstance(part, Drawing):
        return _drawing(part)
    if isinstance(part, tuple):
        return [plain for one in _live(part) if (plain := _plain(one)) is not None]
    if not dataclasses.is_dataclass(part):
        return part
    fields = {f.name: f.default for f in dataclasses.fields(part) if f.name not in NOT_FOR_PAGES}
    facts = {name: value for name, default in fields.items() if (value := getattr(part, name)) != default}
    return {"kind": type(part).__name__.lower(), **{name: _plain(value) for name, value in facts.items()}}


def _thumbnail(part: Thumbnail) -> dict[str, Any] | None:
    """Return a small heat map, and whether each of its cells is one element; None where there is nothing to see."""
    tensor = part.value.tensor
    if tensor is None or tensor.thumbnail is None or tensor.thumbnail.size < 2:
        return None
    numbers = matrix(tensor.thumbnail)
    alt = messages.text("views.tensor.thumb", name=part.value.name, contents=contents(tensor))
    return {
        "kind": "thumbnail",
        "alt": alt,
        "array": array(numbers, "float32"),
        "exact": numbers.size == tensor.numel,
        "name": part.value.name,
        "shape": list(tensor.shape),
        "sampled": bool(tensor.sampled),
    }


def _drawing(part: Drawing) -> dict[str, Any]:
    """Return the layout of a graph; of a large one only its name, as it has a view of its own."""
    small = 0 < len(part.graph.nodes) <= MOST_NODES
    drawn = layout(dataclasses.replace(part.graph, notes=())).to_dict() if small else None
    return {"kind": "drawing", "title": part.title, "layout": drawn}
