"""Recorded values on a page: a table with names, kinds, contents and small heat maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nbautograd import messages
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.views.heatmap import thumbnail
from nbautograd.views.markup import Markup, join, picture, tag
from nbautograd.views.pieces import block, faint, name, table
from nbautograd.views.tensors import contents, kind, remarks, what
from nbautograd.views.text.calls import ctx_facts

MOST = 12  # values of one table


def values_table(groups: Sequence[tuple[str, Sequence[Value]]], pictures: bool = False) -> Markup | None:
    """One table of several groups of values, each named on its first row; with ``pictures`` small heat maps."""
    rows = [row for title, values in groups for row in _rows(title, values, pictures)]
    if not any(title for title, _ in groups):
        rows = [row[1:] for row in rows]
    return table("", (), rows, wrap=False) if rows else None


def ctx_groups(ctx: CtxSnapshot) -> list[tuple[str, Sequence[Value]]]:
    """Saved tensors and attributes of ctx with their titles."""
    return [
        (messages.text("views.call.saved"), ctx.saved_tensors),
        (messages.text("views.call.attributes"), tuple(ctx.attributes.values())),
    ]


def _rows(title: str, values: Sequence[Value], pictures: bool) -> list[list[object]]:
    rows: list[list[object]] = []
    for k, value in enumerate(values[:MOST]):
        words = contents(value.tensor) if value.tensor else ""
        row: list[object] = [faint(title) if k == 0 else "", name(value.name), what(value)]
        row += [words, _faint(remarks(value))]
        rows.append([*row, thumb(value)] if pictures else row)
    if len(values) > MOST:
        rows.append(
            ["", faint(messages.text("views.more", n=len(values) - MOST)), "", "", "", *([""] if pictures else [])]
        )
    return rows


def tensor_markup(tensor: TensorSummary) -> Markup:
    """One summary on a line, with its picture."""
    picture_of = thumb(Value(kind(tensor), "Tensor", "", tensor))
    return block(tag("code", None, kind(tensor)), " ", contents(tensor), " ", picture_of)


def ctx_markup(ctx: CtxSnapshot) -> Markup | None:
    """What is on ctx: saved tensors and attributes by name, then the other facts."""
    there = [p for p in (values_table(ctx_groups(ctx)), ctx_facts_markup(ctx)) if p]
    return join(there) if there else None


def ctx_facts_markup(ctx: CtxSnapshot) -> Markup | None:
    """What else ctx was told, on one line each."""
    facts = ctx_facts(ctx)
    return join(block(faint(fact), style="font-size:0.95em") for fact in facts) if facts else None


def _faint(words: str) -> object:
    return faint(words) if words else ""


def thumb(value: Value) -> Markup | str:
    """A small heat map of a tensor; nothing for a single number or where the elements are not known."""
    tensor = value.tensor
    if tensor is None or tensor.thumbnail is None or tensor.thumbnail.size < 2:
        return ""
    alt = messages.text("views.tensor.thumb", name=value.name)
    image = np.asarray(tensor.thumbnail)
    return picture(thumbnail(image), alt, {"style": "display:block;max-width:48px"})
