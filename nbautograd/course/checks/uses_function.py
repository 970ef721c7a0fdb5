"""The call goes through the student's own Function, which computes by itself what it is asked to compute."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator

import torch

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.user_source import function_class
from nbautograd.course.attempt import Attempt, copies, cotangents, forward, positions, vjp
from nbautograd.course.checks.moved_points import moved_points
from nbautograd.course.exercise import Failure
from nbautograd.course.observer import Observer


def uses_own_function(attempt: Attempt) -> Iterator[Failure]:
    """Check that a Function of the student's is in the graph, alone, and its backward computes by itself."""
    outputs = attempt.run(attempt.point()).outputs
    in_graph = functions_of(outputs)
    asked = function_class(attempt.answer)
    if asked is None and isinstance(attempt.answer, type) and not issubclass(attempt.answer, torch.nn.Module):
        yield Failure("no_function_class", "course.no_function_class", {"name": attempt.exercise.answer})
    elif asked is not None and not any(y.requires_grad for y in outputs):
        return  # no gradient at all: the gradient's own check says so
    elif not in_graph or (asked is not None and asked not in in_graph):
        yield Failure("not_through_function", "course.not_through_function", {"name": attempt.exercise.answer})
    else:
        yield from _not_by_itself(attempt, in_graph)


def _not_by_itself(attempt: Attempt, classes: Iterable[type]) -> Iterator[Failure]:
    """Yield one failure: a derivative asked of torch, a node of torch's beside the Function, an operation refused."""
    seen = [_watched(attempt, classes, 1)]
    if "double_backward" in attempt.exercise.ids:
        seen += _second(attempt, classes)
    for one in seen:
        for code, name, line in itertools.islice(_not_own(attempt, one), 1):
            sentence = "course.complex" if name == "1j" else f"course.{code}"
            yield Failure(code, sentence, {"name": name, "line": line})
            return
    if attempt.exercise.formula is not None and attempt.exercise.forward_calls is None:
        again = _watched(attempt, classes, -1)
        moved = moved_points(attempt, *([ran for ran in one.operations if ran.method] for one in (seen[0], again)))
        if moved is not None:
            yield Failure("differences", "course.differences", {"line": moved.line})


def _not_own(attempt: Attempt, seen: Observer) -> Iterator[tuple[str, str, int]]:
    yield from (("native_autograd", *asked) for asked in seen.derivatives)
    yield from (("native_node", *node) for node in seen.outside)
    left = (ran for ran in seen.operations if ran.name == "numpy" and ran.method and not attempt.exercise.outside_torch)
    yield from (("leaves_torch", ran.written, ran.line) for ran in left)
    yield from (("ready_made", ran.written, ran.line) for ran in seen.ran(attempt.exercise.ready_made))


def _watched(attempt: Attempt, classes: Iterable[type], sign: int) -> Observer:
    """Watch one forward and one backward; with the other sign of grad_output a step made of its size is the same."""
    seen = Observer(attempt.answer, *classes, keep=True)
    with contextlib.suppress(Exception):  # what raises is the gradient's to tell
        with seen:
            run = forward(attempt.call, copies(attempt.point()))
        with seen:
            vjp(run, [None if c is None else sign * c for c in cotangents(run.outputs, attempt.seed)])
    return seen


def _second(attempt: Attempt, classes: Iterable[type]) -> Iterator[Observer]:
    """Watch a first and a second backward, in the Functions that the first one calls too."""
    run = forward(attempt.call, copies(attempt.point()))
    weights = [None if c is None else c.requires_grad_() for c in cotangents(run.outputs, attempt.seed)]
    with contextlib.suppress(Exception):  # that of double_backward to tell
        with Observer(*classes) as seen:
            first = [g for g in vjp(run, weights, create_graph=True) if g is not None and g.requires_grad]
        yield seen
        with Observer(*classes, *functions_of(first)) as seen:
            wanted = [run.inputs[k] for k in positions(run.inputs)]
            torch.autograd.grad([g.sum() for g in first], wanted, allow_unused=True)
        yield seen
