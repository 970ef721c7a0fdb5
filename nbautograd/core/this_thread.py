"""Quiet for one thread: what it prints is dropped and what it warns of is not shown; other threads notice nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from nbautograd.core import forks


class _MutedStream:
    """Stands in for ``sys.stdout`` or ``sys.stderr``: drops what some threads write, and passes on all else.

    Attributes:
        stream: the stream that it stands in for.
        threads: identifiers of the muted threads, as often as they asked.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.threads: list[int] = []

    def write(self, text: str) -> int:
        """Write a text, unless this thread is muted."""
        if threading.get_ident() in self.threads:
            return len(text)
        written: int = self.stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_lock = forks.lock()


@contextlib.contextmanager
def muted(name: str) -> Iterator[None]:
    """Drop what this thread writes to ``sys.stdout`` or ``sys.stderr``; other threads go on writing."""
    thread = threading.get_ident()
    with _lock:
        stream = getattr(sys, name)
        proxy = stream if isinstance(stream, _MutedStream) else _MutedStream(stream)
        proxy.threads.append(thread)
        setattr(sys, name, proxy)
    try:
        yield
    finally:
        with _lock:
            proxy.threads.remove(thread)
            if not proxy.threads and getattr(sys, name) is proxy:
                setattr(sys, name, proxy.stream)


class _ThisThread:
    """Stands in a filter of warnings in the place of a pattern: matches every message of one thread, of no other."""

    def __init__(self) -> None:
        self.thread: int | None = threading.get_ident()

    def match(self, text: str) -> bool:
        """Return True in that thread."""
        return threading.get_ident() == self.thread


@contextlib.contextmanager
def warnings_ignored() -> Iterator[None]:
    """Show no warnings of this thread, those of others as before.

    ``warnings.catch_warnings`` would silence every thread, and restore filters that another one has changed meanwhile.
    """
    here = _ThisThread()
    with _lock:
        before = warnings.filters
        # a list of our own: Python may be walking through the other one, as matching lets threads switch
        ours = [("ignore", here, Warning, None, 0), *before]
        warnings.filters = ours  # type: ignore[assignment, list-item, unused-ignore]
    try:
        yield
    finally:
        with _lock:
            here.thread = None
            left = [one for one in warnings.filters if not _is_over(one)]
            warnings.filters = before if left == before else left


def _is_over(one: Any) -> bool:
    return isinstance(one[1], _ThisThread) and one[1].thread is None
