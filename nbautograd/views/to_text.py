"""A document as plain text: aligned, without colours, for a terminal, an e-mail, a log; wide characters count twice."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence

from nbautograd.messages import printable
from nbautograd.views.document import (
    Beside,
    Block,
    Branch,
    Card,
    Cell,
    Change,
    Chip,
    Document,
    Drawing,
    Fold,
    Heatmaps,
    Item,
    Lines,
    Link,
    PageOnly,
    Paragraph,
    Series,
    Span,
    Table,
    Thumbnail,
    Verbatim,
)
from nbautograd.views.phrases import counted, dedented

WIDTH = 110  # columns of a line
ENDS = re.compile(r"(?<=[ ，。；：、？！）])(?![，。；：、？！）])")  # where a line of Chinese may end
CELL = 48  # columns of a table's cell; a longer one is cut


def to_text(document: Document) -> str:
    """Return a document as lines joined by newlines, without one at the end.

    Example:
        >>> from nbautograd.views.document import Chip, paragraph
        >>> from nbautograd.views.to_text import to_text
        >>> to_text((paragraph(Chip("note", "note", "note:"), "`x` is a leaf."),))
        'note: `x` is a leaf.'
    """
    return printable("\n".join(to_lines(document)).strip("\n"))


def to_lines(document: Document) -> list[str]:
    """Return the lines of a document; an empty one stands between parts, after the answer, between tables."""
    lines: list[str] = []
    before: Block | None = None
    for block in document:
        added = _lines(block)
        if not added:
            continue
        apart = isinstance(before, Card) or (_is_table(before) and _is_table(block))
        lines += ["", *added] if apart and added[0] else added
        before = block
    return lines


def _is_table(block: Block | None) -> bool:
    return isinstance(block, Table) or (isinstance(block, Fold) and block.in_text == "body")


def _lines(block: Block) -> list[str]:
    match block:
        case Paragraph():
            return wrap(_cell_text(block.spans).strip())
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
        case Series():
            shown = [lines for part in block.parts if (lines := to_lines(part))]
            shown += [[counted(block.noun, block.left)]] if block.left and shown else []
            return [line for lines in shown for line in ("", *lines)][1:]
        case Drawing() | Heatmaps() | PageOnly():
            return []


def _cell_text(cell: Cell) -> str:
    if isinstance(cell, tuple):
        return "".join(map(_span, cell)).replace("： ", "：")  # a full-width mark brings its own space
    return _span(cell)


def _span(span: Span) -> str:
    match span:
        case str():
            return span
        case Chip():
            return span.words if span.plain is None else span.plain
        case Branch():
            return "   " * (span.depth - 1) + "└─ " if span.depth else ""
        case Link(url=url) if url:
            return f"[nbautograd explain {span.words}]"
        case Link():
            return span.words if span.place else ""
        case Lines():
            return "; ".join(span.lines)
        case Thumbnail():
            return ""
        case _:
            return span.words


def _fold(block: Fold) -> list[str]:
    """Write the title, its few words beside it, and indented what is inside; a fold without that is not written."""
    if block.in_text == "nothing":
        return []
    title = _span(block.title)
    if block.in_text == "title":
        return [title]
    inside = to_lines(block.body)
    while inside and not inside[0]:
        inside = inside[1:]
    if block.in_text == "body" or not inside:
        return inside
    beside = f" · {block.beside}" if block.beside else ""
    return [*([""] if block.strong else []), f"{title}{beside}", *indent(inside)]


def _table(block: Table) -> list[str]:
    """Write a table; a row of one cell is a line of its own between the others."""
    rows = [[_cell_text(cell).rstrip() for cell in row] for row in block.rows]
    aligned = [row for row in rows if len(row) > 1]
    if not aligned:
        return [row[0] for row in rows]
    header = [_cell_text(cell) for cell in block.header] or [""] * len(aligned[0])
    lines = iter(table(header, aligned, block.right, block.cut))
    head = [next(lines)] if any(header) else []
    return [*head, *(row[0] if len(row) == 1 else next(lines) for row in rows)]


def width(text: str) -> int:
    """Return the columns that a text takes in a terminal."""
    return sum(_columns(c) for c in text)


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), cut: bool = True
) -> list[str]:
    """Return lines of a table with two spaces between columns.

    Args:
        header: a cell for each column; empty ones for a table without a head.
        rows: the cells.
        right: the columns set flush right.
        cut: False leaves long cells, and the spaces in them, as they are.
    """
    grid = [[_cut(cell) if cut else cell for cell in row] for row in ([header, *rows] if any(header) else rows)]
    if not grid:
        return []
    widths = [max(width(row[k]) for row in grid) for k in range(len(grid[0]))]
    return [
        "  ".join(_pad(c, w, k in right) for k, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip() for r in grid
    ]


def indent(lines: Sequence[str], by: int = 2) -> list[str]:
    """Return lines moved to the right; empty ones stay empty."""
    return [" " * by + line if line else line for line in lines]


def wrap(sentence: str) -> list[str]:
    """Return a sentence broken at spaces, in Chinese behind its punctuation as well, where it is longer than a line."""
    lines: list[str] = []
    for given in sentence.splitlines():
        wide = width(given) > len(given)
        lines += _broken(given) if wide else textwrap.wrap(given, WIDTH, break_long_words=False)
    return lines


def _broken(sentence: str) -> list[str]:
    lines = [""]
    for piece in ENDS.split(sentence):
        if lines[-1] and width((lines[-1] + piece).rstrip()) > WIDTH:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(cell: str) -> str:
    flat = " ".join(cell.split())
    if width(flat) <= CELL:
        return flat
    kept = ""
    for character in flat:
        if width(kept) + _columns(character) >= CELL:
            break
        kept += character
    return kept + "…"


def _pad(cell: str, columns: int, right: bool = False) -> str:
    space = " " * (columns - width(cell))
    return space + cell if right else cell + space
