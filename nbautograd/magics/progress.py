"""A bar for work that takes a while: how far it is, and that an interrupt of the kernel leaves what is done by then."""

from __future__ import annotations

import contextlib
import contextvars
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from nbautograd import messages
from nbautograd.core import forks
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.progress import Tell
from nbautograd.core.display import Displayable
from nbautograd.core.findings import Phrase
from nbautograd.core.stumbles import any_errors
from nbautograd.core.this_thread import start_thread
from nbautograd.magics.output import LiveOutput, can_update, show
from nbautograd.views import theme
from nbautograd.views.answer import answer
from nbautograd.views.bundle import mimebundle
from nbautograd.views.card import Notice
from nbautograd.views.document import Tone
from nbautograd.views.markup import prose, tag
from nbautograd.views.phrases import VERDICT_MARKS, say
from nbautograd.views.to_html import chip

PATIENCE = 0.2  # seconds before a bar appears: first words stand within 300 ms of the run, in JupyterLab too
PAUSE = 0.2  # seconds between two updates
NOTHING = {"text/plain": "", "text/html": ""}

_TRACK = f"height:6px;max-width:420px;margin-top:6px;border-radius:3px;background-color:{theme.TRACK_ON_ANY}"
_FILLED = "height:6px;width:{}%;border-radius:3px;" + theme.rule("background-color", theme.BRAND)


@dataclass(frozen=True)
class ProgressState:
    """Progress of long work.

    Attributes:
        percent: None when nobody counts.
        what: what is in work.
        tone, headline: of the verdict; empty until it is known.
    """

    percent: int | None
    what: str
    tone: Tone | Literal[""] = ""
    headline: str = ""


class ProgressBar:
    """Shows a bar once a block of work takes longer than a moment; told how far it is by whoever counts.

    The same bar may be used for one block after another.

    A thread of its own shows it and keeps it up to date, so that it is there also while one long step runs.

    Args:
        shell: the InteractiveShell.
        what: what is being done, until the work itself says.
        counted: False when the work does other work that counts for itself.
        now: the clock, in seconds.
    """

    def __init__(
        self, shell: Any, what: str = "", *, counted: bool = True, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.over = False
        self.known: tuple[Tone, str] | None = None  # tone and headline of the verdict
        self._publisher: Any = getattr(shell, "display_pub", None)
        self._latest = (0, 0, what)
        self._counted = counted
        self._now = now
        self._begin = self._last = now()
        self._output = LiveOutput()
        self._end = threading.Event()
        self._lock = forks.lock()

    @property
    def shown(self) -> bool:
        """Return True if there is a bar on the page."""
        return self._output.shown

    def __enter__(self) -> ProgressBar:
        self._begin, self._end = self._now(), threading.Event()
        self.over = False
        self.known = None
        if math.isfinite(PATIENCE) and self._publisher is not None:
            # ipykernel 7.0 knows by the context which cell an output belongs to; a thread has an empty one
            run = contextvars.copy_context().run
            start_thread("progress", run, self._watch, self._end)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        while not self.over:
            with contextlib.suppress(KeyboardInterrupt), self._lock:  # one that came too late to stop anything
                self._end.set()
                self.over = True
        if kind is not None and not issubclass(kind, KeyboardInterrupt):
            self.close()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take note of (steps done, steps in all, what is being done)."""
        if self._counted:
            self._latest = (done, total, what)
        if self._end.is_set() or not self._counted:
            return
        self._show_when_due()

    def verdict_known(self, report: GradcheckReport) -> None:
        """Show the verdict on first derivatives as soon as the bar is there; the rest follows in the report."""
        told = answer(report)
        self.known = told.tone, told.headline
        self._last = -math.inf  # at once

    def state(self) -> ProgressState:
        """Return how far the work is, for the bar on the page: nobody can say so once the verdict is known."""
        done, total, what = self._latest
        tone, headline = self.known or ("", "")
        percent = min(100, 100 * done // total) if total and self.known is None else None
        return ProgressState(percent, what, tone, headline)

    def show_instead(self, value: Any) -> bool:
        """Put a result in the bar's place; False when there was no bar, so that the caller shows it as usual."""
        if not self.shown or not self._changes:
            return False
        self._output.replace(value)
        self._output = LiveOutput()
        return True

    def close(self, bundle: dict[str, str] = NOTHING) -> bool:
        """Take the bar away, or put a sentence in its place; False when there was none, as for ``show_instead``."""
        replaced = self.shown and self._changes
        if replaced:
            self._output.show(bundle, self._publisher)
        self._output = LiveOutput()
        return replaced

    @property
    def _changes(self) -> bool:
        return can_update(self._publisher)

    def _watch(self, end: threading.Event) -> None:
        pause = PATIENCE
        while not end.wait(max(0.0, pause)):
            with any_errors("progress bar") as guard:  # the result tells all that matters
                self._show_when_due()
            if guard.failed:
                return
            pause = PAUSE

    def _show_when_due(self) -> None:
        with self._lock:
            now = self._now()
            if self.over or now - self._begin < PATIENCE or (self.shown and now - self._last < PAUSE):
                return
            self._last = now
            if not self.shown or self._changes:
                self._output.show(drawn(self.state()), self._publisher)


class Bars:
    """Gives long work that runs in a cell a bar.

    Args:
        shell: the InteractiveShell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._working: ProgressBar | None = None
        self._waiting: ProgressBar | None = None

    @contextmanager
    def around(self) -> Iterator[Tell | None]:
        """Share one bar among long work and the blocks inside it; other threads have none."""
        if self._working is not None or threading.current_thread() is not threading.main_thread():
            yield self._working if threading.current_thread() is threading.main_thread() else None
            return
        bar = self._let_go() or ProgressBar(self._shell, messages.text("magics.running"))
        self._working = bar
        try:
            with bar:
                yield bar
        except BaseException:
            bar.close()
            raise
        finally:
            self._working = None
        if bar.shown and can_update(self._shell.display_pub):  # a terminal shows the value below the bar
            self._waiting = bar
            self._formatter.for_type(Displayable, self._show_instead)

    def clear(self) -> None:
        """Take away the bar whose place nothing took."""
        bar = self._let_go()
        if bar is not None:
            bar.close()

    def _show_instead(self, value: Any) -> None:
        bar = self._let_go()
        assert bar is not None
        bar.show_instead(value)

    def _let_go(self) -> ProgressBar | None:
        bar, self._waiting = self._waiting, None
        if bar is not None:
            self._formatter.pop(Displayable, None)
        return bar

    @property
    def _formatter(self) -> Any:
        """Return the formatter that IPython asks first, be it by ``display`` or for a cell's last expression."""
        return self._shell.display_formatter.ipython_display_formatter


def drawn(state: ProgressState) -> dict[str, str]:
    """Return the bar as it stands in the output: it names the kernel's own stop button, which every front end has."""
    percent = state.percent
    parts = filter(None, ["" if percent is None else f"{percent} %", state.what])
    words = messages.text("magics.progress", progress=" · ".join(parts))
    verdict = None
    if state.headline:
        mark = chip(f"{VERDICT_MARKS[state.tone]} {say('verdict', state.tone)}", state.tone)
        verdict = tag("div", None, mark, " ", tag("strong", None, prose(state.headline)))
    bar = tag("div", {"style": _TRACK}, tag("div", {"style": _FILLED.format(100 if percent is None else percent)}))
    plain = "\n".join(part for part in (state.headline, words) if part)
    page = tag("div", {"class": "nbautograd"}, verdict or "", prose(words), bar)
    return {"text/plain": plain, "text/html": str(page)}


def show_interrupted(bar: ProgressBar) -> None:
    """Say that a check was interrupted, in the place of its bar where there is one."""
    notice = Notice((Phrase("magics.interrupted"),))
    if not bar.close(mimebundle(notice)):
        show(notice)
