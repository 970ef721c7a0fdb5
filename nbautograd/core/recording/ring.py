"""The ring of recorded calls: bounded by bytes, oldest calls go first."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from itertools import islice

from nbautograd.core.recording.state import CTX_ID, INDEX, INPUTS, KEPT, METHOD, OUTPUTS, STDOUT, Packed

BUDGET = 16 * 2**20
EVERY = 32  # calls between two looks at the budget
_CALL, _TENSOR, _OBJECT, _DATA = 700, 300, 120, 7  # bytes that these take; where a raw tensor has its bytes

_NO_LINK = (-1,)

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
        self.links: dict[int, Link] = {}  # by id(ctx)
        self._calls: deque[Packed] = deque()
        self._sizes: deque[int] = deque()  # of the calls that settle has counted
        self._lock = threading.Lock()
        self.add = self._calls.append  # takes in a call that ended; settle counts it
        self.next_index = itertools.count().__next__  # gives the number of the next call

    def settle(self) -> None:
        """Count the calls that came since the last time, and let the oldest go while there are too many bytes."""
        with self._lock:
            calls = self._calls
            for call in list(islice(reversed(calls), max(len(calls) - len(self._sizes), 0)))[::-1]:
                self._sizes.append(weight(call))
                self.used += self._sizes[-1]
            while self.used > self.budget and len(calls) > 1 and len(self._sizes) > 1:
                self._drop(calls.popleft())

    def _drop(self, call: Packed) -> None:
        self.used -= self._sizes.popleft()
        self.dropped += 1
        if call[METHOD] == "forward" and self.links.get(call[CTX_ID], _NO_LINK)[0] == call[INDEX]:
            self.links.pop(call[CTX_ID], None)

    def finished(self) -> list[Packed]:
        """The calls that have ended, in the order in which they began."""
        with self._lock:
            calls = list(self._calls)
        return sorted(calls, key=lambda call: call[INDEX])

    def clear(self) -> None:
        """Forget every call; numbers go on."""
        with self._lock:
            self._calls.clear()
            self._sizes.clear()
            self.links.clear()
            self.used = self.dropped = 0

    def __len__(self) -> int:
        return len(self._calls)


def weight(call: Packed) -> int:
    """Bytes that a call takes, estimated: what was copied is counted exactly, once for each place where it stands."""
    total, counted = _CALL + len(call[STDOUT]), set()
    kept = call[KEPT]
    for one in (*call[INPUTS], *call[OUTPUTS], *(kept[0] + kept[2] if kept else ())):
        if id(one) not in counted:
            counted.add(id(one))
            total += _OBJECT if len(one) == 2 else _TENSOR + len(one[_DATA] or b"")
    return total
