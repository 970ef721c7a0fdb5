"""The ring of recorded calls: bounded by bytes, oldest calls go first."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, deque
from dataclasses import dataclass
from operator import attrgetter

from nbautograd.core.recording.call import Call
from nbautograd.core.recording.function import InstrumentedFunction
from nbautograd.core.recording.record import CallRecord

BUDGET = 16 * 2**20
EVERY = 32  # calls between two looks at the budget
_CALL, _VALUE = 900, 350  # bytes that a record takes, and each of its snapshots besides what was copied
_FOR_DECODED = 8  # one part in so many of the budget is for Calls that were decoded


@dataclass(slots=True)
class Link:
    """What is known of a ctx.

    Attributes:
        function: whose ctx it is.
        forward: index of the forward call that filled it.
        freed: True once a backward freed its saved tensors.
        runs: how often its node ran.
        first_run: index of the first such call.
    """

    function: InstrumentedFunction
    forward: int
    freed: bool = False
    runs: int = 0
    first_run: int | None = None


def weight(record: CallRecord, copied: int) -> int:
    """Return the bytes that a record takes, estimated; what was copied is counted exactly."""
    return _CALL + _VALUE * (len(record.inputs) + len(record.outputs)) + copied


class Ring:
    """Calls that have ended, newest last.

    Args:
        budget: bytes that the calls may take, estimated; an eighth of it is for those that somebody looked at.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.dropped = 0
        self.gone: Counter[InstrumentedFunction] = Counter()  # how many calls of each were let go
        self.links: dict[int, Link] = {}  # by id(ctx)
        self._fresh: deque[CallRecord] = deque()  # ended, and not counted yet
        self._calls: deque[CallRecord] = deque()
        self._decoded: deque[tuple[CallRecord, int]] = deque()  # and how many bytes each Call takes
        self.used_by_decoded = 0
        self._lock = threading.RLock()  # a signal handler or a finalizer may record a call in the middle
        self.add = self._fresh.append  # takes in a call that ended, from any thread; settle counts it
        self.next_index = itertools.count().__next__  # gives the number of the next call

    def settle(self) -> None:
        """Count the calls that came since the last time, and let the oldest go while there are too many bytes."""
        with self._lock:
            calls, fresh = self._calls, self._fresh
            while fresh:
                record = fresh.popleft()
                calls.append(record)
                self.used += record.weight
            while self.used > self.budget - self.budget // _FOR_DECODED and len(calls) > 1:
                record = calls.popleft()
                self.used -= record.weight
                self.dropped += 1
                self.gone[record.function] += 1
            if len(self.links) > 2 * len(calls) + 1024:
                self._forget_links()

    def keep_decoded(self, record: CallRecord, call: Call, weight: int) -> None:
        """Keep a Call with its record; those that were decoded first are let go, and decoded anew when looked at.

        Args:
            record: of the call.
            call: what was made of it.
            weight: bytes that it takes, estimated.
        """
        with self._lock:
            record.call = call
            self._decoded.append((record, weight))
            self.used_by_decoded += weight
            while self.used_by_decoded > self.budget // _FOR_DECODED and len(self._decoded) > 1:
                oldest, freed = self._decoded.popleft()
                oldest.call = None
                self.used_by_decoded -= freed

    def _forget_links(self) -> None:
        """Let go of what is known of each ctx whose forward is not here any more."""
        first = self._calls[0].index if self._calls else 0
        for key, link in list(self.links.items()):
            if link.forward < first:
                self.links.pop(key, None)

    def finished(self) -> list[CallRecord]:
        """Return the calls that have ended, in the order in which they began."""
        with self._lock:
            self.settle()
            calls = list(self._calls)
        return sorted(calls, key=attrgetter("index"))

    def clear(self) -> None:
        """Forget every call; numbers go on."""
        with self._lock:
            self._fresh.clear()
            self._calls.clear()
            self._decoded.clear()
            self.links.clear()
            self.gone.clear()
            self.used = self.dropped = self.used_by_decoded = 0

    def __len__(self) -> int:
        return len(self._calls) + len(self._fresh)
