"""The registered cell magics and ``%exercises``: help, ``%lsmagic``, wrong options, shells without the transformer."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, line_magic, magics_class, no_var_expand
from IPython.display import display

from nbautograd import messages
from nbautograd.course.progress import CourseProgress
from nbautograd.inspection.audit import ended_by
from nbautograd.magics import output
from nbautograd.magics.exercise import Exercises, parse_exercise
from nbautograd.magics.options import AUDITED_CELL, EXERCISE, FUNCTION, Options, audit_within, help_text, parse
from nbautograd.magics.output import CellFailedError
from nbautograd.magics.session import Cell, Session
from nbautograd.magics.transformer import Request

AUDIT_NAME = "_audit"  # variable that holds the last report of %%autograd_audit


@magics_class
class FunctionMagics(Magics):
    """``%%autograd_function`` as IPython knows it.

    A well written cell never gets here, since the transformer lets it run natively. What does get here: a line with
    wrong options, which is answered with a sentence and runs nothing, as with any other magic; and calls of
    ``run_cell_magic``, as in an exported script.
    """

    def __init__(self, shell: Any, session: Session) -> None:
        super().__init__(shell)
        self._shell = shell
        self._session = session

    @no_var_expand
    @line_cell_magic  # a line, so that ``%autograd_function?`` finds it
    def autograd_function(self, line: str, cell: str = "") -> None:
        """Record the Functions that the cell defines; the text of the help is set when the extension is loaded."""
        if output.show_help(self, "autograd_function", line):
            return
        options = parse(line)
        if not cell.strip():
            raise UsageError(messages.text("magics.empty_body"))
        watched = Cell(None, Request(options))
        self._session.begin(watched)
        result = None
        try:
            # the comment keeps the line numbers of tracebacks; IPython would strip an empty line
            result = self._shell.run_cell(f"# {FUNCTION.magic}\n{cell}", store_history=False)
        finally:
            self._session.end(watched, result)
        if result is None or not result.success:
            raise CellFailedError


@magics_class
class ExerciseMagics(Magics):
    """``%%exercise`` and ``%exercises`` as IPython knows them."""

    def __init__(self, shell: Any, exercises: Exercises) -> None:
        super().__init__(shell)
        self._shell = shell
        self._exercises = exercises

    @no_var_expand
    @line_cell_magic
    def exercise(self, line: str, cell: str = "") -> None:
        """Run the cell, then the checks of an exercise; the text of the help is set when the extension is loaded."""
        if output.show_help(self, "exercise", line):
            return
        parse_exercise(line)
        if not cell.strip():
            raise UsageError(messages.text("magics.empty_body"))
        result = self._shell.run_cell(f"{EXERCISE.magic} {line}\n{cell}", store_history=False)
        if not result.success:
            raise CellFailedError

    @no_var_expand
    @line_magic
    def exercises(self, line: str) -> CourseProgress | None:
        """Return how the exercises of this notebook stand; with names stop a cell that needs their answers."""
        if output.show_help(self, "exercises", line):
            return None
        for name in line.split():
            if self._exercises.tries.of(name).state == "unanswered":
                raise UsageError(messages.text("course.magic.needed", name=name))
        return None if line.strip() else self._exercises.tries.progress()


@magics_class
class AuditMagics(Magics):
    """``%%autograd_audit`` as IPython knows it; ``%autograd_audit`` is among the line magics."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._shell = shell

    @no_var_expand
    @cell_magic
    def autograd_audit(self, line: str, cell: str) -> None:
        """Run the cell, then check its custom gradients; the text of the help is set when the extension is loaded."""
        if output.show_help(self, "autograd_audit", line):
            return
        options = Options(**AUDITED_CELL.read(line)[1])  # type: ignore[arg-type]
        if not cell.strip():
            raise UsageError(messages.text("magics.empty_body"))
        # the comment keeps the line numbers of tracebacks; another magic below has to stand first
        above = "" if cell.lstrip().startswith("%%") else f"# {AUDITED_CELL.magic}\n"
        with audit_within(options) as audited:
            audited.name = AUDIT_NAME
            result = self._shell.run_cell(f"{above}{cell}", store_history=False)
            error = result.error_before_exec or result.error_in_exec
            audited.ended = None if error is None else ended_by(error)
        report = self._shell.user_ns[AUDIT_NAME] = audited.report()
        if report.functions or result.success:
            display(report)
        if not result.success:
            raise CellFailedError


def set_help() -> None:
    """Write the help texts in the language that is chosen now."""
    FunctionMagics.autograd_function.__doc__ = help_text()
    AuditMagics.autograd_audit.__doc__ = messages.text("magics.cell_autograd_audit")
    ExerciseMagics.exercise.__doc__ = messages.text("course.magic.help")
    ExerciseMagics.exercises.__doc__ = messages.text("course.magic.help_progress")
