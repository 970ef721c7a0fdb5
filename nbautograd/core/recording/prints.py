"""Prints of a method: while a recorded call runs, a tee in place of its stream's ``write`` keeps them with the call.

The tee is there for no longer than that. Between calls a stream can be copied, pickled, closed and freed as if we were
not there; one that we kept was never flushed, and ``redirect_stdout(open(...))`` in a loop ran out of descriptors.
"""

from __future__ import annotations

import sys
import weakref
from types import FunctionType, GetSetDescriptorType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

from nbautograd.core.recording.record import CallRecord, ThreadState, local

PRINTED_LETTERS = 64 * 1024  # characters kept per call


class Tee:
    """Stands for ``write`` on a stream: keeps what it is given with the thread's running call, and hands it on.

    Attributes:
        threads: those whose calls are heard; the last one takes the tee away. Each step is atomic or loses prints at
            worst: no lock, which a signal handler or a fork could meet held.
        before: the stream's own ``write`` among its attributes, None where it has only that of its class.
    """

    __slots__ = ("before", "stream", "threads")

    def __init__(self, stream: Any) -> None:
        self.stream = weakref.ref(stream)
        self.before: Any = None
        self.threads: set[ThreadState] = set()

    def __call__(self, text: Any, *args: Any, **kwargs: Any) -> Any:
        """Keep a text, and write it."""
        __tracebackhide__ = True
        state: ThreadState = local.state
        call = state.stack[-1] if state.stack and not state.writing else None
        if call is not None:
            if call.printed is None:
                call.printed = []
            if isinstance(text, str) and sum(map(len, call.printed)) < PRINTED_LETTERS:
                call.printed.append(text)
            state.writing = True
        try:
            if self.before is not None:
                return self.before(text, *args, **kwargs)
            stream: Any = self.stream()
            return type(stream).write(stream, text, *args, **kwargs)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise
        finally:
            if call is not None:
                state.writing = False


_last: Tee | None = None  # of the stream heard last, to be used again


def hear(record: CallRecord, state: ThreadState) -> None:
    """Keep what ``sys.stdout`` is given with a call that is on its thread's stack, until ``leave_prints``."""
    global _last
    stream: Any = getattr(sys, "stdout", None)
    if stream is None:
        return
    tee = _last
    if tee is None or tee.stream() is not stream:
        if not _known(type(stream)):
            return
        tee = Tee(stream)
    attributes = stream.__dict__
    now = attributes.get("write")
    if type(now) is not Tee:
        tee.before = now
    elif state in now.threads and len(state.stack) > 1:  # the call around this one is heard
        return
    else:
        tee = now
    _last = record.tee = tee
    tee.threads.add(state)
    attributes["write"] = tee


def leave_prints(record: CallRecord, state: ThreadState) -> None:
    """Keep no more with a call that ends; what somebody has put on the stream meanwhile stays."""
    tee, record.tee = record.tee, None
    if tee is not None:
        tee.threads.discard(state)
        if not tee.threads:
            _take_away(tee)


def _take_away(tee: Tee) -> None:
    stream = tee.stream()
    if stream is not None and stream.__dict__.get("write") is tee:
        if tee.before is None:
            stream.__dict__.pop("write", None)
        else:
            stream.__dict__["write"] = tee.before
    tee.before = None


def forked() -> None:
    """Take away a tee of a thread that is not in this child of a fork."""
    tee = _last
    if tee is not None:
        tee.threads &= {local.state}
        if not tee.threads:
            _take_away(tee)


_plain: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def _known(kind: type) -> bool:
    """Return True for streams whose attributes are had and set without running code of anybody's.

    A proxy's ``__getattr__`` or a property may raise or do anything, and all that would come out of the user's call.
    """
    known = _plain.get(kind)
    if known is None:
        entries = {name: entry for one in reversed(kind.__mro__) for name, entry in vars(one).items()}
        known = _plain[kind] = (
            isinstance(entries.get("write"), (FunctionType, MethodDescriptorType))
            and isinstance(entries.get("__dict__"), GetSetDescriptorType)
            and isinstance(entries["__getattribute__"], WrapperDescriptorType)
            and kind.__weakrefoffset__ != 0
        )
    return known
