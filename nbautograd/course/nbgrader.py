"""A notebook for nbgrader: the metadata by which it knows a cell (schema 3), and cells of points."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from nbautograd import messages
from nbautograd.course.catalogue import find
from nbautograd.course.run import check
from nbautograd.course.source import BEGIN, END, PLACEHOLDER
from nbautograd.errors import NbautogradError

SCHEMA = 3
_LINE = re.compile(rf"^([ \t]*){re.escape(PLACEHOLDER['en'])}$|^([ \t]*){re.escape(PLACEHOLDER['zh'])}$", re.MULTILINE)


class NoPointsError(NbautogradError):
    """An answer that earns nothing: nbgrader gives 0 to a cell that raises."""

    def _render_traceback_(self) -> list[str]:
        """Return all that IPython shows of it: the sentence."""
        return [str(self)]


def points(name: str, answer: Any, seed: int = 0) -> int:
    """Return the points that an answer earns, as nbgrader reads them from the last value of a cell.

    Args:
        name: of the exercise.
        answer: what the student's cell defined.
        seed: of the random points.

    Raises:
        NoPointsError: when it earns none. A cell without any output would count in full.

    Example:
        >>> import torch
        >>> from nbautograd.course.nbgrader import points
        >>> points("multiply", torch.mul)
        Traceback (most recent call last):
        ...
        nbautograd.course.nbgrader.NoPointsError: `multiply`: 0 of 1 points...
    """
    result = check(find(name, Path.cwd()), answer, seed=seed)
    if not result.earned:
        reason = next((o.sentences()[0] for o in result.outcomes if o.state == "failed"), "")
        said = reason or messages.text("course.result.unanswered_more")
        raise NoPointsError("course.no_points", name=name, points=result.points, reason=said)
    return result.earned


def points_cell(name: str, answer: str) -> str:
    """Return the text of the cell that stands below an exercise and is worth its points."""
    return f'from nbautograd.course.nbgrader import points\n\npoints("{name}", {answer})'


def with_regions(text: str) -> str:
    """Return a student's cell in which each line that stands for an answer is a region of nbgrader's.

    ``generate_assignment`` puts its own stub there, and leaves the rest; a solution cell without a region it empties.
    """

    def region(line: re.Match[str]) -> str:
        indent = line[1] if line[1] is not None else line[2]
        return f"{indent}{BEGIN}\n{line[0]}\n{indent}{END}"

    return _LINE.sub(region, text)


def solution(name: str, text: str) -> dict[str, Any]:
    """Return the metadata of the cell of an exercise: the student writes it, nobody grades it by hand."""
    return _metadata(name, text, "code", grade=False, solution=True, locked=False)


def graded(name: str, text: str, worth: int) -> dict[str, Any]:
    """Return the metadata of a cell of points: put back as it was before it is run, and worth what it gives."""
    return _metadata(name, text, "code", grade=True, solution=False, locked=True, points=worth)


def read_only(name: str, text: str, kind: str) -> dict[str, Any]:
    """Return a cell that is put back as it was when a student changes it."""
    return _metadata(name, text, kind, grade=False, solution=False, locked=True)


def checksum(meta: dict[str, Any], text: str, kind: str) -> str:
    """Return the MD5 that nbgrader computes over a cell's text, type, kind, name and points."""
    locked = not meta["solution"] and (bool(meta["locked"]) or bool(meta["grade"]))
    parts = [text, kind, str(meta["grade"]), str(meta["solution"]), str(locked), meta["grade_id"]]
    if meta["grade"]:
        parts.append(str(float(meta["points"])))
    return hashlib.md5("".join(parts).encode("utf-8"), usedforsecurity=False).hexdigest()


def _metadata(name: str, text: str, kind: str, **about: Any) -> dict[str, Any]:
    meta = {"grade_id": name, "schema_version": SCHEMA, "task": False, **about}
    return {**meta, "cell_type": kind, "checksum": checksum(meta, text, kind)}
