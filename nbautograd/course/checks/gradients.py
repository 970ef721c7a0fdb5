"""The gradient: right, linear in grad_output, for every subset of inputs that want one, at kinks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from nbautograd.core.checking import report_verdict
from nbautograd.core.checking.probes.linearity import linearity
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.findings import Finding
from nbautograd.course.attempt import (
    POINTS,
    Attempt,
    copies,
    cotangents,
    forward,
    positions,
    ready,
    vjp,
)
from nbautograd.course.checks import declared_gradient, exceptions
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import from_finding

TOLD = 4
MANY = 6  # inputs of which not every subset is tried, only each alone and all but each


def gradient(attempt: Attempt) -> Iterator[Failure]:
    """Check the vjp at random points for random cotangents, and say what is wrong with it."""
    for number in range(POINTS):
        inputs = attempt.point(number)
        truth = attempt.reference_run(inputs)
        weights = cotangents(truth.outputs, attempt.seed + number)
        right = attempt.expected_gradients(truth, weights)
        try:
            run = attempt.run(inputs)
            found = vjp(run, weights)
        except Exception as error:
            yield exceptions.in_backward(attempt, inputs, error)
            return
        if not all(map(attempt.allclose, found, right)):
            usual = attempt.exercise.vjp is None or all(map(attempt.allclose, vjp(truth, weights), right))
            told = list(_why(attempt, inputs)) if usual else []
            yield from told or declared_gradient.differences(attempt, inputs, weights, found, right)
            return


def _why(attempt: Attempt, inputs: tuple[Any, ...]) -> Iterator[Failure]:
    """Yield the checker's findings on values; only of use where the derivative of forward is what is asked for."""
    check = GradcheckRun(attempt.problem(inputs), None, None, None)
    with check.problem.session():
        check.find_blocks()
        findings = report_verdict.findings(check)
    yield from itertools.islice((from_finding(f) for f in findings if f.kind == "bug"), TOLD)


def linear(attempt: Attempt) -> Iterator[Failure]:
    """Twice the grad_output must give twice the gradient, and a sum the sum."""
    problem = attempt.problem(attempt.point())
    with problem.session():
        try:
            findings: list[Finding] = list(linearity(problem, problem.call()))
        except Exception as error:
            yield exceptions.in_backward(attempt, attempt.point(), error)
            return
    yield from map(from_finding, findings[:TOLD])


def subsets(attempt: Attempt) -> Iterator[Failure]:
    """Whichever inputs want a gradient, they get the right one."""
    inputs = attempt.point()
    names = attempt.problem(inputs).input_names
    for wanted in _subsets(positions(inputs)):
        given = copies(inputs, wanted)
        truth = attempt.reference_run(given)
        weights = cotangents(truth.outputs, attempt.seed)
        right = vjp(truth, weights) if attempt.exercise.vjp is None else _chosen(attempt, inputs, wanted, weights)
        alone = ", ".join(f"`{names[k]}`" for k in wanted)
        try:
            found = vjp(forward(attempt.call, copies(given)), weights)
        except Exception as error:
            yield exceptions.plainly("needs_input_grad_raised", error, wanted=alone)
            return
        if not all(map(attempt.allclose, found, right)):
            yield Failure("needs_input_grad_wrong", "course.needs_input_grad_wrong", {"wanted": alone})
            return


def _chosen(attempt: Attempt, inputs: tuple[Any, ...], wanted: tuple[int, ...], weights: Any) -> tuple[Any, ...]:
    everything = attempt.expected_gradients(attempt.reference_run(inputs), weights)
    return tuple(g for k, g in zip(positions(inputs), everything, strict=True) if k in wanted)


def _subsets(where: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    sizes = range(1, len(where)) if len(where) <= MANY else sorted({1, len(where) - 1})
    for size in sizes:
        yield from itertools.combinations(where, size)


def kinks(attempt: Attempt) -> Iterator[Failure]:
    """Exactly at a kink the declared gradient, or one between the one-sided derivatives."""
    assert attempt.exercise.kinks is not None
    for inputs in map(ready, attempt.exercise.kinks(attempt.draw())):
        try:
            found = _at_kink(attempt, inputs)
        except Exception as error:
            yield exceptions.in_backward(attempt, inputs, error)
            return
        if found is not None:
            yield found
            return


def _at_kink(attempt: Attempt, inputs: tuple[Any, ...]) -> Failure | None:
    names = attempt.problem(inputs).input_names
    if attempt.exercise.vjp is None:
        return _between(attempt, inputs)
    truth = attempt.reference_run(inputs)
    weights = cotangents(truth.outputs, attempt.seed)
    right = attempt.expected_gradients(truth, weights)
    found = vjp(attempt.run(inputs), weights)
    for position, a, b in zip(positions(inputs), found, right, strict=True):
        if not attempt.allclose(a, b):
            return Failure("kink_convention", "course.kink_convention", {"input": names[position]})
    return None


def _between(attempt: Attempt, inputs: tuple[Any, ...]) -> Failure | None:
    check = GradcheckRun(attempt.problem(inputs), None, None, None)
    with check.problem.session():
        check.find_blocks()
    if check.error is not None:
        raise check.error
    if not check.complete:  # what was checked by then is no grade
        raise KeyboardInterrupt
    for block in check.blocks.values():
        worst = block.worst
        if block.verdict == "mismatch" or (worst is not None and worst.analytical != worst.analytical):
            return Failure("kink_wrong", "course.kink_wrong", {"input": block.input_name})
    return None
