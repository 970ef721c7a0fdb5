"""Outputs of the magics: results, wrong lines as one line on stderr, the user's errors as their own.

Some change in their place: bars that a report replaces, the cards of a session while cells run and after each.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import UsageError
from IPython.display import DisplayHandle, display

from nbautograd.core import stumbles
from nbautograd.core.explaining.torch_errors import entries
from nbautograd.core.findings import Phrase
from nbautograd.core.recording.api import following
from nbautograd.core.stumbles import any_errors
from nbautograd.core.this_thread import start_thread
from nbautograd.magics.call_expression import one_line
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import Notice, RecordingCard, glance

_OURS = str(Path(__file__).parent.parent) + os.sep
EVALUATED = "<magic>"


class CellFailedError(Exception):
    """The cell's body raised and has been shown; this only tells the front end that the cell failed."""

    def _render_traceback_(self) -> list[str]:
        return []


def show_help(magics: object, name: str, line: str) -> bool:
    """Print the help of a magic where its line asks for it; return True if so.

    ``-h`` asks alone on the line, since ``f(a) -h`` is an expression; ``--help`` anywhere.
    """
    asked = line.strip() == "-h" or "--help" in line.split()
    if asked:
        print(inspect.cleandoc(getattr(magics, name).__doc__))
    return asked


def show_message(message_id: str, **params: Any) -> None:
    """Show one sentence as a result."""
    show(Notice((Phrase(message_id, **params),)))


def show_stumble(magic: str, error: Exception) -> None:
    """Report an error of ours in a sentence; the user's cell goes on."""
    show_message("magics.stumbled", magic=magic, error=kept(error, magic))


def kept(error: Exception, magic: str) -> str:
    """Keep an error of ours, and return its text in one line."""
    stumbles.record(error, magic)
    return f"{type(error).__name__}: {one_line(error)}"


def show(value: RecordingCard | Notice) -> None:
    """Show a card or a notice."""
    display(mimebundle(value), raw=True)


def show_usage_error(shell: Any, result: Any, error: UsageError) -> None:
    """Say in one line on stderr what is wrong with the magic's line, and let the cell count as failed."""
    shell.show_usage_error(error)
    _mark(shell, result, error)


def show_users_error(shell: Any, result: Any, error: BaseException) -> None:
    """Show an error of the user's code as if nothing of ours had called it, and let the cell count as failed."""
    _mark(shell, result, error)
    shell.showtraceback((type(error), error, users_traceback(error)), tb_offset=0)


def count_as_interrupted(shell: Any, result: Any) -> None:
    """Let the cell count as interrupted, so that a front end stops the cells behind it as well."""
    _mark(shell, result, KeyboardInterrupt())


def render_as_users_own(shell: Any, error: BaseException) -> None:
    """Let IPython show this error, when it is raised on, without frames of ours."""
    trace = users_traceback(error)
    lines = shell.InteractiveTB.structured_traceback(type(error), error, trace, tb_offset=0)
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]


def users_traceback(error: BaseException) -> types.TracebackType | None:
    """Return the error's traceback without our frames."""
    trace = None
    for entry in reversed([entry for entry in entries(error) if not _is_ours(entry)]):
        trace = types.TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return trace


def _is_ours(entry: types.TracebackType) -> bool:
    file = entry.tb_frame.f_code.co_filename
    return file.startswith(_OURS) or file == EVALUATED


def _mark(shell: Any, result: Any, error: BaseException) -> None:
    shell.last_execution_succeeded = False
    if hasattr(shell, "_last_traceback"):  # a kernel puts this into its reply
        shell._last_traceback = [f"{type(error).__name__}: {stumbles.said(error)}"]
    if result is not None and result.success:
        result.error_in_exec = error


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
