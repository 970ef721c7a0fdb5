"""The bars of a session: one for each piece of long work in a cell; what the cell shows next takes its place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.progress import Tell
from nbautograd.core.display import Displayable
from nbautograd.magics.progress import ProgressBar


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
        """A block of long work; blocks inside it share its bar, and other threads have none."""
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
        if bar.shown:
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
        """What IPython asks first when it shows a value, be it by ``display`` or as a cell's last expression."""
        return self._shell.display_formatter.ipython_display_formatter
