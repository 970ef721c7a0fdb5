"""``%%exercise NAME`` and ``%exercises``: the checks of an exercise after its cell, and how the notebook stands."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.display import display

from nbautograd import messages
from nbautograd.course.exercise import Exercise
from nbautograd.course.progress import Progress, Tries
from nbautograd.course.result import Result
from nbautograd.course.run import check, placeholder
from nbautograd.magics.exercise_line import MAGIC, Asked, asked, option_text, parse
from nbautograd.magics.output import CellFailedError, replace_with_message, show_message
from nbautograd.magics.progress import ProgressBar


@dataclass(eq=False)
class _Cell:
    info: Any
    asked: Asked | None
    taken: bool = False


class Exercises:
    """The exercises of one session: what runs after each of their cells.

    Args:
        shell: the InteractiveShell.
    """

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.tries = Tries()
        self._cells: list[_Cell] = []

    def before_cell(self, info: Any) -> None:
        """IPython's ``pre_run_cell``: is this the cell of an exercise?"""
        here = asked(info.raw_cell or "")
        if here is not None:
            for outer in self._cells:
                outer.taken = True  # a cell magic above ours runs the rest by itself
        self._cells.append(_Cell(info, here))

    def after_cell(self, result: Any) -> None:
        """IPython's ``post_run_cell``: make the checks and show what they say."""
        cell = self._pop(getattr(result, "info", None))
        if cell is None or cell.asked is None or cell.taken:
            return
        name = cell.asked.exercise.name
        bar = ProgressBar(self.shell, messages.text("course.checking", name=name), counted=False)
        try:
            self._show(cell.asked, without_magics(cell.info.raw_cell), bool(result is not None and result.success), bar)
        except KeyboardInterrupt:
            replace_with_message(bar, "magics.interrupted")
        except Exception as error:  # a mistake of ours is a sentence
            show_message("magics.stumbled", magic=MAGIC, error=f"{type(error).__name__}: {error}")

    def _pop(self, info: Any) -> _Cell | None:
        for cell in reversed(self._cells):
            if cell.info is info:
                del self._cells[self._cells.index(cell) :]
                return cell
        return None

    def _show(self, here: Asked, source: str, succeeded: bool, bar: ProgressBar) -> None:
        exercise, left = here.exercise, placeholder(source)
        if not succeeded and left is None:
            self.tries.add(_failed(exercise))  # the traceback has said it
            return
        if not succeeded:
            result = Result(exercise.name, exercise.answer, "unanswered", line=left, points=exercise.points)
        else:
            with bar:
                result = self._checked(here, source)
                if bar.stopped:  # what was checked by then is no grade
                    raise KeyboardInterrupt
        self.tries.add(result)
        if not bar.show_instead(result):
            display(result)

    def _checked(self, here: Asked, source: str) -> Result:
        exercise, names = here.exercise, self.shell.user_ns
        return check(
            exercise,
            names.get(exercise.answer),
            seed=self.tries.of(exercise.name).tries,
            hints=here.hints,
            source=source,
            defined=exercise.answer in names and defines(source, exercise.answer),
        )


@magics_class
class ExerciseMagics(Magics):
    """``%%exercise`` and ``%exercises`` as IPython knows them."""

    def __init__(self, shell: Any, exercises: Exercises) -> None:
        super().__init__(shell)
        self._shell = shell
        self._exercises = exercises

    @no_var_expand
    @cell_magic
    def exercise(self, line: str, cell: str) -> None:
        """Run the cell, then the checks of an exercise; the text of the help is set when the extension is loaded."""
        parse(line)
        if not cell.strip():
            raise UsageError(messages.text("magics.empty_body"))
        result = self._shell.run_cell(f"{MAGIC} {line}\n{cell}", store_history=False)
        if not result.success:
            raise CellFailedError

    @no_var_expand
    @line_magic
    def exercises(self, line: str) -> Progress:
        """The exercises of this notebook, how often each was tried, and how it stands."""
        return self._exercises.tries.progress()


def set_help() -> None:
    """Write the help texts in the language that is chosen now."""
    ExerciseMagics.exercise.__doc__ = messages.text("course.magic.help")
    ExerciseMagics.exercises.__doc__ = messages.text("course.magic.help_progress")


def without_magics(raw_cell: str) -> str:
    """The cell with the lines of cell magics emptied, so that it parses and its line numbers are the cell's."""
    lines = raw_cell.splitlines()
    for k, line in enumerate(lines):
        if line.strip() and not line.lstrip().startswith("%%"):
            break
        lines[k] = "" if option_text(line) is None else f"# {MAGIC}"
    return "\n".join(lines)


def defines(source: str, name: str) -> bool:
    """Whether a cell gives this name a value; True when its text does not tell.

    Example:
        >>> from nbautograd.magics.exercise import defines
        >>> defines("class Multiply: ...", "Multiply"), defines("x = 1", "Multiply")
        (True, False)
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return True
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
        if isinstance(node, ast.alias) and name in (node.asname, node.name, "*"):
            return True
    return False


def _failed(exercise: Exercise) -> Result:
    return Result(exercise.name, exercise.answer, "failed", points=exercise.points)
