"""The public functions of recording: instrument, uninstrument, recording, calls, and what the magics steer."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

from nbautograd import messages
from nbautograd.core.recording import prints
from nbautograd.core.recording.calls import CallLog
from nbautograd.core.recording.engine import Engine
from nbautograd.core.recording.live import LiveLog, read
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.ring import Ring
from nbautograd.core.recording.selftest import works
from nbautograd.core.recording.snapshot import LEVELS
from nbautograd.core.recording.state import INDEX, SUBJECT, SUBJECTS, Subject, local
from nbautograd.core.recording.writer import clear_open_calls as close_all
from nbautograd.core.source import function_class
from nbautograd.errors import CallError, InputError

C = TypeVar("C", bound=type)

_ring = Ring()
_recorder = Recorder(_ring)
_subjects: weakref.WeakKeyDictionary[type, Subject] = weakref.WeakKeyDictionary()
_problems: dict[str, list[str]] = {}


def instrument(cls: C) -> C:
    """Record every call that PyTorch makes of a Function's methods, from now on. Also a class decorator.

    The class behaves as before: same results, same errors, same source, same pickles. Doing it twice changes nothing.

    Args:
        cls: a subclass of ``torch.autograd.Function``, or its ``apply``.

    Returns:
        The class itself (or what was given).

    Raises:
        CallError: for anything that is no Function.

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
    function = _function(cls, "instrument")
    if function not in _subjects:
        _install(function, LEVELS["summary"])
    return cls


def uninstrument(cls: C) -> C:
    """Stop recording a Function: the class is again exactly as it was written, object by object.

    Args:
        cls: a Function class; one that is not recorded is left as it is.

    Returns:
        The class itself.

    Example:
        >>> import nbautograd
        >>> from torch.autograd.function import InplaceFunction
        >>> nbautograd.uninstrument(nbautograd.instrument(InplaceFunction)) is InplaceFunction
        True
    """
    function = _function(cls, "uninstrument")
    if _subjects.pop(function, None) is not None:
        _engine().remove(function)
        _problems.pop(function.__name__, None)
        if not _subjects:
            prints.leave()
    return cls


@contextmanager
def recording(*classes: type, level: str = "summary") -> Iterator[CallLog]:
    """Record Functions for a while, as in ``with recording(LinearFunction) as log:``.

    Args:
        classes: which Functions; none means those that are instrumented already.
        level: ``"off"``, ``"shapes"`` (no elements), ``"summary"`` (small tensors whole, a sample of large ones) or
            ``"values"`` (all elements).

    Yields:
        A CallLog of these calls, newest last; it may be read during the block and after it.

    Raises:
        InputError: for a level that does not exist.
        CallError: for a class that is no Function.

    Example:
        >>> import torch
        >>> from nbautograd.core.recording.log import recording
        >>> F = torch.autograd.function.InplaceFunction
        >>> with recording(F) as log:
        ...     pass
        >>> len(log)
        0
    """
    if level not in LEVELS:
        raise InputError("recording.no_such_level", level=repr(level), levels=", ".join(LEVELS))
    functions = [_function(cls, "recording") for cls in classes] or list(_subjects)
    fresh = [function for function in dict.fromkeys(functions) if function not in _subjects]
    for function in fresh:
        _install(function, LEVELS["summary"])
    subjects = [_subjects[function] for function in functions]
    before = [subject.level for subject in subjects]
    for function, subject in zip(functions, subjects, strict=True):
        _set_level(function, subject, LEVELS[level])
    log = LiveLog(_ring, subjects, engine, problems, first=_ring.next_index())
    try:
        with prints.teed():  # after a cell nobody else listens
            yield log
    finally:
        log.close()
        for function, subject, was in zip(functions, subjects, before, strict=True):
            _set_level(function, subject, was)
        for function in fresh:
            uninstrument(function)


def calls(cls: type | None = None) -> CallLog:
    """The calls recorded so far, newest last.

    Args:
        cls: only the calls of this Function; None for all.

    Returns:
        A plain CallLog; ``.dropped`` counts the calls that the byte budget let go.

    Example:
        >>> import nbautograd
        >>> from torch.autograd.function import InplaceFunction
        >>> len(nbautograd.calls(InplaceFunction)), nbautograd.calls(InplaceFunction).dropped
        (0, 0)
    """
    function = None if cls is None else _function(cls, "calls")
    keep = None if function is None else [_subjects.get(function)]
    log = LiveLog(_ring, keep, engine, problems, name=None if function is None else function.__name__)
    return CallLog(log.calls, log.dropped, log.engine, log.problems)


def mark() -> int:
    """This moment, to be given to ``following``: the first number that a later call can have."""
    records = _ring.finished()
    return int(records[-1][INDEX]) + 1 if records else 0


def following(functions: Collection[str], since: int, most: int) -> tuple[CallLog, int]:
    """The last calls of some Functions since a moment: cheap, however many there were.

    Args:
        functions: names of the Functions.
        since: what ``mark`` gave.
        most: how many calls to read.

    Returns:
        The last of them, and how many there were before.
    """
    records = [r for r in _ring.finished() if r[INDEX] >= since and SUBJECTS[r[SUBJECT]].name in functions]
    shown = records[-most:]
    return CallLog(tuple(read(shown, records)), 0, engine(), problems()), len(records) - len(shown)


@contextmanager
def paused() -> Iterator[None]:
    """Record nothing in this thread for a while, as in ``with paused():``."""
    state = local.state
    state.paused += 1
    try:
        yield
    finally:
        state.paused -= 1


def set_cell(number: int | None) -> None:
    """Say which notebook cell is running (its execution count), None outside one."""
    _recorder.cell = number
    prints.follow()


def clear_open_calls() -> None:
    """Close the calls of this thread that an interrupt left open; the magics do it after each cell."""
    close_all(local.state)


def clear() -> None:
    """Forget all recorded calls."""
    _ring.clear()


def instrumented() -> list[type]:
    """The Functions that are recorded now."""
    return list(_subjects)


def engine() -> str:
    """The engine in use: ``"monitoring"``, ``"spy"`` or ``"in place"``; ``"none"`` when nothing can be recorded."""
    return getattr(_choose(), "name", "none")


def problems() -> tuple[str, ...]:
    """Sentences saying what could not be recorded, and why."""
    found = [sentence for sentences in _problems.values() for sentence in sentences]
    if _choose() is None:
        found.append(messages.text("recording.no_engine", torch=torch.__version__))
    traced = [subject.name for subject in _subjects.values() if subject.traced]
    found += [messages.text("recording.traced", function=name) for name in traced]
    found += [messages.text("recording.error", error=e, count=n) for e, n in _recorder.errors.items()]
    return tuple(found)


def _function(cls: Any, caller: str) -> type:
    function = function_class(cls)
    if function is None or function is torch.autograd.Function:
        raise CallError("recording.no_function", caller=caller, got=getattr(cls, "__name__", type(cls).__name__))
    return function


def _set_level(function: type, subject: Subject, level: int) -> None:
    """At level off nothing stands in the class's way."""
    was, subject.level = subject.level, level
    if was and not level:
        _engine().withdraw(function)
    elif level and not was and function in _subjects:
        _engine().install(function, subject, _recorder)


def _install(function: type, level: int) -> None:
    subject = Subject(function, level)
    try:
        found = _engine().install(function, subject, _recorder)
    except Exception as error:
        _engine().remove(function)
        found = [messages.text("recording.failed_to_install", function=function.__name__, error=error)]
    _problems.pop(function.__name__, None)
    if found:
        _problems[function.__name__] = found
    _subjects[function] = subject
    prints.listen()


@cache
def _choose() -> Engine | None:
    """The first engine that passes the self-test here."""
    from nbautograd.core.recording.in_place import InPlaceEngine
    from nbautograd.core.recording.monitoring import MonitoringEngine
    from nbautograd.core.recording.spy import SpyEngine

    candidates: list[Engine] = [MonitoringEngine(), SpyEngine(), InPlaceEngine()]
    return next((candidate for candidate in candidates if works(candidate)), None)


class _NoEngine:
    """Records nothing: where no engine passes, every Function runs untouched."""

    name = "none"

    def withdraw(self, cls: type) -> None:
        pass

    def install(self, cls: type, subject: Subject, recorder: Recorder) -> list[str]:
        return []

    def remove(self, cls: type) -> None:
        pass


def _engine() -> Engine:
    return _choose() or _NoEngine()
