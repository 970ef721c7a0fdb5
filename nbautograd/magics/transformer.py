"""Blanks the magic's line, so that IPython runs the rest of the cell as if the magic were not there.

Namespace, prints, tracebacks, line numbers, ``inspect.getsource`` and the last expression's output are then IPython's
own. What the line asks for is done around the cell, by ``session.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from IPython.core.error import UsageError

from nbautograd.magics.options import MAGIC, Options, parse

_LINE = re.compile(re.escape(MAGIC) + r"(?![\w?])(.*)")


@dataclass(frozen=True)
class Request:
    """What a cell asks for.

    Attributes:
        options: the options of its ``%%autograd_function`` line.
        nested: True when another cell magic stands above, which may run the rest by itself.
    """

    options: Options
    nested: bool


class BlankMagicLine:
    """An input transformer that empties a first line ``%%autograd_function ...``.

    A line with wrong options, or with nothing under it, is left for the registered cell magic, which says what is
    wrong and runs nothing.
    """

    # IPython skips such transformers when it asks whether a cell is complete: the magic's cell then ends like any
    # other cell magic's, with an empty line, instead of running as soon as its first line is typed
    has_side_effects = True

    def __call__(self, lines: list[str]) -> list[str]:
        """The lines as IPython is to run them."""
        if not lines or _option_text(lines[0]) is None:
            return lines
        if not _runs_natively(lines):
            return [*lines, "\n"]  # IPython has a sentence of its own for a cell magic with no line under it
        body = lines[1:]
        first = next(line for line in body if line.strip())
        # another cell magic below is only seen by IPython when it stands first
        return body[body.index(first) :] if first.startswith("%%") else ["\n", *body]


def request(raw_cell: str) -> Request | None:
    """What a cell asks of nbautograd, or None when it has no (well written) ``%%autograd_function`` line."""
    lines = raw_cell.strip("\n").splitlines()
    above = 0
    while above < len(lines) and _is_other_magic_or_blank(lines[above]):
        above += 1
    if above == len(lines) or not _runs_natively(lines[above:]):
        return None
    return Request(parse(_option_text(lines[above]) or ""), nested=any(line.strip() for line in lines[:above]))


def _is_other_magic_or_blank(line: str) -> bool:
    return not line.strip() or (line.lstrip().startswith("%%") and _option_text(line) is None)


def _option_text(line: str) -> str | None:
    match = _LINE.match(line.strip())
    return match[1] if match else None


def _runs_natively(lines: list[str]) -> bool:
    text = _option_text(lines[0])
    if text is None or not any(line.strip() for line in lines[1:]):
        return False
    try:
        parse(text)
    except UsageError:
        return False
    return True
