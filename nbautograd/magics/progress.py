"""A bar for work that takes a while: how far it is, and a button that ends it with what is done by then."""

from __future__ import annotations

import _thread
import contextlib
import math
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.display import display

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.magics.bar_views import live_bar, static_bar
from nbautograd.views.answer import answer
from nbautograd.widgets.front_ends import still_busy

PATIENCE = 0.7  # seconds before a bar appears: what is quicker needs none
PAUSE = 0.2  # seconds between two updates
NOTHING = {"text/plain": "", "text/html": ""}
SELDOM = 3.0  # seconds between two updates of the static bar under a live one that has not answered
GRACE = 0.5  # seconds from the stop button to an interrupt, for work that nobody counts


class ProgressBar:
    """Shows a bar once a block of work takes longer than a moment; told how far it is by whoever counts.

    The same bar may be used for one block after another.

    A thread of its own shows it and keeps it up to date, so that it is there also while one long step runs.

    Args:
        shell: the InteractiveShell.
        what: what is being done, until the work itself says.
        counted: False when the work does other work that counts for itself.
        now: the clock, in seconds.

    Attributes:
        stopped: True once the bar's own button was pressed.

    Example:
        >>> from nbautograd.magics.progress import ProgressBar
        >>> with ProgressBar(None) as bar:
        ...     bar(1, 100, "d y / d x")
        >>> bar.shown
        False
    """

    def __init__(
        self, shell: Any, what: str = "", *, counted: bool = True, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.stopped = False
        self.over = False
        self.known: tuple[str, str] | None = None  # tone and headline of the verdict
        self._publisher: Any = getattr(shell, "display_pub", None)
        self._told = (0, 0, what)
        self._counted = counted
        self._now = now
        self._begin = self._last = self._static = now()
        self._id = uuid.uuid4().hex
        self._end = threading.Event()
        self._lock = threading.RLock()
        self._views: tuple[str, Any] | None = None  # the static bar's class and the live one
        self._seen = self._ended = False
        self._answered = 0  # how often it is still to be said that the kernel is at work

    @property
    def shown(self) -> bool:
        """Whether there is a bar on the page."""
        return self._views is not None

    def __enter__(self) -> ProgressBar:
        self._begin, self._end = self._now(), threading.Event()
        self.stopped = self._ended = self.over = False
        self.known = None
        if math.isfinite(PATIENCE) and self._publisher is not None:
            threading.Thread(target=self._watch, args=(self._end,), name="nbautograd progress", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        while not self.over:
            with contextlib.suppress(KeyboardInterrupt), self._lock:  # one that came too late to stop anything
                self._end.set()
                self.over = True
        if kind is not None and not issubclass(kind, KeyboardInterrupt):
            self.close()
        elif self._views is not None and self._views[1] is not None:
            self._views[1].tell()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take note of (steps done, steps in all, what is being done).

        Raises:
            KeyboardInterrupt: when the bar's button was pressed.
        """
        if self._counted:
            self._told = (done, total, what)
        if self.stopped and not self.over:
            self._ended = True
            raise KeyboardInterrupt
        if self._end.is_set() or not self._counted:
            return
        self._show_when_due()

    def verdict_known(self, report: GradcheckReport) -> None:
        """Show the verdict on first derivatives as soon as the bar is there; the rest follows in the report."""
        told = answer(report)
        self.known = told.tone, told.headline
        self._last = self._static = -math.inf  # at once

    def state(self) -> dict[str, Any]:
        """How far the work is, for the bar on the page."""
        done, total, what = self._told
        seconds = int(self._now() - self._begin)
        tone, headline = self.known or ("", "")
        state = {"done": done, "total": total, "what": what, "seconds": seconds, "over": self.over}
        return {**state, "tone": tone, "headline": headline}

    def stop(self) -> None:
        """End the work with what it has: where it next says how far it is, else wherever it is."""
        if not self.stopped:
            self.stopped = True
            insist = threading.Timer(GRACE, self._insist)
            insist.daemon = True
            insist.start()

    def seen(self) -> None:
        """The page shows the live bar: the static one needs no more updates."""
        self._seen, self._answered = True, 3

    def show_instead(self, value: Any) -> bool:
        """Put a result in the bar's place; False when there was no bar, so that the caller shows it as usual."""
        if self._views is None or not self._changes:
            return False
        display(value, display_id=self._id, update=True)
        self._forget()
        return True

    def close(self, bundle: dict[str, str] = NOTHING) -> bool:
        """Take the bar away, or put a sentence in its place; False when there was none, as for ``show_instead``."""
        replaced = self._views is not None and self._changes
        if replaced:
            self._publish(bundle, update=True)
        self._forget()
        return replaced

    @property
    def _changes(self) -> bool:
        """Whether the front end can change what it has shown; a terminal would print it again."""
        return type(self._publisher) is not DisplayPublisher

    def _insist(self) -> None:
        with self._lock:
            if not self.over and not self._ended:
                _thread.interrupt_main()

    def _watch(self, end: threading.Event) -> None:
        pause = PATIENCE
        while not end.wait(max(0.0, pause)):
            try:
                self._show_when_due()
            except Exception:  # the result tells all that matters
                return
            pause = PAUSE

    def _show_when_due(self) -> None:
        with self._lock:
            now = self._now()
            if self.over or now - self._begin < PATIENCE or (self.shown and now - self._last < PAUSE):
                return
            self._last = now
            if self._views is None:
                self._open()
            elif self._changes:
                self._update(now)

    def _open(self) -> None:
        self._views = live_bar(self)
        self._publish(static_bar(self.state(), self._views[0]), update=False)

    def _update(self, now: float) -> None:
        assert self._views is not None
        anchor, live = self._views
        if live is not None:
            live.tell()
        if self._answered:  # the kernel says idle some time after the answer: once may be too early
            self._answered -= 1
            still_busy()
        if live is None or (not self._seen and now - self._static > SELDOM):
            self._static = now
            self._publish(static_bar(self.state(), anchor), update=True)

    def _publish(self, bundle: dict[str, str], update: bool) -> None:
        self._publisher.publish(bundle, {}, transient={"display_id": self._id}, update=update)

    def _forget(self) -> None:
        if self._views is not None and self._views[1] is not None:
            self._views[1].close()
        self._views = None
