"""Recorded values on a page: a table with names, kinds, contents and small heat maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbautograd import messages
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.views.heatmap import thumbnail
from nbautograd.views.markup import Markup, join, picture, tag
from nbautograd.views.pieces import block, faint, table
from nbautograd.views.tensors import contents, kind, remarks, what
from nbautograd.views.text_calls import ctx_facts

MOST = 12  # values of one table


def values_table(caption: str, values: Sequence[Value], pictures: bool = False) -> Markup | None:
    """A table of values; with ``pictures`` a small heat map beside each tensor."""
    if not values:
        return None
    rows: list[list[object]] = [value_row(v, pictures) for v in values[:MOST]]
    more = [block(faint(messages.text("views.more", n=len(values) - MOST)))] if len(values) > MOST else []
    return join((table(caption, (), rows), *more))


def value_row(value: Value, pictures: bool = False) -> list[object]:
    """Name, what it is, its contents, what else is known."""
    words = contents(value.tensor) if value.tensor else ""
    row: list[object] = [tag("code", None, value.name), what(value), words, faint(remarks(value))]
    return [*row, _thumb(value)] if pictures else row


def tensor_markup(tensor: TensorSummary) -> Markup:
    """One summary on a line, with its picture."""
    picture_of = _thumb(Value(kind(tensor), "Tensor", "", tensor))
    return block(tag("code", None, kind(tensor)), " ", contents(tensor), " ", picture_of)


def ctx_markup(ctx: CtxSnapshot) -> Markup | None:
    """What is on ctx: saved tensors and attributes by name, then the other facts."""
    parts = [
        values_table(messages.text("views.call.saved"), ctx.saved_tensors),
        values_table(messages.text("views.call.attributes"), tuple(ctx.attributes.values())),
        *(block(faint(fact), style="font-size:0.95em") for fact in ctx_facts(ctx)),
    ]
    there = [p for p in parts if p]
    return join(there) if there else None


def _thumb(value: Value) -> Markup | str:
    tensor = value.tensor
    if tensor is None or tensor.thumbnail is None or tensor.thumbnail.size < 2:
        return ""
    alt = messages.text("views.tensor.thumb", name=value.name)
    image = np.asarray(tensor.thumbnail)
    return picture(thumbnail(image), alt, {"style": "display:block;max-width:48px"})
