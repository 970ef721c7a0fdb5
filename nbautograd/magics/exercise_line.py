"""The line ``%%exercise NAME``: read, and exchanged for one that records the cell's Functions without showing them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from IPython.core.error import UsageError

from nbautograd import messages
from nbautograd.course.catalogue import UnknownExerciseError, find
from nbautograd.course.exercise import Exercise

MAGIC = "%%exercise"
RECORDED = "%%autograd_function"
_LINE = re.compile(re.escape(MAGIC) + r"(?![\w?])(.*)")
_LEFT = re.compile(r"\.\.\.\s*(#.*)?")
_HINTS = re.compile(r"\s*(?:--hints|-h)(?:\s+|=)(\S+)\s*")


@dataclass(frozen=True)
class Asked:
    """What a cell with the magic asks for.

    Attributes:
        exercise: which exercise.
        hints: how much a failure says, 1 to 3.
    """

    exercise: Exercise
    hints: int = 1


def parse(line: str) -> Asked:
    """Read the magic's line.

    Args:
        line: what follows ``%%exercise``, such as ``"multiply --hints 2"``.

    Raises:
        UsageError: one sentence; the cell is not run.
    """
    found = _HINTS.search(line)
    hints = found[1] if found else "1"
    name = _HINTS.sub(" ", line, count=1).strip()
    if hints not in ("1", "2", "3"):
        raise _refused("course.magic.hints", given=hints)
    if not name or len(name.split()) > 1:
        raise _refused("course.magic.no_name" if not name else "course.magic.one_name", text=name)
    try:
        return Asked(find(name, Path.cwd()), int(hints))
    except UnknownExerciseError as error:
        raise UsageError(f"{error} {messages.text('magics.not_run')}") from None


def asked(raw_cell: str) -> Asked | None:
    """What a cell asks for; None when it has no (well written) ``%%exercise`` line among its first magics."""
    for line in raw_cell.strip("\n").splitlines():
        text = option_text(line)
        if text is not None:
            try:
                return parse(text)
            except UsageError:
                return None
        if line.strip() and not line.lstrip().startswith("%%"):
            return None
    return None


def option_text(line: str) -> str | None:
    """What follows the magic on its line; None for any other line."""
    found = _LINE.match(line.strip())
    return found[1] if found else None


class ExchangeExerciseLine:
    """An input transformer: the cell then runs as one with ``%%autograd_function --quiet``, line numbers kept.

    A cell that has a ``%%autograd_function`` line of its own below keeps that one. A line with wrong options is left
    for the registered cell magic, which says what is wrong.
    """

    has_side_effects = True  # so that IPython does not ask it whether a cell is complete

    def __call__(self, lines: list[str]) -> list[str]:
        """The lines as the next transformer is to see them."""
        if not lines or asked(lines[0]) is None or not any(line.strip() for line in lines[1:]):
            return lines
        body = lines[1:] + _nothing_shown(lines)
        if len(body) > 1 and body[0].startswith(RECORDED):
            return [body[0], "\n", *body[1:]]
        return [f"{RECORDED} --quiet\n", *body]


def _nothing_shown(lines: list[str]) -> list[str]:
    """A line for the end of an untouched cell that ends with ``...``, which IPython would show as its value."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return ["\n", "None\n"] if _LEFT.fullmatch(last.rstrip()) else []


def _refused(message_id: str, **params: str) -> UsageError:
    return UsageError(f"{messages.text(message_id, **params)} {messages.text('magics.not_run')}")
