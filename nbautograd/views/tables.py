"""Aligned plain-text tables, for a terminal and for ``text/plain``; wide characters count as two columns."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence

WIDTH = 110
CELL = 48  # a longer cell is cut


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(_columns(c) for c in text)


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), cut: bool = True
) -> list[str]:
    """Lines of a table with two spaces between columns.

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


def beside(panels: Sequence[Sequence[str]], gap: int = 4) -> list[str]:
    """Several blocks of lines side by side."""
    height = max((len(p) for p in panels), default=0)
    widths = [max((width(line) for line in p), default=0) for p in panels]
    rows = [[p[k] if k < len(p) else "" for p in panels] for k in range(height)]
    return [(" " * gap).join(_pad(c, w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def indent(lines: Sequence[str], by: int = 2) -> list[str]:
    """Lines moved to the right; empty ones stay empty."""
    return [" " * by + line if line else line for line in lines]


def wrap(sentence: str) -> list[str]:
    """A sentence broken at spaces where it is longer than a line."""
    return [w for line in sentence.splitlines() for w in textwrap.wrap(line, WIDTH, break_long_words=False)]


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
