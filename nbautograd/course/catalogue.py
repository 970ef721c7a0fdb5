"""Catalogue of exercises: those beside the notebook first, then those of the package."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from nbautograd.core.user_source import tree_of
from nbautograd.course.exercise import Exercise
from nbautograd.errors import NbautogradError

BESIDE = "*_exercises.py"
_read: dict[Path, tuple[int, dict[str, Exercise]]] = {}


class UnknownExerciseError(NbautogradError, LookupError):
    """No exercise has this name."""


def find(name: str, folder: Path | None = None) -> Exercise:
    """Return the exercise of this name.

    Args:
        name: what ``%%exercise`` takes.
        folder: of the notebook: files named ``*_exercises.py`` there come first; None asks the package only.

    Raises:
        UnknownExerciseError: when there is none.
    """
    for known in _places(folder):
        if name in known:
            return known[name]
    raise UnknownExerciseError("course.unknown", name=name)


def names(folder: Path | None = None) -> list[str]:
    """Return the names of all exercises, those beside the notebook first.

    Args:
        folder: of the notebook; None asks the package only.
    """
    return list(dict.fromkeys(name for known in _places(folder) for name in known))


def written_names(folder: Path) -> list[str]:
    """Return the names of all exercises as ``names`` does, without running a file: those written out in its text.

    A file in a folder of downloads must not run because somebody types there.
    """
    found = []
    for file in sorted(folder.glob(BESIDE)):
        tree = tree_of(file.read_text(encoding="utf-8", errors="replace"))
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == Exercise.__name__:
                named = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "name")]
                found += [x.value for x in named if isinstance(x, ast.Constant) and isinstance(x.value, str)]
    return list(dict.fromkeys([*found, *names()]))


def notebooks() -> dict[str, tuple[Exercise, ...]]:
    """Return the package's exercises by the number of their notebook, ``"01"``."""
    return {name[1:]: _declared_in(name) for name in _names()}


def in_folder(folder: Path) -> dict[str, Exercise]:
    """Return the exercises declared in a folder, by name; a file that was edited is read again."""
    found: dict[str, Exercise] = {}
    for file in sorted(folder.glob(BESIDE)):
        found.update(declared_in(file))
    return found


def _places(folder: Path | None) -> Iterator[dict[str, Exercise]]:
    if folder is not None:
        yield in_folder(folder)
    yield _packaged()


@cache
def _packaged() -> dict[str, Exercise]:
    return {exercise.name: exercise for name in _names() for exercise in _declared_in(name)}


def _names() -> list[str]:
    package = importlib.import_module("nbautograd.course.exercises")
    return sorted(info.name for info in pkgutil.iter_modules(package.__path__) if info.name[1:].isdigit())


def _declared_in(name: str) -> tuple[Exercise, ...]:
    return tuple(importlib.import_module(f"nbautograd.course.exercises.{name}").EXERCISES)


def declared_in(file: Path) -> dict[str, Exercise]:
    """Return the exercises that a file declares, by name.

    Raises:
        UnknownExerciseError: when it cannot be read.
    """
    stamp = file.stat().st_mtime_ns
    if file not in _read or _read[file][0] != stamp:
        _read[file] = stamp, _run(str(file), file.name, file.read_bytes())
    return _read[file][1]


def declared_by(texts: Mapping[str, str], wanted: Iterable[str]) -> dict[str, Exercise]:
    """Return exercises by name: those that these files declare, later ones first, then those of the package.

    Args:
        texts: name of a file -> its text.
        wanted: the names of the exercises; what else the files declare comes along.

    Raises:
        UnknownExerciseError: when a file cannot be run, or nothing declares a name.
    """
    declared: dict[str, Exercise] = {}
    for name, text in texts.items():
        declared.update(_run(name, name, text))
    return {**declared, **{name: find(name) for name in wanted if name not in declared}}


def _run(path: str, name: str, text: str | bytes) -> dict[str, Exercise]:
    module = ModuleType(f"nbautograd_course_{Path(name).stem}")
    module.__file__ = path
    try:
        exec(compile(text, path, "exec", dont_inherit=True), vars(module))
        return {exercise.name: exercise for exercise in module.EXERCISES}
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnknownExerciseError("course.declarations_broken", file=name, reason=reason) from error
