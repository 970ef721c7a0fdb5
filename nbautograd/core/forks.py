"""Locks that the child of a fork finds free.

A fork copies one thread, and every lock as it is at that moment: one that another thread held is never released in the
child. So all locks of this package are made here, and a child begins with free ones. What such a lock guards may be
half done in the child: each use keeps to steps that are whole by themselves.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload
from weakref import WeakSet

Value = TypeVar("Value")

_locks: WeakSet[Any] = WeakSet()


def lock() -> Any:
    """Return a re-entrant lock: a signal handler, a finalizer or a fork may come in the middle of what it guards."""
    made: Any = threading.RLock()
    _locks.add(made)
    return made


class cached(Generic[Value]):  # noqa: N801
    """A property that is computed once for each object, as by ``functools.cached_property``, without a lock.

    In Python 3.11 that one holds a lock of its whole class while it computes, which no child of a fork can let go of.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object, owner: type | None = None) -> cached[Value] | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self.name, self.compute(instance))  # found there from now on
        return value


def _renew() -> None:
    for one in _locks:
        if not one._is_owned():  # the thread that forked still holds this one, and releases it
            one._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
