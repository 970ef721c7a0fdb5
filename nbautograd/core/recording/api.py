"""The public functions of recording: instrument, uninstrument, recording, calls, and what the magics steer."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import torch

from nbautograd.core import stumbles
from nbautograd.core.display import Phrase
from nbautograd.core.recording import prints, spy
from nbautograd.core.recording.call import CallLog
from nbautograd.core.recording.live_log import DecodedCalls, LiveLog
from nbautograd.core.recording.operations import OperationCalls
from nbautograd.core.recording.record import CallRing, InstrumentedFunction, local
from nbautograd.core.recording.recorder import Recorder, abandon
from nbautograd.core.recording.snapshot import LEVELS
from nbautograd.core.stumbles import record
from nbautograd.core.this_thread import undone
from nbautograd.core.torch_private import library
from nbautograd.core.user_source import function_class
from nbautograd.errors import CallError, InputError

C = TypeVar("C")

_ring = CallRing()
_recorder = Recorder(_ring)
_functions: weakref.WeakKeyDictionary[type, InstrumentedFunction] = weakref.WeakKeyDictionary()
_problems: dict[str, list[Phrase]] = {}


def instrument(cls: C) -> C:
    """Record every call that PyTorch makes of a Function's methods, from now on. Also a class decorator.

    The class behaves as before: same results, same errors, same source, same pickles. Doing it twice changes nothing.

    Args:
        cls: a subclass of ``torch.autograd.Function``, or its ``apply``. Or an operation of
            ``torch.library.custom_op``, once its gradient is registered.

    Returns:
        The class itself (or what was given).

    Raises:
        CallError: for anything that is no Function and no such operation.

    Example:
        >>> import torch, nbautograd
        >>> @nbautograd.instrument
        ... class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> _ = Double.apply(torch.ones(3))
        >>> nbautograd.calls(Double)[-1].method
        'forward'
        >>> nbautograd.uninstrument(Double) is Double
        True
    """
    definition = library.definition_of(cls)
    if _follow(definition) and library.recorded_as(definition) is None:
        return cls
    function = _function(cls, "instrument")
    if function not in _functions:
        _install(function, LEVELS["summary"])
    return cls


def uninstrument(cls: C) -> C:
    """Stop recording a Function: the class is again exactly as it was written, object by object.

    Args:
        cls: a Function class or an operation; one that is not recorded is left as it is.

    Returns:
        The class itself.

    Example:
        >>> import nbautograd
        >>> from torch.autograd.function import InplaceFunction
        >>> nbautograd.uninstrument(nbautograd.instrument(InplaceFunction)) is InplaceFunction
        True
    """
    definition = library.definition_of(cls)
    made = library.recorded_as(definition)
    if made is cls or not library.stands_for_operation(cls):  # another is what the operation was before
        look = library.leave(definition)
        if look is not None:
            look.leave()
    if definition is not None and made is None:
        return cls
    made_before = [f for f in _functions if definition is not None and library.definition_of(f) is definition]
    for function in dict.fromkeys((_function(cls, "uninstrument"), *made_before)):
        spy.remove(function)  # of one that an interrupt left half recorded too
        if _functions.pop(function, None) is not None:
            _problems.pop(function.__name__, None)
    return cls


@contextmanager
def recording(*classes: type, level: str = "summary") -> Iterator[CallLog]:
    """Record Functions for a while, as in ``with recording(LinearFunction) as log:``.

    Args:
        classes: which Functions; none means those that are instrumented already.
        level: ``"off"``, ``"shapes"`` (no elements), ``"summary"`` (small tensors whole, a sample of large ones),
            ``"pooled"`` (a picture and statistics of large ones) or ``"values"`` (all elements).

    Yields:
        A CallLog of these calls, newest last; it may be read during the block and after it.

    Raises:
        InputError: for a level that does not exist.
        CallError: for a class that is no Function.

    Example:
        >>> import torch
        >>> from nbautograd.core.recording.api import recording
        >>> F = torch.autograd.function.InplaceFunction
        >>> with recording(F) as log:
        ...     pass
        >>> len(log)
        0
    """
    if level not in LEVELS:
        raise InputError("recording.no_such_level", level=repr(level), levels=", ".join(LEVELS))
    functions = [_function(cls, "recording") for cls in classes] or list(_functions)
    before = {cls: (_functions[cls], _functions[cls].level) for cls in functions if cls in _functions}

    def undo() -> None:
        for cls in functions:
            if cls in before:
                _set_level(cls, *before[cls])
            else:
                uninstrument(cls)

    with undone(undo):
        for cls in functions:
            if cls not in _functions:
                _install(cls, LEVELS["summary"])
            _set_level(cls, _functions[cls], LEVELS[level])
        log = LiveLog(_ring, [_functions[cls] for cls in functions], problems, first=_ring.next_index())
        try:
            yield log
        finally:
            log.close()


def calls(cls: type | None = None) -> CallLog:
    """Return the calls recorded so far, newest last.

    Args:
        cls: only the calls of this Function, not of an older one of its name (a cell that was run again); None for all.

    Returns:
        A CallLog that takes in no more calls, each decoded when it is looked at; ``.dropped`` counts those that the
        byte budget let go.

    Example:
        >>> import nbautograd
        >>> from torch.autograd.function import InplaceFunction
        >>> len(nbautograd.calls(InplaceFunction)), nbautograd.calls(InplaceFunction).dropped
        (0, 0)
    """
    ours = None if cls is None else _ring.recorded(_function(cls, "calls"))
    return LiveLog(_ring, ours, problems).close()


def mark() -> int:
    """Return this moment, to be given to ``following``: the first number that a later call can have."""
    records = _ring.finished()
    return records[-1].index + 1 if records else 0


def following(functions: Collection[str], since: int, most: int) -> tuple[CallLog, int]:
    """Return the last calls of some Functions since a moment: cheap, however many there were.

    Returns:
        The last of them, and how many there were before.
    """
    records = [one for one in _ring.finished() if one.index >= since and one.function.name in functions]
    shown = records[-most:]
    return CallLog(tuple(DecodedCalls(shown, records, _ring)), 0, problems()), len(records) - len(shown)


@contextmanager
def paused() -> Iterator[None]:
    """Record nothing in this thread for a while, as in ``with paused():``."""
    state, before = local.state, local.state.paused
    with undone(partial(setattr, state, "paused", before)):
        state.paused = before + 1
        yield


def set_cell(number: int | None) -> None:
    """Say which notebook cell is running (its execution count), None outside one."""
    _recorder.cell = number


def clear_open_calls() -> None:
    """Close the calls of this thread that an interrupt left open; the magics do it after each cell."""
    state = local.state
    abandon(state, _ring)
    state.armed = state.pending = None
    if state.handed_out is not None:
        state.handed_out()


def clear() -> None:
    """Forget all recorded calls."""
    _ring.clear()


def instrumented() -> list[type]:
    """Return the Functions that are recorded now."""
    return list(_functions)


def problems() -> tuple[Phrase, ...]:
    """Return what could not be recorded, and why; ``str`` of each is the sentence."""
    notices = [notice for notices in _problems.values() for notice in notices]
    compiled = [function for function in _functions.values() if function.compiled]
    notices += [Phrase("recording.traced", function=one.name) for one in compiled]
    notices += [Phrase("recording.error", error=e, count=n) for e, n in _recorder.errors.items()]
    return tuple(notices)


def _follow(definition: Any) -> bool:
    if definition is None:
        return False
    return library.look_before(definition, OperationCalls(definition, _reinstrumented, _recorder))


def _reinstrumented(cls: type, before: type | None) -> InstrumentedFunction:
    if cls not in _functions:
        old = None if before is None else _functions.get(before)
        if before is not None:
            uninstrument(before)
        _install(cls, LEVELS["summary"] if old is None else old.level)
    return _functions[cls]


def _function(cls: Any, caller: str) -> type:
    if not library.stands_for_operation(cls):
        cls = library.recorded_as(library.definition_of(cls)) or cls
    function = function_class(cls)
    if function is None or function is torch.autograd.Function:
        raise CallError("recording.no_function", caller=caller, got=getattr(cls, "__name__", type(cls).__name__))
    return function


def _set_level(cls: type, function: InstrumentedFunction, level: int) -> None:
    if function.level and not level:
        spy.withdraw(cls)
    elif level and not function.level and cls in _functions:
        spy.install(cls, function, _recorder)
    function.level = level  # last: after an interrupt it may be set again


def _install(cls: type, level: int) -> None:
    function = InstrumentedFunction(cls, level)
    try:
        problems = spy.install(cls, function, _recorder)
    except Exception as error:
        record(error, "recording")
        spy.remove(cls)
        problems = [Phrase("recording.failed_to_install", function=cls.__name__, error=stumbles.said(error))]
    _problems.pop(cls.__name__, None)
    if problems:
        _problems[cls.__name__] = problems
    _functions[cls] = function
    if library.stands_for_operation(cls) and not _follow(library.definition_of(cls)):
        _problems.setdefault(cls.__name__, []).append(Phrase("recording.operation", operation=cls.__name__))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=prints.forked)
