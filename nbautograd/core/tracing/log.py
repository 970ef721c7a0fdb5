"""The public functions of tracing: trace, untrace, dispatches."""

from __future__ import annotations

import weakref
from typing import Any, TypeVar

from nbautograd.core.display import Phrase
from nbautograd.core.tracing.dispatches import DispatchLog
from nbautograd.core.tracing.spying import PROTOCOLS, DispatchRing, original, wrapped
from nbautograd.errors import CallError

C = TypeVar("C", bound=type)

_ring = DispatchRing()
# the traced classes, with what could not be traced of each
_problems: weakref.WeakKeyDictionary[type, tuple[Phrase, ...]] = weakref.WeakKeyDictionary()


def trace(cls: C) -> C:
    """Trace a class's ``__torch_function__`` and ``__torch_dispatch__`` from now on. Also a class decorator.

    The class behaves as before. Each call of the methods is recorded: torch function, types, arguments and answer.
    Doing it twice changes nothing.

    Args:
        cls: a class whose body defines one of the two methods: a duck type, a subclass of ``torch.Tensor``, or a
            ``TorchFunctionMode`` or ``TorchDispatchMode``.

    Returns:
        The class itself.

    Raises:
        CallError: for anything that defines neither method.

    Example:
        >>> import torch, nbautograd
        >>> @nbautograd.trace
        ... class Seven:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return 7 if func is torch.mean else NotImplemented
        >>> torch.mean(Seven())
        7
        >>> nbautograd.dispatches(Seven)[-1].func
        'torch.mean'
    """
    if not overrides(cls):
        raise CallError("tracing.no_override", got=getattr(cls, "__name__", type(cls).__name__))
    if cls in _problems:
        return cls
    problems = []
    for protocol in overrides(cls):
        ours = wrapped(cls, protocol, _ring)
        if ours is None:
            problems.append(Phrase("tracing.other_kind", owner=cls.__name__, method=protocol))
        else:
            setattr(cls, protocol, ours)
    _problems[cls] = tuple(problems)
    return cls


def untrace(cls: C) -> C:
    """Leave a class exactly as it was written; a method that was set anew meanwhile stays.

    Example:
        >>> import nbautograd
        >>> class Plain:
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         return 0
        >>> written = vars(Plain)["__torch_function__"]
        >>> vars(nbautograd.untrace(nbautograd.trace(Plain)))["__torch_function__"] is written
        True
    """
    _problems.pop(cls, None)
    for protocol in overrides(cls):
        before = original(vars(cls)[protocol])
        if before is not None:
            setattr(cls, protocol, before)
    return cls


def dispatches(*classes: type, since: int = 0) -> DispatchLog:
    """Return what went through traced classes so far, the newest 2,000.

    Args:
        classes: only those classes; all when there are none. What was dispatched during one of theirs is there too.
        since: only dispatches of this index and later; ``mark()`` gives the next one.

    Example:
        >>> import nbautograd
        >>> nbautograd.dispatches(since=10**9)
        <DispatchLog of 0 dispatches>
    """
    records = [r for r in list(_ring.records) if r.index >= since]
    inside: set[int] = set()
    for record in records:
        cls = record.cls()
        if not classes or record.parent in inside or (cls is not None and issubclass(cls, classes)):
            inside.add(record.index)
    chosen = tuple(record.read() for record in records if record.index in inside)
    oldest = _ring.records[0].index if _ring.records else 0
    problems = tuple(p for cls in (classes or tuple(_problems)) for p in _problems.get(cls, ()))
    return DispatchLog(chosen, max(0, oldest - since), problems)


def mark() -> int:
    """Index that the next dispatch will have."""
    return _ring.begun


def overrides(cls: Any) -> tuple[str, ...]:
    """Name which of the two methods a class's own body defines."""
    return tuple(p for p in PROTOCOLS if p in vars(cls)) if isinstance(cls, type) else ()
