"""Exceptions of an answer, said kindly."""

from __future__ import annotations

import traceback
from typing import Any

from nbautograd.core.checking import phrases
from nbautograd.core.findings import Phrase
from nbautograd.course.attempt import Attempt
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import from_finding
from nbautograd.errors import NbautogradError


def in_forward(attempt: Attempt, inputs: tuple[Any, ...], error: Exception) -> Failure:
    """Return the failure for what a forward raised, or torch on what it did with ctx."""
    return in_backward(attempt, inputs, error, "forward_raised")


def in_backward(
    attempt: Attempt, inputs: tuple[Any, ...], error: Exception, otherwise: str = "backward_raised"
) -> Failure:
    """Return the failure for what a backward raised, or torch on its return: gradcheck's sentence, if it has one."""
    try:
        found = [f for f in attempt.gradcheck(inputs).findings if f.code in ("exception", "mutates_saved")]
    except Exception:  # a callable that the checker cannot take apart, or a forward that raises
        found = []
    return from_finding(found[0]) if found else plainly(otherwise, error)


def plainly(code: str, error: BaseException, **params: Any) -> Failure:
    """Return the failure ``code`` with what was raised, and the line of the student's cell from hint level 2 on."""
    said = phrases.short(str(error), 160)
    line = _line(error)
    more = () if line is None else (Phrase("findings.look_at_line", line=line),)
    known = {"error": type(error).__name__, "said": said, **params}
    if isinstance(error, NbautogradError):
        return Failure(code, Phrase(error.message_id, **error.params))
    return Failure(code, f"course.{code}", known, more)


def _line(error: BaseException) -> int | None:
    ran = [(f.f_code.co_filename, n) for f, n in traceback.walk_tb(error.__traceback__)]
    lines = [line for file, line in ran if file.startswith("<") or "ipykernel_" in file]  # of cells
    return lines[-1] if lines else None
