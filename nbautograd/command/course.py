"""``nbautograd course``: the notebooks that the wheel carries: listed, copied into a person's folder, opened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbautograd.command.places import notebooks, own_copy
from nbautograd.errors import CommandError
from nbautograd.messages import text


@dataclass(frozen=True)
class Lesson:
    """One notebook of the course.

    Attributes:
        path: the file that was installed.
        number: such as ``"03"``.
        title: in its language.
        minutes: about how long it takes; ``"?"`` when unknown.
        exercises: how many it has.
        content: hash of its cells, which tells one release from another.
    """

    path: Path
    number: str
    title: str
    minutes: str
    exercises: int
    content: str


def lessons(lang: str) -> list[Lesson]:
    """Return the notebooks of the course in this language, in order."""
    return [_lesson(path) for path in notebooks(lang)]


def show(lang: str) -> int:
    """Print what there is of the course; returns 0."""
    there = lessons(lang)
    print(text("command.course.title", count=len(there)))
    for lesson in there:
        known = {"title": lesson.title, "count": lesson.exercises, "minutes": lesson.minutes}
        print(f"  {lesson.number}  {text('command.course.row', **known)}")
    print(text("command.course.next"))
    print(text("command.course.guides"))
    return 0


def copy(folder: Path, lang: str) -> int:
    """Copy all notebooks into a person's folder; what is theirs stays; returns 0."""
    for lesson in lessons(lang):
        _own(lesson, folder)
    return 0


def open_lesson(number: str, folder: Path, lang: str, jupyter: Sequence[str]) -> int:
    """Copy one notebook if it is not there yet, and open JupyterLab on it; returns the server's exit status."""
    from nbautograd.command.lab import serve

    return serve(_own(_numbered(number, lang), folder), lang=lang, jupyter=jupyter)


def _own(lesson: Lesson, folder: Path) -> Path:
    """Return a person's copy; theirs stays in its place as long as it comes from the same release."""
    return own_copy(
        lesson.path, folder, lesson.path.name, lambda mine: _about(_read(mine)).get("content") == lesson.content
    )


def _numbered(number: str, lang: str) -> Lesson:
    there = lessons(lang)
    wanted, name = number.zfill(2), number.partition("_")[2]
    for lesson in there:
        # by name whatever the number before it: numbers have changed once
        if lesson.number == wanted or lesson.path.stem.partition("_")[2] == name:
            return lesson
    numbers = ", ".join(lesson.number for lesson in there)
    raise CommandError(text("command.course.no_lesson", number=number, numbers=numbers))


def _lesson(path: Path) -> Lesson:
    content = _read(path)
    about = _about(content)
    cells = [cell.get("metadata", {}).get("nbautograd", {}) for cell in content.get("cells", [])]
    return Lesson(
        path,
        number=path.stem.partition("_")[0],
        title=str(about.get("title", path.stem)),
        minutes=str(about.get("minutes", "?")),
        exercises=sum(bool(own.get("exercise")) for own in cells),
        content=about.get("content", ""),
    )


def _about(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a notebook says of itself; nothing for a file that is none."""
    about = content.get("metadata", {})
    own = about.get("nbautograd", {}) if isinstance(about, dict) else {}
    return own if isinstance(own, dict) else {}


def _read(path: Path) -> dict[str, Any]:
    """Read a notebook by json alone: the course is listed and copied where the extra with nbformat is not installed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
