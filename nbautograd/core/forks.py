"""Locks that the child of a fork finds free.

A fork copies one thread, and every lock as it is at that moment: one that another thread held is never released in the
child. So all locks of this package are made here, and a child begins with free ones. What such a lock guards may be
half done in the child: each use keeps to steps that are whole by themselves.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def lock() -> Any:
    """Return a re-entrant lock: a signal handler, a finalizer or a fork may come in the middle of what it guards."""
    made: Any = threading.RLock()
    _locks.add(made)
    return made


def _renew() -> None:
    for one in _locks:
        if not one._is_owned():  # the thread that forked still holds this one, and releases it
            one._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
