"""Blanks the lines of our cell magics, so that IPython runs the rest of the cell as if they were not there.

Namespace, prints, tracebacks, line numbers, ``inspect.getsource`` and the last expression's output are then IPython's
own. What the lines ask for is done around the cell, by ``session.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from IPython.core.error import UsageError

from nbautograd.magics.exercise import ExerciseRequest, parse_exercise
from nbautograd.magics.options import EXERCISE, FUNCTION, Options, parse

_LINE = re.compile(rf"({FUNCTION.magic}|{EXERCISE.magic})(?![\w?])(.*)")
_PLACEHOLDER = re.compile(r"\.\.\.\s*(#.*)?")


@dataclass(frozen=True)
class Request:
    """Request of the lines of our magics.

    Attributes:
        options: of ``%%autograd_function``; None under ``%%exercise`` alone, which records Functions and shows none.
        exercise: the exercise to check after the cell, or None.
        body: the cell without our lines, the numbers of its lines kept.
    """

    options: Options | None
    exercise: ExerciseRequest | None = None
    body: str = ""


class BlankMagicLines:
    """An input transformer that empties the lines ``%%autograd_function ...`` and ``%%exercise ...`` atop a cell.

    A line that is not understood, or that has nothing under it, is left for the registered cell magic, which says what
    is wrong and runs nothing.

    Args:
        take: is told of each cell that is about to run what it asks for; None when it has no line of ours.
    """

    # IPython skips such transformers when it asks whether a cell is complete: the magic's cell then ends like any
    # other cell magic's, with an empty line, instead of running as soon as its first line is typed
    has_side_effects = True

    def __init__(self, take: Callable[[Request | None], None]) -> None:
        self._take = take

    def __call__(self, lines: list[str]) -> list[str]:
        """Return the lines as IPython is to run them."""
        request, left = read(lines)
        self._take(request)
        return left


def read(lines: list[str]) -> tuple[Request | None, list[str]]:
    """Read and empty the lines of our magics, each at most once, above everything else.

    Returns:
        What they ask for, or None; and the lines that IPython is to run.
    """
    options, exercise, count = None, None, 0
    for position, line in enumerate(lines):
        found = _LINE.match(line.strip())
        if found is None and (line.strip() or not count):
            break
        if found is None:
            continue
        magic, text = found.groups()
        if (options if magic == FUNCTION.magic else exercise) is not None:
            break
        try:
            if magic == FUNCTION.magic:
                options = parse(text)
            else:
                exercise = parse_exercise(text)
        except UsageError:
            return None, [*lines[position:], "\n"]
        count = position + 1
    body = lines[count:]
    if not count:
        return None, lines
    if not any(line.strip() for line in body):
        return None, [*lines, "\n"]  # IPython has a sentence of its own for a cell magic with no line under it
    kept = ["\n"] * count + body
    first = next(k for k, line in enumerate(kept) if line.strip())
    # another cell magic below is only seen by IPython when it stands first
    left = kept[first:] if kept[first].startswith("%%") else kept
    last = next(line for line in reversed(body) if line.strip())
    # of an untouched answer IPython would show the ``...`` as the cell's value
    ending = ["\n", "None\n"] if exercise is not None and _PLACEHOLDER.fullmatch(last.rstrip()) else []
    return Request(options, exercise, "".join(kept)), left + ending
