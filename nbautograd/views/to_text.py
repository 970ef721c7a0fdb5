"""A document as plain text: aligned, without colours, for a terminal, an e-mail, a log."""

from __future__ import annotations

from collections.abc import Iterator

from nbautograd.views.document import (
    Beside,
    Block,
    Card,
    Cell,
    Change,
    Chip,
    Document,
    Drawing,
    Fold,
    Item,
    Link,
    Paragraph,
    Span,
    Table,
    Thumbnail,
    Verbatim,
)
from nbautograd.views.tables import indent, table, wrap
from nbautograd.views.words import dedented


def to_text(document: Document) -> str:
    """Return a document as lines joined by newlines, without one at the end.

    Example:
        >>> from nbautograd.views.document import Chip, paragraph
        >>> from nbautograd.views.to_text import to_text
        >>> to_text((paragraph(Chip("note", "note", "note:"), "`x` is a leaf."),))
        'note: `x` is a leaf.'
    """
    return "\n".join(to_lines(document)).strip("\n")


def to_lines(document: Document) -> list[str]:
    """Return the lines of a document; a part of its own has an empty one before it."""
    return [line for block in document for line in _lines(block)]


def _lines(block: Block) -> list[str]:
    match block:
        case Paragraph():
            return wrap(_words(block.spans).strip())
        case Table():
            return _table(block)
        case Fold():
            return _fold(block)
        case Change():
            before, after = dedented(block.before, block.after)
            note = [f"  ({block.note})"] if block.note else []
            return [*(f"- {line}" for line in before), *(f"+ {line}" for line in after), *note]
        case Verbatim():
            return block.words.split("\n")
        case Item():
            return indent(to_lines(block.body))
        case Card():
            return to_lines(block.body)
        case Beside():
            return [line for part in block.parts for line in to_lines(part)]
        case Drawing():
            return []


def _words(cell: Cell) -> str:
    if isinstance(cell, tuple):
        return "".join(map(_words, cell)).replace("： ", "：")  # a full-width mark brings its own space
    return _span(cell)


def _span(span: Span) -> str:
    if isinstance(span, str):
        return span
    if isinstance(span, Chip):
        return span.words if span.plain is None else span.plain
    return "" if isinstance(span, (Thumbnail, Link)) else span.words


def _table(block: Table) -> list[str]:
    """Write a table; a row of one cell is a line of its own between the others."""
    rows = [[_words(cell).strip() for cell in row] for row in block.rows]
    aligned = [row for row in rows if len(row) > 1]
    if not aligned:
        return [row[0] for row in rows]
    header = [_words(cell) for cell in block.header] or [""] * len(aligned[0])
    lines = iter(table(header, aligned, block.right, block.cut))
    head = [next(lines)] if any(header) else []
    return [*head, *(row[0] if len(row) == 1 else line for row, line in _paired(rows, lines))]


def _paired(rows: list[list[str]], lines: Iterator[str]) -> Iterator[tuple[list[str], str]]:
    for row in rows:
        yield row, "" if len(row) == 1 else next(lines)


def _fold(block: Fold) -> list[str]:
    if block.in_text == "nothing":
        return []
    title = _span(block.title)
    if block.in_text == "title":
        return [title]
    inside = to_lines(block.body)
    while inside and not inside[0]:
        inside = inside[1:]
    return [*([""] if block.strong else []), title, *indent(inside)]
