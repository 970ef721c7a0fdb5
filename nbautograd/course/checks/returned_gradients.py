"""Checks of what backward returns: how many gradients, their shapes and dtypes; nothing changed, the same again."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import Observed, cotangents, observe
from nbautograd.core.checking.probes.determinism import state
from nbautograd.core.checking.probes.return_values import returned_gradients
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics.compare import agree_bitwise
from nbautograd.course.attempt import Attempt, copies, forward, is_float, ready, vjp
from nbautograd.course.attempt import cotangents as random_weights
from nbautograd.course.checks import exceptions
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import from_finding


def _observed(attempt: Attempt, inputs: tuple[Any, ...]) -> tuple[Problem, Outputs, Observed | Failure]:
    problem = attempt.problem(inputs)
    outputs = problem.call()
    try:
        return problem, outputs, observe(problem, outputs, cotangents(problem, outputs, problem.seed))
    except Exception as error:
        return problem, outputs, exceptions.in_backward(attempt, inputs, error)


def arity(attempt: Attempt) -> Iterator[Failure]:
    """Check that one gradient comes for each argument of forward, and None for what is no tensor."""
    problem, _, seen = _observed(attempt, attempt.point())
    if isinstance(seen, Failure):
        yield seen
        return
    if seen.returned is None or not problem.direct:
        return
    expected, got = len(problem.inputs), len(seen.returned)
    # one more for each default that the call left out: `eps=1e-5` and its None are torch's own idiom
    forward_of = getattr(attempt.cls, "forward", None)
    most = len(inspect.signature(forward_of).parameters) - 1 if forward_of is not None else expected
    if got != expected and not expected < got <= most:  # torch forgives further Nones
        params = {"expected": expected, "got": got}
        yield Failure("wrong_number_of_gradients", "course.wrong_number_of_gradients", params)


def shapes(attempt: Attempt) -> Iterator[Failure]:
    """Check that each gradient has the shape of its input, without torch's silent sum; at the odd shapes too."""
    found = list(_contract(attempt, attempt.point(), "grad_shape_reduced"))
    yield from found
    if found or attempt.exercise.edges is None:
        return
    for inputs in map(ready, attempt.exercise.edges(attempt.draw())):
        with contextlib.suppress(Exception):  # what raises there is that of edges to tell
            found += [f for f in _contract(attempt, inputs, "grad_shape_reduced") if f.code == "grad_shape_reduced"]
    yield from found[:1]


def dtypes(attempt: Attempt) -> Iterator[Failure]:
    """Check that each gradient has the dtype of its input; float32 inputs give float32 outputs and gradients."""
    found = list(_contract(attempt, attempt.point(), "grad_dtype_cast"))
    yield from found or _single(attempt)


def _contract(attempt: Attempt, inputs: tuple[Any, ...], code: str) -> Iterator[Failure]:
    problem, outputs, seen = _observed(attempt, inputs)
    if isinstance(seen, Failure):
        yield seen
        return
    with problem.session():
        yield from (from_finding(f) for f in returned_gradients(problem, outputs) if f.code == code)


def _single(attempt: Attempt) -> Iterator[Failure]:
    given = tuple(x.detach().to(torch.float32).requires_grad_(x.requires_grad) if is_float(x) else x
                  for x in attempt.point())  # fmt: skip
    truth = attempt.reference_run(given) if attempt.exercise.formula is not None else None
    try:
        run = forward(attempt.call, copies(given))
    except Exception as error:
        yield exceptions.plainly("single_precision_raised", error)
        return
    for k, y in enumerate(run.outputs):
        right = truth.outputs[k].dtype if truth is not None and k < len(truth.outputs) else torch.float32
        if is_float(y) and y.dtype != right:
            names = {"got": str(y.dtype)[6:], "expected": str(right)[6:]}
            yield Failure("dtype_not_kept", "course.dtype_not_kept", names)
            return
    yield from _single_gradients(attempt, given)


def _single_gradients(attempt: Attempt, given: tuple[Any, ...]) -> Iterator[Failure]:
    problem = attempt.problem(given)
    outputs = problem.call()
    try:
        observe(problem, outputs, cotangents(problem, outputs, problem.seed))
    except Exception as error:
        yield exceptions.in_backward(attempt, given, error)
        return
    with problem.session():
        found = [from_finding(f) for f in returned_gradients(problem, outputs) if f.code == "grad_dtype_cast"]
    yield from found


def unchanged(attempt: Attempt) -> Iterator[Failure]:
    """Neither forward nor backward changes what it was given."""
    inputs = attempt.point()
    given = copies(inputs)
    forward(attempt.call, given)
    for k, (now, before) in enumerate(zip(given, inputs, strict=True)):
        if isinstance(now, Tensor) and not agree_bitwise(now, before):
            names = attempt.problem(inputs).input_names
            yield Failure("mutates_input", "course.mutates_input", {"input": names[k]})
            return
    yield from changes(attempt, {"mutates_grad_output", "mutates_saved"})


def changes(attempt: Attempt, codes: set[str]) -> Iterator[Failure]:
    """Yield the findings with these codes on what backward changes, and on what changes backward."""
    inputs = attempt.point()
    problem = attempt.problem(inputs)
    try:
        found = list(state(problem))
    except Exception as error:
        yield exceptions.in_backward(attempt, inputs, error)
        return
    yield from (from_finding(f) for f in found if f.code in codes and f.kind == "bug")


def repeatable(attempt: Attempt) -> Iterator[Failure]:
    """Check that the same inputs give the same values and gradients, whatever was called in between."""
    inputs = attempt.point()
    first, again = (forward(attempt.call, copies(inputs)) for _ in range(2))
    if not all(map(attempt.allclose, first.outputs, again.outputs)):
        yield Failure("nondeterministic_forward", "course.nondeterministic_forward")
        return
    told = list(changes(attempt, {"nondeterministic_backward", "shared_state", "grad_buffer_reused", "mutates_saved"}))
    yield from told
    if not told and _remembers(attempt, inputs):
        yield Failure("shared_state", "causes.shared_state.what", more=("causes.shared_state.advice",))


def _remembers(attempt: Attempt, inputs: tuple[Any, ...]) -> bool:
    """Return True if a call with other arguments, flags too, changes the gradient of an earlier call."""
    alone = forward(attempt.call, copies(inputs))
    weights = random_weights(alone.outputs, attempt.seed)
    right = vjp(alone, weights)
    again = forward(attempt.call, copies(inputs))
    forward(attempt.call, copies(attempt.point(1)))
    try:
        found = vjp(again, weights)
    except RuntimeError:  # alone it did not raise: what it met is of another shape
        return True
    return not all(map(attempt.allclose, found, right))
