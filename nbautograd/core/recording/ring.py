"""The ring of recorded calls: bounded by bytes, oldest calls go first."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from typing import Any

from nbautograd.core.recording.state import Recorded

BUDGET = 16 * 2**20

Packed = tuple[Any, ...]  # the fields of a Recorded
INDEX, SUBJECT, METHOD, FORWARD, KEPT, CTX_ID, SIZE = (
    Recorded._fields.index(name) for name in ("index", "subject_number", "method", "forward", "kept", "ctx_id", "size")
)


class Ring:
    """Calls that have ended, newest last.

    Args:
        budget: bytes that the calls may take, estimated.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.dropped = 0
        self.links: dict[int, tuple[int, bool]] = {}  # id(ctx) -> (index of its forward, freed after a backward)
        self._calls: deque[Packed] = deque()
        self._lock = threading.Lock()
        self._counter = itertools.count()

    def next_index(self) -> int:
        """The number of the next call."""
        return next(self._counter)

    def add(self, call: Packed) -> None:
        """Take in a call that ended, and let the oldest go while there are too many bytes."""
        with self._lock:
            self._calls.append(call)
            self.used += call[SIZE]
            while self.used > self.budget and len(self._calls) > 1:
                self._drop(self._calls.popleft())

    def _drop(self, call: Packed) -> None:
        self.used -= call[SIZE]
        self.dropped += 1
        if call[METHOD] == "forward" and self.links.get(call[CTX_ID], (-1,))[0] == call[INDEX]:
            del self.links[call[CTX_ID]]

    def finished(self) -> list[Packed]:
        """The calls that have ended, in the order in which they began."""
        with self._lock:
            calls = list(self._calls)
        return sorted(calls, key=lambda call: call[INDEX])

    def clear(self) -> None:
        """Forget every call; numbers go on."""
        with self._lock:
            self._calls.clear()
            self.links.clear()
            self.used = self.dropped = 0

    def __len__(self) -> int:
        return len(self._calls)
