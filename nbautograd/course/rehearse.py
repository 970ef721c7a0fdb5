"""Rehearsal: solutions pass, known-wrong answers fail as their author says, untouched cells say that they are.

``python -m nbautograd.course.rehearse hw1.py`` prints what does not hold; answers are in ``hw1.diff``.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from nbautograd.course import source as notebook
from nbautograd.course.answers import answers_of
from nbautograd.course.catalogue import find
from nbautograd.course.exercise import Exercise
from nbautograd.course.result import ExerciseResult
from nbautograd.course.run import check
from nbautograd.course.source import Source
from nbautograd.errors import NbautogradError

_numbers = itertools.count()


@dataclass(frozen=True)
class AnswerCheck:
    """One answer that was tried.

    Attributes:
        exercise: its exercise.
        role: ``"solution"``, ``"right"``, ``"wrong"`` or ``"untouched"``; ``"plain"`` for another cell that raised.
        expected: for a wrong answer the code that it must give.
        result: what the checks said, or None when the cell itself raised.
        error: what the cell raised, in one line.
        head: the first line of the answer, to find it by.
    """

    exercise: str
    role: str
    expected: str
    result: ExerciseResult | None
    error: str = ""
    head: str = ""

    @property
    def holds(self) -> bool:
        """Return True if it came out as the author promised."""
        if self.result is None:
            return False
        if self.role in ("solution", "right"):
            return self.result.passed
        if self.role == "untouched":
            return self.result.state == "unanswered"
        return not self.result.passed and self.result.shows(self.expected)

    def __str__(self) -> str:
        codes = "" if self.result is None else ", ".join(self.result.codes) or self.result.state
        wanted = {"wrong": f"must fail with {self.expected!r}", "untouched": "must be 'not answered yet'"}
        got = f"the cell raised {self.error}" if self.error else f"got: {codes}"
        return f"{self.exercise}: {self.role} cell {wanted.get(self.role, 'must pass')}; {got}   [{self.head}]"


def rehearse(whole: Source, file: Path | None = None) -> Iterator[AnswerCheck]:
    """Try every answer to the exercises of a source notebook: solution, untouched cell, those of the author's file.

    The other code cells run first, in order, up to the exercise's own cell, as a student would run them; solutions
    count as answers given. Magics are left out.

    Args:
        whole: a source notebook, with its ``*_exercises.py`` beside it if it has one.
        file: of the answers, as in ``answers_of``.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    answers = answers_of(whole, file)
    for cell in whole.cells:
        if cell.kind != "code":
            continue
        if cell.is_answer:
            exercise = find(cell.exercise, whole.path.parent)
            yield _tried(exercise, "solution", notebook.solved(cell), namespace)
            yield _tried(exercise, "untouched", notebook.stripped(cell.text, "en"), namespace)
            for answer in answers:
                if answer.exercise == exercise.name:
                    role = "right" if answer.expected == "right" else "wrong"
                    yield _tried(exercise, role, answer.text, namespace, answer.expected)
            _define(notebook.solved(cell), namespace)
        elif (error := _define(cell.text, namespace)) and "raises-exception" not in cell.tags:
            yield AnswerCheck("-", "plain", "", None, error, _head(cell.text))


def passed_untouched(whole: Source) -> Iterator[tuple[str, str]]:
    """Run the cells that a student gets, untouched; yield each exercise that something defined there passes.

    What a cell tagged ``shown`` defines is there on purpose.

    Args:
        whole: a source notebook, with its ``*_exercises.py`` beside it if it has one.

    Yields:
        The exercise, and the name of what passes all its checks.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown: set[str] = set()
    for cell in whole.cells:
        if cell.kind == "code":
            before = dict(namespace)
            _define(notebook.stripped(cell.text, "en"), namespace)
            if "shown" in cell.tags:
                shown |= {name for name, value in namespace.items() if before.get(name) is not value}
    left = {k: v for k, v in namespace.items() if k not in shown and k[:2] != "__" and not isinstance(v, ModuleType)}
    for cell in whole.answers:
        exercise = find(cell.exercise, whole.path.parent)
        for name, value in left.items():
            if (exercise.formula is None or callable(value)) and check(exercise, value).passed:
                yield exercise.name, name


def _tried(exercise: Exercise, role: str, text: str, before: dict[str, Any], expected: str = "") -> AnswerCheck:
    namespace = {k: v for k, v in before.items() if k != exercise.answer}
    head = _head(text)
    error = _define(text, namespace)
    if error:
        return AnswerCheck(exercise.name, role, expected, None, error, head)
    there = exercise.answer in namespace
    result = check(exercise, namespace.get(exercise.answer), source=text, defined=there)
    if role == "untouched" and there:  # nor may it earn anything where its text is not known
        blind = check(exercise, namespace[exercise.answer])
        result = blind if blind.earned else result
    return AnswerCheck(exercise.name, role, expected, result, "", head)


def _head(text: str) -> str:
    lines = notebook.without_magics(text).splitlines()
    return next((line.strip() for line in lines if line.strip() and not line.startswith("#")), "")


def _define(text: str, namespace: dict[str, Any]) -> str:
    """Run a cell without its magics; returns what it raised, in one line."""
    code = notebook.without_magics(text) + "\n"
    file = f"<answer {next(_numbers)}>"
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)  # so that its source can be read
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(code, file, "exec"), namespace)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return ""


def main(paths: Sequence[str]) -> int:
    """Rehearse these source notebooks and print what does not hold; returns how many answers that were."""
    wrong = 0
    for path in map(Path, paths):
        start, count = time.perf_counter(), 0
        slowest: dict[str, float] = {}
        try:
            for tried in rehearse(notebook.read(path)):
                count += 1
                if tried.result is not None:
                    slowest[tried.exercise] = max(slowest.get(tried.exercise, 0.0), tried.result.seconds)
                if not tried.holds:
                    wrong += 1
                    print(f"  ✗ {tried}", flush=True)
        except NbautogradError as error:
            wrong += 1
            print(f"  ✗ {error}")
        longest = max(slowest.items(), key=lambda item: item[1], default=("-", 0.0))
        took = time.perf_counter() - start
        print(f"{path.name}: {count} answers, {took:.1f} s, slowest {longest[0]} {longest[1]:.2f} s")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
