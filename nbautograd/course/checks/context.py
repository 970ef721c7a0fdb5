"""Checks of ctx and of cost: what stays on ctx, calls of a black box, bytes saved for backward."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import nodes
from nbautograd.core.pytrees import tensors
from nbautograd.course.attempt import Attempt, copies, cotangents, forward, vjp
from nbautograd.course.checks import exceptions
from nbautograd.course.exercise import Failure, Limit
from nbautograd.course.sentences import from_finding


def context(attempt: Attempt) -> Iterator[Failure]:
    """Check that tensors go through save_for_backward, nothing is kept alive, and no more bytes than allowed."""
    report = attempt.gradcheck(attempt.point())
    found = [f for f in report.findings if f.code in ("tensor_on_ctx", "output_on_ctx")]
    yield from map(from_finding, found)
    if not found and _outlives(attempt):
        yield Failure("leak", "course.leak")
    elif not found:
        yield from saved(attempt)


def _outlives(attempt: Attempt) -> bool:
    """Return True if an output or its node stays in memory after its last use, without the garbage collector."""
    was = gc.isenabled()
    gc.disable()
    try:
        run = forward(attempt.call, copies(attempt.point()))
        watched = [weakref.ref(y) for y in (*run.outputs, *nodes(run.outputs))]
        del run
        return any(reference() is not None for reference in watched)
    finally:
        if was:
            gc.enable()


def saved(attempt: Attempt) -> Iterator[Failure]:
    """Check the bytes that forward leaves for backward against the exercise's limit."""
    limit = attempt.exercise.saved_bytes
    if limit is None:
        return
    inputs = attempt.point()
    most, found = _number(limit, inputs), saved_bytes(attempt.call, inputs)
    if found > most:
        yield Failure("saved_too_much", "course.saved_too_much", {"got": found, "most": most})


def saved_bytes(call: Callable[..., Any], inputs: tuple[Any, ...]) -> int:
    """Count the bytes that a forward keeps for its backward, each storage once: saved tensors and those on ctx."""
    held: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        held.append(tensor)
        return tensor

    given = copies(inputs)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run = forward(call, given)
    held += tensors([vars(node) for node in nodes(run.outputs)])
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in held}.values())


def cost(attempt: Attempt) -> Iterator[Failure]:
    """Check the calls of the functions among the inputs during one forward and one backward, and the bytes saved."""
    if attempt.exercise.forward_calls is not None:
        inputs = attempt.point()
        most = _number(attempt.exercise.forward_calls, inputs)
        try:
            found = _calls(attempt, inputs)
        except Exception as error:
            yield exceptions.in_backward(attempt, inputs, error)
            return
        if found > most:
            yield Failure("too_many_calls", "course.too_many_calls", {"got": found, "most": most})
    yield from saved(attempt)


def _calls(attempt: Attempt, inputs: tuple[Any, ...]) -> int:
    made = 0

    def counted(black_box: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            nonlocal made
            made += 1
            return black_box(*args, **keywords)

        return call

    given = tuple(counted(x) if callable(x) and not isinstance(x, Tensor) else x for x in copies(inputs))
    run = forward(attempt.call, given)
    vjp(run, cotangents(run.outputs, attempt.seed))
    return made


def _number(limit: Limit, inputs: tuple[Any, ...]) -> int:
    return int(limit(*inputs)) if callable(limit) else limit
