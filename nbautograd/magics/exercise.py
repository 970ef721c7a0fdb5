"""``%%exercise NAME``: which exercise a cell answers, and its checks after the cell ran."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from IPython.core.error import UsageError
from IPython.display import display

from nbautograd import messages
from nbautograd.core.user_source import tree_of
from nbautograd.course.catalogue import UnknownExerciseError, find, names
from nbautograd.course.exercise import Exercise
from nbautograd.course.progress import TryCounts
from nbautograd.course.result import ExerciseResult
from nbautograd.course.run import check, placeholder
from nbautograd.course.sentences import Level
from nbautograd.course.source import without_magics
from nbautograd.magics.options import EXERCISE
from nbautograd.magics.output import show_stumble
from nbautograd.magics.progress import ProgressBar, show_interrupted


@dataclass(frozen=True)
class ExerciseRequest:
    """Request of a line ``%%exercise ...``.

    Attributes:
        exercise: which exercise.
        hints: how much a failure gives away.
    """

    exercise: Exercise
    hints: Level = "what"


def parse_exercise(line: str) -> ExerciseRequest:
    """Read the magic's line.

    Args:
        line: what follows ``%%exercise``, such as ``"multiply --hints where"``.

    Raises:
        UsageError: one sentence; the cell is not run.
    """
    name, options = EXERCISE.read(line)
    if not name or len(name.split()) > 1:
        raise EXERCISE.refused("course.magic.no_name" if not name else "course.magic.one_name", text=name)
    try:
        return ExerciseRequest(find(name, Path.cwd()), cast("Level", options.get("hints", "what")))
    except UnknownExerciseError as error:
        known = names(Path.cwd()) if error.message_id == "course.unknown" else ()
        sentence = messages.with_guess(str(error), name, known)
        raise UsageError(messages.paragraph((sentence, messages.text("magics.not_run")))) from None


class Exercises:
    """The exercises of one session: what runs after each of their cells.

    Args:
        shell: the InteractiveShell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.tries = TryCounts()

    def check(self, request: ExerciseRequest, source: str, succeeded: bool) -> None:
        """Make the checks of an exercise and show what they say.

        Args:
            request: what the cell's line asks for.
            source: the cell without its magic lines.
            succeeded: False when the cell raised.
        """
        name = request.exercise.name
        bar = ProgressBar(self.shell, messages.text("course.checking", name=name), counted=False)
        try:
            self._show(request, source, succeeded, bar)
        except KeyboardInterrupt:
            show_interrupted(bar)
        except Exception as error:  # a mistake of ours is a sentence
            show_stumble(EXERCISE.magic, error)

    def _show(self, request: ExerciseRequest, source: str, succeeded: bool, bar: ProgressBar) -> None:
        exercise, left = request.exercise, placeholder(source)
        if not succeeded and left is None:
            # the traceback has said it
            self.tries.add(ExerciseResult(exercise.name, exercise.answer, "failed", points=exercise.points))
            return
        if not succeeded:
            result = ExerciseResult(exercise.name, exercise.answer, "unanswered", line=left, points=exercise.points)
        else:
            with bar:
                result = self._checked(request, source)
        self.tries.add(result)
        if not bar.show_instead(result):
            display(result)

    def _checked(self, request: ExerciseRequest, source: str) -> ExerciseResult:
        exercise, names = request.exercise, self.shell.user_ns
        return check(
            exercise,
            names.get(exercise.answer),
            seed=self.tries.of(exercise.name).tries,
            hints=request.hints,
            source=source,
            defined=exercise.answer in names and defines(source, exercise.answer),
        )


def defines(source: str, name: str) -> bool:
    """Return True if a cell gives this name a value, or if its text does not tell."""
    tree = tree_of(without_magics(source))
    if tree is None:
        return True
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and name in (node.asname, node.name, "*"):
            return True
    return False
