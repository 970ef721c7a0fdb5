"""Checks of ctx and of cost: what stays on ctx, calls of a black box, bytes saved for backward."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import nodes
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


def saved_bytes(call: Callable[..., Any], inputs: tuple[Any, ...], outputs_count: bool = True) -> int:
    """Count the bytes that a forward keeps for its backward, each storage once, wherever it keeps them.

    Args:
        call: what is called.
        inputs: on copies of these.
        outputs_count: False where the outputs, which whoever called keeps anyway, cost nothing.
    """
    held: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        held.append(tensor)
        return tensor

    given = copies(inputs)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        run = forward(call, given)
    others: dict[int, int] = {}
    for value in _within_reach([vars(node) for node in nodes(run.outputs)]):
        if isinstance(value, Tensor):
            held.append(value)
        elif isinstance(value, np.ndarray):
            others[value.__array_interface__["data"][0]] = value.nbytes
        else:
            others[id(value)] = len(value)
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in held}
    free = () if outputs_count else (y.untyped_storage().data_ptr() for y in run.outputs)
    for address in free:
        storages.pop(address, None)
    return sum((others | storages).values())


def _within_reach(values: Iterable[Any]) -> Iterator[Tensor | np.ndarray[Any, Any] | bytes]:
    """Yield tensors, arrays, bytes and the numbers of lists in values, their containers, closures and attributes."""
    waiting = list(values)
    seen: dict[int, Any] = {}  # the values themselves are kept, so that no address is used twice
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (type, ModuleType)):
            continue
        seen[id(value)] = value
        if isinstance(value, (Tensor, np.ndarray, bytes)):
            yield value
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting += value
            packed = np.array([x for x in value if type(x) in (float, complex)]).tobytes()
            seen[id(packed)] = packed
            yield packed
        elif isinstance(value, FunctionType):
            waiting += inspect.getclosurevars(value).nonlocals.values()
        else:
            waiting += getattr(value, "__dict__", {}).values()


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
