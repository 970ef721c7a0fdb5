"""Outputs that change in their place: bars that a report replaces, the cards of a session while and after cells run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.display import DisplayHandle

from nbautograd.core.recording.api import following
from nbautograd.core.stumbles import any_errors
from nbautograd.core.this_thread import start_thread
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import RecordingCard, glance


class LiveOutput:
    """One output: each thing it shows takes the place of the one before.

    Attributes:
        shown: True once something was shown.
    """

    def __init__(self) -> None:
        self._handle: Any = DisplayHandle()
        self.shown = False

    def show(self, bundle: dict[str, str], publisher: Any = None) -> None:
        """Show a MIME bundle.

        Args:
            bundle: its texts by MIME type.
            publisher: a shell's display publisher of an earlier moment, for threads; what a cell captures meanwhile is
                the user's. None takes the one of now.
        """
        update, self.shown = self.shown, True
        if publisher is not None:
            publisher.publish(bundle, {}, transient={"display_id": self._handle.display_id}, update=update)
        elif update:
            self._handle.update(bundle, raw=True)
        else:
            self._handle.display(bundle, raw=True)

    def replace(self, value: Any) -> None:
        """Show a value as ``display`` does, in the place of what was shown."""
        self._handle.update(value)


def can_update(publisher: Any) -> bool:
    """Return whether the front end can change what it has shown; a terminal would print it again."""
    return type(publisher) is not DisplayPublisher


CALLS_SHOWN = 12
GLANCED = 4  # calls that are shown while a cell runs
FIRST = 0.25  # seconds that a cell runs before its card is looked at
PAUSE = 0.1  # least seconds from one look to the next
SHARE = 0.01  # of the time that looking may take


class CallCard:
    """The card of Functions: their last calls.

    Args:
        card: what it says so far.
        since: the moment from which on calls appear in it, as ``log.mark`` gave it.
    """

    def __init__(self, card: RecordingCard, since: int) -> None:
        self.card = card
        self.since = since
        self._output = LiveOutput()
        self._glanced: int | None = None

    def show(self) -> None:
        """Put the card under the cell that runs now."""
        self._read()
        self._output.show(mimebundle(self.card))

    def refresh(self) -> None:
        """Bring the card up to date; nothing is sent when there were no new calls."""
        if self._read():
            self._output.show(mimebundle(self.card))

    def glance(self, publisher: Any) -> None:
        """Show the last calls of a cell that still runs; called from a thread of its own."""
        calls, earlier = following(self.card.functions, self.since, GLANCED)
        if calls and calls[-1].index != self._glanced:
            self._glanced = calls[-1].index
            self._output.show(glance(replace(self.card, calls=calls, earlier=earlier)), publisher)

    def _read(self) -> bool:
        before = self.card.calls[-1].index if self.card.calls else None
        calls, earlier = following(self.card.functions, self.since, CALLS_SHOWN)
        self.card = replace(self.card, calls=calls, earlier=earlier)
        self._glanced = calls[-1].index if calls else None
        return bool(calls) and calls[-1].index != before


class Cards:
    """All cards of a session.

    Args:
        updates: whether the front end can change what it has shown; a terminal would print it again.
    """

    def __init__(self, updates: bool) -> None:
        self.updates = updates
        self._cards: list[CallCard] = []

    def add(self, card: RecordingCard, since: int) -> None:
        """Show a card; from now on it follows the calls of its Functions."""
        self.retire(card.functions)
        live = CallCard(card, since)
        self._cards.append(live)
        live.show()

    def retire(self, functions: tuple[str, ...]) -> None:
        """Let older cards stop following Functions that were defined anew."""
        for live in self._cards:
            left = tuple(name for name in live.card.functions if name not in functions)
            if left != live.card.functions:
                live.card = replace(live.card, functions=left)
        self._cards = [live for live in self._cards if live.card.functions]

    def refresh(self) -> None:
        """Bring every card up to date, once per cell."""
        if self.updates:
            for live in self._cards:
                live.refresh()

    @contextmanager
    def watching(self, publisher: Any) -> Iterator[None]:
        """Bring the cards up to date while a cell runs; the thread that does it ends with the block.

        Args:
            publisher: the shell's display publisher as it was when the cell began: what the cell captures later is
                the user's.
        """
        if not (self.updates and self._cards):
            yield
            return
        over = threading.Event()
        watcher = start_thread("card", self._watch, over, publisher)
        try:
            yield
        finally:
            over.set()
            if watcher is not None:
                watcher.join()

    def _watch(self, over: threading.Event, publisher: Any) -> None:
        pause = FIRST
        while not over.wait(pause):
            started = time.thread_time()
            with any_errors("card") as guard:  # the card as it is after the cell tells what happened
                for live in list(self._cards):
                    live.glance(publisher)
            if guard.failed:
                return
            pause = max(PAUSE, (time.thread_time() - started) / SHARE)
