"""Prints of a method: a tee of ``sys.stdout.write`` on the stream itself keeps them with the running call.

The stream object stays the user's; only its ``write`` attribute is set, and taken away again by ``leave``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nbautograd.core.recording.record import local

_MOST = 64 * 1024  # characters kept per call

_streams: list[tuple[Any, Any, Any]] = []  # stream, our write, the instance's own write before us (None: the class's)
_current: Any = None  # our write on the stream heard last
followed: Any = None  # the stream heard last: before each call it is compared with ``sys.stdout``
enabled = False


def follow() -> None:
    """Hear the stream that ``sys.stdout`` is now; called before a call that meets another stream, and once per cell."""
    global followed
    followed = sys.stdout
    if enabled and getattr(sys.stdout, "write", None) is not _current:
        _hear(sys.stdout)


def listen() -> None:
    """Start hearing prints: from now on each recorded call keeps what it prints."""
    global enabled
    enabled = True
    follow()


def leave() -> None:
    """Stop hearing, and give every stream its own ``write`` back."""
    global enabled, _current, followed
    enabled, _current, followed = False, None, None
    while _streams:
        stream, ours, before = _streams.pop()
        if vars(stream).get("write") is not ours:  # somebody set another on top of ours: it is theirs to take away
            continue
        if before is None:
            del stream.write
        else:
            stream.write = before


@contextmanager
def teed() -> Iterator[None]:
    """Hear prints for a while, as in ``with teed():``; nested ones leave the outer one at work."""
    was = enabled
    listen()
    try:
        yield
    finally:
        if not was:
            leave()


def _hear(stream: Any) -> None:
    global _current
    try:
        before, write = vars(stream).get("write"), stream.write
        stream.write = ours = _tee(write)
    except (AttributeError, TypeError):  # no stdout at all, or a stream that takes no attributes
        _current = getattr(stream, "write", None)
        return
    _streams[:] = [kept for kept in _streams if vars(kept[0]).get("write") is kept[1]]  # the others are gone already
    _streams.append((stream, ours, before))
    _current = ours


def _tee(write: Any) -> Any:
    def hearing(text: Any, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if not state.stack or state.writing:
            return write(text, *args, **kwargs)
        call = state.stack[-1]
        if call.printed is None:
            call.printed = []
        if isinstance(text, str) and sum(map(len, call.printed)) < _MOST:
            call.printed.append(text)
        state.writing = True
        try:
            return write(text, *args, **kwargs)
        finally:
            state.writing = False

    return hearing
