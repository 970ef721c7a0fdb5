"""Progress: how far a check is, told to whoever asks, and never more often than it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from nbautograd.core.display import Phrase

Tell = Callable[[int, int, str], None]
Watch = Callable[[], AbstractContextManager[Tell | None]]

_watch: list[Watch] = []  # who wants to know of long work that nobody was named for, the last one first

PARTS = 100  # a block counts as so many steps


class Progress:
    """Counts the questions that a check asks and tells how far it is.

    Args:
        tell: called with (steps done, steps in all, what is being done); None to tell nobody. What it raises ends
            the check as if the user had; a ``KeyboardInterrupt`` keeps what there is. Where it has a method
            ``verdict_known`` that is called once with a report, when the verdict on first derivatives is known.

    Example:
        >>> from nbautograd.core.checking.progress import Progress
        >>> progress = Progress(lambda done, total, what: print(done, total, what))
        >>> progress.plan(1, "d y / d x")
        0 200 d y / d x
        >>> progress.stage(0, 100, of=4, what="d y / d x")
        >>> progress.tick(2)
        50 200 d y / d x
    """

    def __init__(self, tell: Tell | None = None) -> None:
        self._tell = tell
        self._what: Phrase | str = ""
        self._reported = -1
        self._start, self._end, self._of, self._count = 0, 0, 1, 0
        self.total = 0
        self._known = False

    def plan(self, blocks: int, what: Phrase | str = "") -> None:
        """Take note of how many blocks there are to do."""
        self.total = (blocks + 1) * PARTS  # the last part is the search for causes
        self._what = what
        self._say(0)

    def stage(self, start: int, end: int, of: int, what: Phrase | str) -> None:
        """Let the ticks from now on, of so many calls, lead from one number of steps to another."""
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
        self._reported = steps
        self._tell(steps, self.total, str(self._what))


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
