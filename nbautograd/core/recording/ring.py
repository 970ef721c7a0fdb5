"""The ring of recorded calls: bounded by bytes, oldest calls go first."""

from __future__ import annotations

import itertools
import threading
from collections import deque

from nbautograd.core.recording.state import Record

BUDGET = 16 * 2**20


class Ring:
    """Recorded calls, newest last.

    Args:
        budget: bytes that the calls may take, estimated.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.dropped = 0
        self.links: dict[int, tuple[int, bool]] = {}  # id(ctx) -> (index of its forward, freed after a backward)
        self._records: deque[Record] = deque()
        self._lock = threading.Lock()
        self._counter = itertools.count()

    def next_index(self) -> int:
        """The number of the next call."""
        return next(self._counter)

    def append(self, record: Record) -> None:
        """Take in a call that begins."""
        self._records.append(record)

    def charge(self, record: Record, size: int) -> None:
        """Count the bytes of a call that ended, and let the oldest go while there are too many."""
        with self._lock:
            record.size += size
            self.used += size
            while self.used > self.budget and len(self._records) > 1:
                self._drop(self._records.popleft())

    def _drop(self, record: Record) -> None:
        self.used -= record.size
        self.dropped += 1
        if record.method == "forward" and self.links.get(record.ctx_id, (-1,))[0] == record.index:
            del self.links[record.ctx_id]

    def finished(self) -> list[Record]:
        """The calls that have ended, oldest first."""
        return sorted((record for record in tuple(self._records) if record.done), key=lambda record: record.index)

    def clear(self) -> None:
        """Forget every call; numbers go on."""
        with self._lock:
            self._records.clear()
            self.links.clear()
            self.used = self.dropped = 0

    def __len__(self) -> int:
        return len(self._records)
