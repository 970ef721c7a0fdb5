"""A progress bar for checks that take a while; the kernel's own stop button ends them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from IPython.display import display

from nbautograd import messages
from nbautograd.views.markup import prose, tag

PATIENCE = 0.7  # seconds before a bar appears: what is quicker needs none
PAUSE = 0.2  # seconds between two updates


class ProgressBar:
    """Told by a check how far it is; shows a bar once that takes longer than a moment.

    Args:
        now: the clock, in seconds.

    Example:
        >>> from nbautograd.magics.progress import ProgressBar
        >>> bar = ProgressBar()
        >>> bar(1, 100, "d y / d x")
        >>> bar.show_instead("the report")
        False
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begin = self._last = now()
        self._handle: Any = None

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take note of (steps done, steps in all, what is being done)."""
        now = self._now()
        if now - self._begin < PATIENCE or now - self._last < PAUSE:
            return
        self._last = now
        self._draw(_bundle(done, total, what))

    def show_instead(self, value: Any) -> bool:
        """Put a result in the bar's place; False when there was no bar, so that the caller shows it as usual."""
        if self._handle is None:
            return False
        self._handle.update(value)
        return True

    def close(self) -> None:
        """Take the bar away."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def _draw(self, bundle: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _bundle(done: int, total: int, what: str) -> dict[str, str]:
    percent = min(100, 100 * done // max(1, total))
    words = messages.text("magics.progress", percent=percent, what=what)
    track = "height:6px;max-width:420px;margin-top:6px;border-radius:3px;background-color:rgba(128,128,128,.25)"
    filled = f"height:6px;width:{percent}%;border-radius:3px;background-color:#1976d2"
    bar = tag("div", {"style": track}, tag("div", {"style": filled}))
    return {"text/plain": words, "text/html": tag("div", None, prose(words), bar)}
