"""The ring of recorded calls: bounded by bytes, oldest calls go first."""

from __future__ import annotations

import itertools
import threading
from collections import Counter, deque
from itertools import islice
from operator import itemgetter

from nbautograd.core.recording.state import INDEX, SUBJECT, WEIGHT, Packed

BUDGET = 16 * 2**20
EVERY = 32  # calls between two looks at the budget
CALL, VALUE = 900, 250  # bytes that a record takes, and each of its values besides what was copied
SHORT = 420  # bytes that a short record takes besides what was copied

_weight, _subject = itemgetter(WEIGHT), itemgetter(SUBJECT)
# what is known of a ctx: its forward's index, the subject's number, freed by a backward, how often its node ran, and
# the index of the first such run
Link = tuple[int, int, bool, int, int | None]


class Ring:
    """Calls that have ended, newest last.

    Args:
        budget: bytes that the calls may take, estimated.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.used = 0
        self.dropped = 0
        self.gone: Counter[int] = Counter()  # by the number of a subject: how many calls of it were let go
        self.links: dict[int, Link] = {}  # by id(ctx)
        self._calls: deque[Packed] = deque()
        self._counted = 0  # how many of them settle has counted
        self._lock = threading.Lock()
        self.add = self._calls.append  # takes in a call that ended; settle counts it
        self.next_index = itertools.count().__next__  # gives the number of the next call

    def settle(self) -> None:
        """Count the calls that came since the last time, and let the oldest go while there are too many bytes."""
        with self._lock:
            calls = self._calls
            fresh = max(len(calls) - self._counted, 0)
            self._counted += fresh
            self.used += sum(map(_weight, islice(reversed(calls), fresh)))
            while self.used > self.budget and self._counted > 1:
                over = (self.used - self.budget) * self._counted // self.used + 1  # about so many are too many
                gone = [calls.popleft() for _ in range(min(over, self._counted - 1))]
                self.used -= sum(map(_weight, gone))
                self._counted -= len(gone)
                self.dropped += len(gone)
                self.gone.update(map(_subject, gone))
            if len(self.links) > 2 * len(calls) + 1024:
                self._forget_links()

    def _forget_links(self) -> None:
        """Let go of what is known of each ctx whose forward is not here any more."""
        first = self._calls[0][INDEX] if self._calls else 0
        for key, link in list(self.links.items()):
            if link[0] < first:
                self.links.pop(key, None)

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
            self.gone.clear()
            self.used = self.dropped = self._counted = 0

    def __len__(self) -> int:
        return len(self._calls)
