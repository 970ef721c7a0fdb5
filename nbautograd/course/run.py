"""check: all checks of an exercise on one answer."""

from __future__ import annotations

import ast
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.quiet import quiet
from nbautograd.core.findings import Phrase
from nbautograd.core.stumbles import RAISED
from nbautograd.core.user_source import tree_of
from nbautograd.course import rendering as _registers  # noqa: F401 - how results are shown
from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import ROUTINES
from nbautograd.course.checks.exceptions import plainly
from nbautograd.course.exercise import CHECKS, Exercise, Failure
from nbautograd.course.result import CheckResult, ExerciseResult
from nbautograd.course.sentences import LEVELS, Level
from nbautograd.course.source import without_magics

Routine = Callable[[Attempt], Iterable[Failure]]
# after one of these fails, the next ones would only say the same again
STOPS = {
    "value": {*CHECKS} - {"value", "custom"},
    "gradient": {"edges", "double_backward", "forward_mode", "vmap", "kinks", "cost"},
    "own_function": {*CHECKS} - {"value", "own_function", "custom"},
}


def check(
    exercise: Exercise,
    answer: Any = ...,
    *,
    seed: int = 0,
    hints: Level = "what",
    source: str = "",
    defined: bool = True,
    routines: Mapping[str, Routine] = ROUTINES,
) -> ExerciseResult:
    """Make all checks of an exercise.

    Args:
        exercise: what was asked for.
        answer: what the student's cell defined under ``exercise.answer``.
        seed: of the random points.
        hints: how much the result gives away: what is wrong, also where, or also what to do (``"fix"``).
        source: the text of the cell; a ``...`` that still stands in it tells a cell without an answer.
        defined: False when the cell did not define the name at all.
        routines: what makes each check.

    Returns:
        The result, which holds whatever exception a wrong answer raises, unless it ends the process. Nothing that
        the answer prints is shown.

    Example:
        >>> import torch
        >>> from nbautograd.course.exercise import Exercise
        >>> from nbautograd.course.run import check
        >>> exercise = Exercise("square", "square", "value gradient", lambda x: x * x, lambda draw: (draw.normal(3),))
        >>> check(exercise, lambda x: x ** 2).passed, check(exercise, lambda x: x ** 3).codes
        (True, ('forward_value',))
    """
    start = time.perf_counter()
    left = placeholder(source)
    if not defined:
        failure = Failure("not_defined", "course.not_defined", {"name": exercise.answer})
        outcomes: tuple[CheckResult, ...] = (CheckResult(exercise.ids[0], "failed", (failure,)),)
    elif answer is ...:
        outcomes = ()
    else:
        outcomes = _outcomes(exercise, answer, seed, source, routines)
    passed = bool(outcomes) and all(o.state == "passed" for o in outcomes)
    state: Any = "passed" if passed else "unanswered" if left is not None or (answer is ... and defined) else "failed"
    told = outcomes if state != "unanswered" else ()
    earned = exercise.earned({o.check for o in told if o.state == "passed"})
    return ExerciseResult(
        exercise.name, exercise.answer, state, told, left, exercise.points, earned, hints, seed,
        time.perf_counter() - start,
    )  # fmt: skip


def placeholder(source: str) -> int | None:
    """Return the line of the first ``...`` that stands for an answer, counted from 1; None when there is none."""
    tree = tree_of(without_magics(source))
    if tree is None:
        return None
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and _stands_for_answer(node)]
    return min(lines, default=None)


def _stands_for_answer(node: ast.stmt) -> bool:
    value = (
        getattr(node, "value", None) if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)) else None
    )
    if isinstance(node, ast.Raise):  # nbgrader's stub
        return node.exc is not None and ast.unparse(node.exc) == "NotImplementedError()"
    return isinstance(value, ast.Constant) and value.value is ...


def _outcomes(
    exercise: Exercise, answer: Any, seed: int, source: str, routines: Mapping[str, Routine]
) -> tuple[CheckResult, ...]:
    with quiet():
        try:
            attempt = Attempt(exercise, answer, seed, source)
            if exercise.formula is not None and not callable(attempt.fn):
                names = {"name": exercise.answer, "type": type(attempt.fn).__name__}
                return (CheckResult(exercise.ids[0], "failed", (Failure("cannot_call", "course.no_callable", names),)),)
            if exercise.formula is not None:
                attempt.call  # noqa: B018 - says what is wrong with a Function of old torch
        except RAISED as error:
            return (CheckResult(exercise.ids[0], "failed", (plainly("cannot_call", error),)),)
    told: list[CheckResult] = []
    for name in exercise.ids:
        skip = any(o.state == "failed" and (name in STOPS.get(o.check, ()) or _raises(o)) for o in told)
        outcome = CheckResult(name, "skipped") if skip else _outcome(name, attempt, routines[name])
        again = [f.code for f in outcome.failures] == ["own_raised"] and any(o.state == "failed" for o in told)
        told.append(CheckResult(name, "skipped") if again else outcome)
    return tuple(told)


def _raises(outcome: CheckResult) -> bool:
    """Return True if forward or a first backward raised: then they would raise in every other check too."""
    return any(f.code.startswith(("exception_", "backward_raised", "forward_raised")) for f in outcome.failures)


def _outcome(name: str, attempt: Attempt, routine: Routine) -> CheckResult:
    start = time.perf_counter()
    with quiet():
        try:
            failures = tuple(_noted(attempt.exercise, failure) for failure in routine(attempt))
        except RAISED as error:
            failures = (plainly("check_raised", error),)
    return CheckResult(name, "failed" if failures else "passed", failures, time.perf_counter() - start)


def _noted(exercise: Exercise, failure: Failure) -> Failure:
    """Return the failure with the exercise's own sentence for its code, if there is one, and the general advice."""
    note, advice = exercise.notes.get(failure.code), f"course.advice.{failure.code}"
    template = messages.catalogue("en")[note] if isinstance(note, str) else note["en"] if note else ""
    # a child reports a failure in words, without what a note would be filled with
    if note is not None and {name for _, name, *_ in Formatter().parse(template) if name} <= {*failure.params}:
        failure = dataclasses.replace(failure, sentence=note)
    elif len(failure.more) < len(LEVELS) - 1 and advice in messages.catalogue("en") and not _advised(failure):
        failure = dataclasses.replace(failure, more=(*failure.more, advice))
    return failure


def _advised(failure: Failure) -> bool:
    """Return True if it brings advice: a finding of the checker does, and a failure of an exercise within another."""
    ids = [s.message_id if isinstance(s, Phrase) else s for s in failure.more if not isinstance(s, Mapping)]
    return any(name.endswith(".advice") or name.startswith("course.advice.") for name in ids)
