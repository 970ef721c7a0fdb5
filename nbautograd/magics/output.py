"""Output of the magics: results as display data, wrong lines as one line on stderr, the user's errors as their own."""

from __future__ import annotations

import inspect
import os
import types
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from nbautograd.core import stumbles
from nbautograd.core.findings import Phrase
from nbautograd.magics.call_expression import one_line
from nbautograd.magics.progress import ProgressBar
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import Notice, RecordingCard

_OURS = str(Path(__file__).parent.parent) + os.sep
EVALUATED = "<magic>"


class CellFailedError(Exception):
    """The cell's body raised and has been shown; this only tells the front end that the cell failed."""

    def _render_traceback_(self) -> list[str]:
        return []


def show_help(magics: object, name: str, line: str) -> bool:
    """Print the help of a magic where its line asks for it; return True if so.

    ``-h`` asks alone on the line, since ``f(a) -h`` is an expression; ``--help`` anywhere.
    """
    asked = line.strip() == "-h" or "--help" in line.split()
    if asked:
        print(inspect.cleandoc(getattr(magics, name).__doc__))
    return asked


def show_message(message_id: str, **params: Any) -> None:
    """Show one sentence as a result."""
    show(Notice((Phrase(message_id, **params),)))


def show_stumble(magic: str, error: Exception) -> None:
    """Report an error of ours in a sentence; the user's cell goes on."""
    show_message("magics.stumbled", magic=magic, error=kept(error, magic))


def kept(error: Exception, magic: str) -> str:
    """Keep an error of ours, and return its text in one line."""
    stumbles.record(error, magic)
    return f"{type(error).__name__}: {one_line(error)}"


def show_interrupted(bar: ProgressBar) -> None:
    """Say that a check was interrupted, in the place of its bar where there is one."""
    notice = Notice((Phrase("magics.interrupted"),))
    if not bar.close(mimebundle(notice)):
        show(notice)


def show(value: RecordingCard | Notice) -> None:
    """Show a card or a notice."""
    display(mimebundle(value), raw=True)


def show_usage_error(shell: Any, result: Any, error: UsageError) -> None:
    """Say in one line on stderr what is wrong with the magic's line, and let the cell count as failed."""
    shell.show_usage_error(error)
    _mark(shell, result, error)


def show_users_error(shell: Any, result: Any, error: BaseException) -> None:
    """Show an error of the user's code as if nothing of ours had called it, and let the cell count as failed."""
    _mark(shell, result, error)
    shell.showtraceback((type(error), error, users_traceback(error)), tb_offset=0)


def count_as_interrupted(shell: Any, result: Any) -> None:
    """Let the cell count as interrupted, so that a front end stops the cells behind it as well."""
    _mark(shell, result, KeyboardInterrupt())


def render_as_users_own(shell: Any, error: BaseException) -> None:
    """Let IPython show this error, when it is raised on, without frames of ours."""
    trace = users_traceback(error)
    lines = shell.InteractiveTB.structured_traceback(type(error), error, trace, tb_offset=0)
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]


def users_traceback(error: BaseException) -> types.TracebackType | None:
    """Return the error's traceback without our frames."""
    entries = [entry for entry in _entries(error) if not _is_ours(entry)]
    trace = None
    for entry in reversed(entries):
        trace = types.TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trace


def _entries(error: BaseException) -> list[types.TracebackType]:
    entries = []
    trace = error.__traceback__
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries


def _is_ours(entry: types.TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    return file.startswith(_OURS) or file == EVALUATED


def _mark(shell: Any, result: Any, error: BaseException) -> None:
    shell.last_execution_succeeded = False
    if hasattr(shell, "_last_traceback"):  # a kernel puts this into its reply
        shell._last_traceback = [f"{type(error).__name__}: {stumbles.said(error)}"]
    if result is not None and result.success:
        result.error_in_exec = error
