"""check: all checks of an exercise on one answer."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import re
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from types import FrameType
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.quiet import quiet
from nbautograd.core.findings import Phrase
from nbautograd.core.user_source import tree_of
from nbautograd.course import rendering as _registers  # noqa: F401 - how results are shown
from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import ROUTINES
from nbautograd.course.checks.exceptions import plainly
from nbautograd.course.exercise import CHECKS, Exercise, Failure
from nbautograd.course.result import MAX_HINT_LEVEL, CheckResult, Result
from nbautograd.course.source import without_magics

OTHERS = {"torch", "np", "numpy", "math", "nbautograd", "sys", "builtins", "Tensor", "Function"}
AROUND = re.compile(
    r"\bnbautograd\.(course\b(?!\.mutants)|core\b)|\b(_getframe|_current_frames|currentframe|getouterframes|settrace)\b"
    r"|\binspect\.(stack|trace)\b|\bgc\.get_|\b[ft]_(back|frame)\b|\bf_(locals|globals)\b"
    r"|\b(subprocess|multiprocessing|ctypes|_execution_engine|_disable_current_modes)\b"
    r"|\btorch\._C\b(?!$|\.DisableTorchFunction)"
    r"|\b(__(closure|globals|defaults|kwdefaults)__|cell_contents|getclosurevars|__subclasses__|_forward_cls)\b"
)
COMPLEX = re.compile(r"\b(imag|cmath|complex|complex64|complex128)\b")  # of a complex step, where nobody sees it run
# after one of these fails, the next ones would only say the same again
STOPS = {
    "value": {*CHECKS} - {"value", "custom"},
    "gradient": {*CHECKS}
    - {"value", "gradient", "unchanged", "dtypes", "repeatable", "context", "own_function", "custom"},
    "own_function": {*CHECKS} - {"value", "own_function", "custom"},
}


def check(
    exercise: Exercise, answer: Any = ..., *, seed: int = 0, hints: int = 1, source: str = "", defined: bool = True
) -> Result:
    """Make all checks of an exercise.

    Args:
        exercise: what was asked for.
        answer: what the student's cell defined under ``exercise.answer``.
        seed: of the random points.
        hints: the level at which the result shows itself: 1 what is wrong, 2 also where, 3 also what to do.
        source: the text of the cell; a ``...`` that still stands in it tells a cell without an answer.
        defined: False when the cell did not define the name at all.

    Returns:
        The result. A wrong answer never raises, whatever it does short of ending the process; nothing that it prints
        is shown.

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
    elif (refused := _refused(exercise, source)) is not None:
        outcomes = (CheckResult(exercise.ids[0], "failed", (refused,)),)
    else:
        with _threads() as started:
            outcomes = _outcomes(exercise, answer, seed, source)
        if started:
            names = {"line": started[0], "name": "threading.Thread"}
            failure = Failure("around_the_checks", "course.around_the_checks", names)
            outcomes = (CheckResult(exercise.ids[0], "failed", (failure,)),)
    passed = bool(outcomes) and all(o.state == "passed" for o in outcomes)
    state: Any = "passed" if passed else "unanswered" if left is not None or (answer is ... and defined) else "failed"
    told = outcomes if state != "unanswered" else ()
    earned = exercise.earned({o.check for o in told if o.state == "passed"})
    return Result(
        exercise.name, exercise.answer, state, told, left, exercise.points, earned, hints, seed,
        time.perf_counter() - start,
    )  # fmt: skip


def placeholder(source: str) -> int | None:
    """Return the line of the first ``...`` that stands for an answer, counted from 1; None when there is none.

    Example:
        >>> from nbautograd.course.run import placeholder
        >>> placeholder("def f(x):\\n    ...  # your code here\\n"), placeholder("y = x[..., 0]")
        (2, None)
    """
    tree = tree_of(without_magics(source))
    if tree is None:
        return None
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and _stands_for_answer(node)]
    return min(lines, default=None)


def _stands_for_answer(node: ast.stmt) -> bool:
    value = (
        getattr(node, "value", None) if isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)) else None
    )
    return (isinstance(value, ast.Constant) and value.value is ...) or _raises_as_nbgraders_stub(node)


def _raises_as_nbgraders_stub(node: ast.stmt) -> bool:
    return isinstance(node, ast.Raise) and node.exc is not None and ast.unparse(node.exc) == "NotImplementedError()"


def _refused(exercise: Exercise, source: str) -> Failure | None:
    """Return the failure of a cell whose words lead around the checks, or take a complex step where nobody sees it."""
    if (found := around_the_checks(source)) is not None:
        return Failure("around_the_checks", "course.around_the_checks", {"line": found[0], "name": found[1]})
    unseen = exercise.outside_torch and exercise.forward_calls is None
    stepped = around_the_checks(source, COMPLEX) if unseen else None
    return None if stepped is None else Failure("differences", "course.differences", {"line": stepped[0]})


def around_the_checks(source: str, words: re.Pattern[str] = AROUND) -> tuple[int, str] | None:
    """Return the first line that reads the checks, or what calls them, or changes what they are made of, and its words.

    Args:
        source: the text of a cell.
        words: those that may not be read; others for other things than the checks.

    Example:
        >>> from nbautograd.course.run import around_the_checks
        >>> around_the_checks("torch.allclose = print")
        (1, 'torch.allclose')
        >>> around_the_checks("y = torch.allclose(a, b)")
    """
    tree = tree_of(without_magics(source))
    if tree is None:
        return None
    imported = {alias.asname or alias.name.partition(".")[0] for node in ast.walk(tree)
                if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}  # fmt: skip
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # a docstring, for the most part
    comments = set() if "__doc__" in source else alone
    found = [pair for node in ast.walk(tree) for pair in _reached(node, imported | OTHERS, words, comments)]
    return min(found, default=None)


def _reached(
    node: ast.AST, others: Collection[str], words: re.Pattern[str], comments: Collection[int]
) -> Iterator[tuple[int, str]]:
    """Yield what a node reads of the checks, or changes of others' modules; what has an ``id`` of comments is prose."""
    line: int = getattr(node, "lineno", 0)
    names: list[str] = []
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        names = [base + alias.name for alias in node.names]
    elif isinstance(node, (ast.Attribute, ast.Name)):
        names = [ast.unparse(node)]
    elif isinstance(node, ast.Constant) and id(node) not in comments:
        names = [str(node.value)]
    yield from ((line, name) for name in names if words.search(name))
    targets: list[Any] = [getattr(node, "target", None), *getattr(node, "targets", [])]
    changed = [ast.unparse(target) for target in targets if isinstance(target, ast.Attribute)]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr") and node.args:
        changed = [ast.unparse(node.args[0])]
    yield from ((line, name) for name in changed if name.partition(".")[0] in others)


@contextlib.contextmanager
def _threads() -> Iterator[list[int]]:
    """Note the lines of an answer that start a thread: nothing that watches sees what runs there."""
    lines: list[int] = []
    start = threading.Thread.start

    def noting(self: threading.Thread) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _root(frame) in sys.stdlib_module_names:
            frame = frame.f_back
        if frame is not None and _root(frame) not in ("torch", "nbautograd"):
            lines.append(frame.f_lineno)
        start(self)

    threading.Thread.start = noting  # type: ignore[method-assign]
    try:
        yield lines
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _outcomes(exercise: Exercise, answer: Any, seed: int, source: str) -> tuple[CheckResult, ...]:
    with quiet():
        try:
            attempt = Attempt(exercise, answer, seed, source)
            if exercise.formula is not None and not callable(attempt.fn):
                names = {"name": exercise.answer, "type": type(attempt.fn).__name__}
                return (CheckResult(exercise.ids[0], "failed", (Failure("cannot_call", "course.no_callable", names),)),)
            if exercise.formula is not None:
                attempt.call  # noqa: B018 - says what is wrong with a Function of old torch
        except Exception as error:
            return (CheckResult(exercise.ids[0], "failed", (plainly("cannot_call", error),)),)
    told: list[CheckResult] = []
    for name in exercise.ids:
        skip = any(o.state == "failed" and (name in STOPS.get(o.check, ()) or _raises(o)) for o in told)
        outcome = CheckResult(name, "skipped") if skip else _outcome(name, attempt)
        again = [f.code for f in outcome.failures] == ["own_raised"] and any(o.state == "failed" for o in told)
        told.append(CheckResult(name, "skipped") if again else outcome)
    return tuple(told)


def _raises(outcome: CheckResult) -> bool:
    """Return True if forward or a first backward raised: then they would raise in every other check too."""
    return any(f.code.startswith(("exception_", "backward_raised", "forward_raised")) for f in outcome.failures)


def _outcome(name: str, attempt: Attempt) -> CheckResult:
    start = time.perf_counter()
    with quiet():
        try:
            failures = tuple(_noted(attempt.exercise, failure) for failure in ROUTINES[name](attempt))
        except Exception as error:
            failures = (plainly("check_raised", error),)
    return CheckResult(name, "failed" if failures else "passed", failures, time.perf_counter() - start)


def _noted(exercise: Exercise, failure: Failure) -> Failure:
    """Return the failure with the exercise's own sentence for its code, if there is one, and the general advice."""
    note, advice = exercise.notes.get(failure.code), f"course.advice.{failure.code}"
    if note is not None:
        failure = dataclasses.replace(failure, sentence=note, level=1)
    elif len(failure.more) < MAX_HINT_LEVEL - 1 and advice in messages.catalogue("en") and not _advised(failure):
        failure = dataclasses.replace(failure, more=(*failure.more, advice))
    return failure


def _advised(failure: Failure) -> bool:
    """Return True if it brings advice: a finding of the checker does, and a failure of an exercise within another."""
    ids = [s.message_id if isinstance(s, Phrase) else s for s in failure.more if not isinstance(s, Mapping)]
    return any(name.endswith(".advice") or name.startswith("course.advice.") for name in ids)
