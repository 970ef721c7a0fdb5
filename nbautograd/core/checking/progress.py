"""Progress: how far a check is, told to whoever asks, and never more often than it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

from nbautograd.core.display import Phrase

Tell = Callable[[int, int, str], None]
Watch = Callable[[], AbstractContextManager[Tell | None]]

_watch: list[Watch] = []  # who wants to know of long work that nobody was named for, the last one first

PARTS = 100  # a block counts as so many steps
ESTIMATED_FROM = 0.02  # of the work, by which the time of the rest is estimated
Kind = Literal["backward", "forward"]  # what a step asks: half of a block's are of each


class Progress:
    """Counts the questions that a check asks and tells how far it is.

    Args:
        tell: called with (steps done, steps in all, what is being done); None to tell nobody. What it raises ends
            the check as if the user had; a ``KeyboardInterrupt`` keeps what there is. Where it has a method
            ``verdict_known`` that is called once with a report, when the verdict on first derivatives is known;
            where it has a method ``time_left`` that is called with the seconds until then, by what steps took so far.
        now: returns seconds.

    Example:
        >>> from nbautograd.core.checking.progress import Progress
        >>> progress = Progress(lambda done, total, what: print(done, total, what))
        >>> progress.plan([3], [3], "d y / d x")
        0 200 d y / d x
        >>> progress.stage("backward", 0, 100, of=4, what="d y / d x")
        >>> progress.tick(2)
        50 200 d y / d x
    """

    def __init__(self, tell: Tell | None = None, now: Callable[[], float] = time.perf_counter) -> None:
        self._tell, self._now = tell, now
        self._what: Phrase | str = ""
        self._reported = -1
        self._start, self._end, self._of, self._count = 0, 0, 1, 0
        self.total = 0
        self._known = False
        self._kind: Kind = "backward"
        self._outputs: Sequence[int] = ()
        self._inputs: Sequence[int] = ()
        self._seconds: dict[Kind, float] = {"backward": 0.0, "forward": 0.0}
        self._last = now()

    def plan(self, outputs: Sequence[int], inputs: Sequence[int], what: Phrase | str = "") -> None:
        """Take note of the blocks to do, by the number of elements of each output and of each input."""
        self._outputs, self._inputs = outputs, inputs
        self.total = (len(outputs) * len(inputs) + 1) * PARTS  # the last part is the search for causes
        self._what, self._last = what, self._now()
        self._say(0)

    def stage(self, kind: Kind, start: int, end: int, of: int, what: Phrase | str) -> None:
        """Let the ticks from now on, ``of`` calls of one kind, lead from one number of steps to another."""
        self._measure()
        self._kind = kind
        self._start, self._end, self._of, self._count, self._what = start, end, max(1, of), 0, what

    def tick(self, count: int = 1) -> None:
        """Count calls of the user's forward or backward as done."""
        if self._tell is not None:
            self._count += count
            self._say(self._start + (self._end - self._start) * min(self._count, self._of) // self._of)

    def verdict_known(self, report: Any, what: Phrase | str) -> None:
        """Hand on the verdict on first derivatives, once, and say what is being done from now on."""
        self._what = what
        if self._tell is None or self._known:
            return
        self._known = True
        listener = getattr(self._tell, "verdict_known", None)
        if listener is not None:
            listener(report)
        self._say(self._reported + 1)

    def done(self, steps: int, what: Phrase | str | None = None) -> None:
        """Set the steps done, and what is being done from now on, when that is named."""
        self._what = self._what if what is None else what
        self._say(steps)

    def _say(self, steps: int) -> None:
        if self._tell is None or steps <= self._reported:
            return
        self._measure()
        self._reported = steps
        listener = getattr(self._tell, "time_left", None)
        left = None if self._known or listener is None else self._time_left(steps)
        if left is not None and listener is not None:
            listener(left)
        self._tell(steps, self.total, str(self._what))

    def _measure(self) -> None:
        now = self._now()
        self._seconds[self._kind] += now - self._last
        self._last = now

    def _time_left(self, steps: int) -> float | None:
        """Return the seconds that all blocks still take, or None before there is enough to tell it by.

        A kind of which nothing was done yet is taken to be as slow as the other.
        """
        done, whole = self._work(steps), self._work(self.total - PARTS)
        if not any(done.values()) or sum(done.values()) < ESTIMATED_FROM * sum(whole.values()):
            return None  # nothing was done yet, or there is nothing to do: forward returned no tensor
        mean = sum(self._seconds.values()) / sum(done.values())
        rates = {kind: self._seconds[kind] / work if work else mean for kind, work in done.items()}
        return sum((whole[kind] - done[kind]) * rates[kind] for kind in rates)

    def _work(self, steps: int) -> dict[Kind, float]:
        half, each = PARTS / 2, len(self._inputs) * PARTS  # steps of an output: one half for backward, one for forward
        work: dict[Kind, float] = {"backward": 0.0, "forward": 0.0}
        for i, size in enumerate(self._outputs):
            rest = steps - i * each
            work["backward"] += size * min(1.0, max(0.0, rest / (each / 2)))
            for j, of_input in enumerate(self._inputs):
                work["forward"] += of_input * min(1.0, max(0.0, (rest - each / 2) / half - j))
        return work


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let long work in the block that was given nobody to tell ask here: a notebook shows a bar for it."""
    _watch.append(watch)
    try:
        yield
    finally:
        _watch.remove(watch)


def watched(tell: Tell | None = None) -> AbstractContextManager[Tell | None]:
    """Return the block in which long work runs; gives who is told: the one who was named, else who is watching."""
    return nullcontext(tell) if tell is not None or not _watch else _watch[-1]()
