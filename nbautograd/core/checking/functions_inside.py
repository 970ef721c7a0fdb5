"""Custom Functions that a checked callable calls inside: which of them is wrong by itself, at the inputs it gets there.

A wrong gradient of a model proves nothing of a Function in it: a ``detach`` beside it does the same. So each Function
is checked alone, at copies of the arguments of its own calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull, rounding_level
from nbautograd.core.checking.backward_lines import state_line
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.diagnose import ranked
from nbautograd.core.checking.meant import meant_pairs
from nbautograd.core.checking.prepared_inputs import copy, in_double
from nbautograd.core.checking.problem import Problem, functions_of
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.contract import rules
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import hands_over, users_errors
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private.ctx import apply_replaced
from nbautograd.core.user_source import read_source

CALLS = 3  # of one class that are checked
BYTES = 1 << 26  # of copied arguments, of all classes together
Check = Callable[[type, tuple[Any, ...]], GradcheckReport]


@dataclasses.dataclass
class CallsOfClass:
    """Calls of one Function inside.

    Attributes:
        arguments: copies of forward's arguments without ctx, of the first calls.
        left_out: how many calls were not kept.
    """

    arguments: list[tuple[Any, ...]] = dataclasses.field(default_factory=list)
    left_out: int = 0


@dataclasses.dataclass(frozen=True)
class CheckedInside:
    """A Function that is called inside, checked alone.

    Attributes:
        cls: the Function.
        wrong: the report on the first of its calls at which it is wrong; None when there is none.
        right: True when every call of it was checked and is right.
        disturbed: True when the gradient of one call becomes another one where a later call comes before its backward.
        meant: True when it is wrong by itself and hands its input on, as what solves for an implicit gradient does.
    """

    cls: type
    wrong: GradcheckReport | None
    right: bool
    disturbed: bool = False
    meant: bool = False


def _hands_on(cls: type, arguments: tuple[Any, ...]) -> bool:
    """Return True for a Function that hands its input on: its gradient belongs to what stands around it."""
    with users_errors():
        found = meant_pairs(Problem(cls, arguments))
        return bool(found) and all(one.reason.startswith("handed on") for one in found.values())
    return False


def check_functions_inside(run: GradcheckRun, check: Check, classes: set[type] | None) -> tuple[CheckedInside, ...]:
    """Check the Functions inside a callable whose gradient is wrong, or that gives an output without one, each alone.

    Args:
        run: with its blocks. Where no block differs, or a Function class itself is checked, nothing is done.
        check: checks a Function class at these arguments. An interrupt ends this, and the run is incomplete.
        classes: to check; None for those in the graph of the outputs.

    Returns:
        One per class. When none is wrong by itself, the run's problem no longer speaks for any class.
    """
    problem, outputs = run.problem, run.outputs
    differs = any(block.verdict == "mismatch" for block in run.blocks.values())
    cut = any(y.is_floating_point() and not y.requires_grad for y in outputs or ())
    if problem.direct or outputs is None or not problem.has_functions or not (differs or cut):
        return ()
    checked: list[CheckedInside] = []
    with run.interruptible():
        asked = functions_of(outputs) if classes is None else classes
        calls = _calls_inside(problem, sorted(asked, key=lambda cls: cls.__name__))
        checked.extend(_checked(cls, found, check) for cls, found in calls.items())  # what came stays
    if not differs:  # then nothing else concerns this callable
        return tuple(c for c in checked if c.wrong is not None and c.wrong.findings[0].code == "nondiff_marked_wrongly")
    if all(one.wrong is None for one in checked):
        problem.disown()
    return tuple(checked)


def with_findings_inside(
    run: GradcheckRun, checked: Sequence[CheckedInside], found: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """Add which Functions inside are wrong by themselves, and why, or that all are right there.

    Args:
        run: of the callable.
        checked: what ``check_functions_inside`` returned.
        found: of the callable. Of its only Function a cause that is known, or was mended, is not told twice. Beside
            one that is wrong by itself the pattern in the callable's own gradient says no more.
    """
    disturbed = [one.cls for one in checked if one.disturbed]
    if disturbed:  # that is why what comes out is wrong
        lines = ((cls, read_source(cls)) for cls in disturbed)
        at = (state_line(cls) or (None if source is None else source.line("backward")) for cls, source in lines)
        bugs = (rules.state_outside_ctx(rules.Seen(line)) for line in at)
        return ranked((*bugs, *(f for f in found if f.kind != "bug" or f.where is None)))
    if run.complete and checked and all(one.right for one in checked):
        names = ", ".join(f"`{library.name_of(one.cls)}`" for one in checked)
        note = Finding("functions_right_inside", "note", "checking.functions_right_inside", {"functions": names})
        return ranked((*found, note))
    causes = [(one.cls, one.wrong.findings[0]) for one in checked if one.wrong is not None]
    if run.problem.cls is not None:
        told = {(finding.code, finding.line) for finding in found}
        known = any((f.code, f.line) in told for one in checked if one.wrong is not None for f in one.wrong.findings)
        causes = [] if known or any(finding.fix is not None for finding in found) else causes
    rest, blamed = (f for f in found if not causes or f.kind != "bug" or f.where is None), list[Finding]()
    for cls, cause in causes:
        if cls is getattr(run.problem.fn, "function", None):  # the callable hands it copies of its own arguments
            blamed.append(cause)
            continue
        params = {"function": library.name_of(cls), "cause": cause.phrase("what"), "advice": cause.phrase("advice")}
        # its fix was tried on the Function alone, so it heads no report
        fix = None if cause.fix is None else dataclasses.replace(cause.fix, line=None)
        blamed.append(Finding("wrong_inside", "bug", "checking.wrong_inside", params, None, cause.line, fix))
    return ranked((*blamed, *rest))


def _checked(cls: type, calls: CallsOfClass, check: Check) -> CheckedInside:
    verdicts, written = [], library.written_as(cls)
    for arguments in calls.arguments:
        given = arguments if written is cls else library.arguments_of(cls, arguments)[0]
        report = _report(written, given, check)
        if report is not None and report.verdict == "wrong" and report.findings:
            return CheckedInside(cls, report, right=False, meant=_hands_on(written, given))
        unsure = report is None or any(block.verdict == "subgradient" for block in report.blocks.values())
        verdicts.append(None if unsure or report is None else report.verdict)  # slopes at ties may not fit together
    disturbed = any(_disturbed(cls, one, other) for one, other in itertools.permutations(calls.arguments, 2))
    return CheckedInside(cls, None, not calls.left_out and set(verdicts) == {"right"}, disturbed)


def _disturbed(cls: type, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Return True if the gradient of one call becomes another where the other call comes before its backward."""
    with users_errors():
        problem, between = Problem(cls, one), Problem(cls, other)

        def disturbed() -> bool:
            with problem.session():
                first, again, last = problem.call(), problem.call(), problem.call()
                v = cotangents(problem, first, problem.seed)
                alone, repeated = pull(problem, first, v), pull(problem, again, v)
                between.call()
                rel, low = gradient_tolerance(last, problem.inputs), rounding_level(last, problem.inputs)
                same = [
                    all(agree_relative(a, b, rel, low) for a, b in zip(alone, again, strict=True))
                    for again in (repeated, pull(problem, last, v))
                ]
                return same == [True, False]

        return problem.state.apart(disturbed)
    return False


def _report(cls: type, arguments: tuple[Any, ...], check: Check) -> GradcheckReport | None:
    report = None
    for given in (arguments, tuple(map(in_double, arguments))):
        with users_errors() as guard:  # nothing to differentiate, or forward refuses it
            report = check(cls, given)
        if guard.failed or report is None:
            return report
        if not report.complete:
            raise KeyboardInterrupt
        if report.verdict != "cannot tell":
            return report
    return report


def _calls_inside(problem: Problem, classes: Sequence[type]) -> dict[type, CallsOfClass]:
    """Call the problem once more and copy what each class is called with."""
    calls = {cls: CallsOfClass() for cls in classes}
    room = BYTES

    @hands_over
    def seen(cls: type, *arguments: Any) -> Any:
        nonlocal room
        size = sum(item.nbytes for item in arguments if isinstance(item, Tensor))
        if len(calls[cls].arguments) < CALLS and size <= room:
            room -= size
            with torch.no_grad():
                calls[cls].arguments.append(tuple(map(copy, arguments)))
        else:
            calls[cls].left_out += 1
        return applies[cls](*arguments)

    with contextlib.ExitStack() as stack:
        replaced = ((cls, apply_replaced(cls, functools.partial(seen, cls))) for cls in classes)
        applies = {cls: stack.enter_context(replacement) for cls, replacement in replaced}
        problem.call()
    return calls
