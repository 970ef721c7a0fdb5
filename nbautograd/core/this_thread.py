"""Quiet for one thread: what it prints is dropped and what it warns of is not shown; other threads notice nothing.

And a thread of ours, where one can be started.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from nbautograd.core import forks


@contextlib.contextmanager
def undone(undo: Callable[[], None]) -> Iterator[None]:
    """Undo at the end of a block what it did, once more where an interrupt came in the middle of that.

    An interrupt that comes as a ``with`` statement begins finds nothing done: what is to be undone is done inside.

    Args:
        undo: may be called twice, and after only a part was done.
    """
    try:
        try:
            yield
        finally:
            undo()
    except BaseException:
        undo()
        raise


def start_thread(name: str, run: Callable[..., Any], *args: Any) -> threading.Thread | None:
    """Start a thread that does not keep the process alive; None in a browser or at a limit, where none can be had.

    Args:
        name: as a debugger shows it, after the name of the package.
        run: called with the arguments. What it does is left out where there is no thread.
    """
    thread = threading.Thread(target=run, args=args, name=f"nbautograd {name}", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class _MutedStream:
    """Stands in for ``sys.stdout`` or ``sys.stderr``: drops what some threads write, and passes on all else.

    Attributes:
        stream: the stream that it stands in for.
        threads: identifiers of the muted threads, by who asked.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.threads: dict[object, int] = {}

    def write(self, text: str) -> int:
        if threading.get_ident() in self.threads.values():
            return len(text)
        written: int = self.stream.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


_lock = forks.lock()


@contextlib.contextmanager
def muted() -> Iterator[None]:
    """Drop what this thread writes to ``sys.stdout`` and ``sys.stderr``; other threads go on writing."""
    here, proxies = object(), dict[str, _MutedStream]()

    def undo() -> None:
        with _lock:
            for name, proxy in proxies.items():
                proxy.threads.pop(here, None)
                if not proxy.threads and getattr(sys, name) is proxy:
                    setattr(sys, name, proxy.stream)

    with undone(undo):
        with _lock:
            for name in ("stdout", "stderr"):
                stream = getattr(sys, name)
                proxies[name] = stream if isinstance(stream, _MutedStream) else _MutedStream(stream)
                proxies[name].threads[here] = threading.get_ident()
                setattr(sys, name, proxies[name])
        yield


class _ThisThread:
    """Stands in a filter of warnings in the place of a pattern: matches every message of one thread, of no other."""

    def __init__(self) -> None:
        self.thread: int | None = threading.get_ident()

    def match(self, text: str) -> bool:
        return threading.get_ident() == self.thread


@contextlib.contextmanager
def warnings_ignored() -> Iterator[None]:
    """Show no warnings of this thread, those of others as before.

    ``warnings.catch_warnings`` would silence every thread, and restore filters that another one has changed meanwhile.
    """
    here, before = _ThisThread(), warnings.filters

    def undo() -> None:
        with _lock:
            here.thread = None
            left = [one for one in warnings.filters if not _is_over(one)]
            if len(left) < len(warnings.filters):
                warnings.filters = before if left == before else left

    with undone(undo):
        with _lock:
            before = warnings.filters
            # a list of our own: Python may be walking through the other one, as matching lets threads switch
            ours = [("ignore", here, Warning, None, 0), *before]
            warnings.filters = ours  # type: ignore[assignment, list-item, unused-ignore]
        yield


def _is_over(one: Any) -> bool:
    return isinstance(one[1], _ThisThread) and one[1].thread is None
