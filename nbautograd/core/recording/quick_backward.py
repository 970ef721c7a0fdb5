"""The quick ways to write down calls of setup_context and backward, which come after forward; see ``quick.py``.

This is the hot path: what these functions read is local to them, and what is rare is asked last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from nbautograd.core.recording import prints
from nbautograd.core.recording.reading_ctx import beside_saved, innermost, places
from nbautograd.core.recording.ring import EVERY, SHORT
from nbautograd.core.recording.short import TAKEN
from nbautograd.core.recording.snapshot import SUMMARY
from nbautograd.core.recording.state import (
    BEGAN,
    HEAD,
    ITS_FORWARD,
    MET,
    NUMBER,
    PRINTED,
    QUICK,
    Head,
    Open,
    ThreadState,
)
from nbautograd.core.recording.unrolled import picks
from nbautograd.core.recording.writer import Begin, End, Writer, unwind
from nbautograd.core.torch_private import tensors as internals

_modes, _get_frame, _heard = internals.function_mode_active, sys._getframe, prints.heard
_grad_enabled, _keep_graph = torch.is_grad_enabled, internals.keep_graph
_NOTHING: tuple[Any, ...] | None = ()


def setup_context(writer: Writer) -> tuple[Begin, End]:
    """As ``quick.pair``, for setup_context, which takes over what forward has written down."""
    number, links, next_index, hidden = writer.number, writer.links, writer.next_index, writer.subject.backward_class
    slowly, recorder, subject = writer.begin, writer.recorder, writer.subject

    def begin(args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        handed, state.handed = state.handed, None
        if handed is None or handed[0] != number:
            return slowly(args, state, frame or _get_frame(1))
        forward = handed[1]
        if state.paused or not subject.level:
            state.last_forward[number] = (forward, None)
            return slowly(args, state, frame or _get_frame(1))
        try:
            ctx, stack = args[0], state.stack
            key = id(ctx if type(ctx) is hidden() else innermost(ctx))
            links[key] = (forward, number, False, 0, None)
            head: Head = stack[-1][NUMBER] if stack else None, len(args[1])
            call: Open = [next_index(), None, 0.0, writer, head, key, forward, handed]
            if sys.stdout is not _heard[0]:
                prints.follow()
            stack.append(call)
            call[BEGAN] = perf_counter()
            return call
        except Exception as error:
            recorder.note(error)
            return None

    return begin, _end_setup(writer)


def _end_setup(writer: Writer) -> End:
    subject, number, hidden, uses = writer.subject, writer.number, writer.subject.backward_class, writer.uses
    recorder, ring, add, only_saves = writer.recorder, writer.ring, writer.add, writer.only_saves
    last: Any = None  # what the form of the forward before has told
    at: tuple[int, ...] = ()  # where among what that forward met each saved tensor was found
    these: Callable[..., bool] = bool  # tells whether they are found there again

    def end(call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        nonlocal last, at, these
        seconds = perf_counter() - call[BEGAN]
        if len(call) != QUICK or call[PRINTED] is not None or _modes():
            return writer.long_way(call, args, result, state)
        try:
            ctx, inputs, output = args
            ctx = ctx if type(ctx) is hidden() else innermost(ctx)
            saved, (_, _, output_id, forward) = getattr(ctx, "to_save", 0), call[MET]
            if saved is None:
                saved = ()
            if type(saved) is not tuple or id(output) != output_id:
                return writer.long_way(call, args, result, state)
            met, told = (*inputs, *output) if type(output) is tuple else (*inputs, output), forward[TAKEN][0]
            if told is not last or len(saved) != len(at) or not these(*met, *saved):
                found = places(met, saved)
                if found is None:  # something that forward did not meet
                    return writer.long_way(call, args, result, state)
                last, at, these = told, found, picks(len(met), found)
            level = subject.level
            on_ctx = _NOTHING if only_saves and level < SUMMARY else beside_saved(ctx, saved, uses, True, level)
            if on_ctx is None:
                return writer.long_way(call, args, result, state)
            index, stack = call[NUMBER], state.stack
            short = (
                index, number, "setup_context", call[ITS_FORWARD], SHORT, state.name, seconds, recorder.cell,
                call[HEAD], (at, forward), on_ctx,
            )  # fmt: skip
            if stack.pop() is not call:
                unwind(stack, call)
            add(short)
            if not index % EVERY:
                ring.settle()
        except Exception as error:
            writer.incomplete(call, seconds, error, state)

    return end


def backward(writer: Writer) -> tuple[Begin, End]:
    """As ``quick.pair``, for backward."""
    subject, number, forms, links = writer.subject, writer.number, writer.forms, writer.links
    slowly, next_index, recorder, hidden = writer.begin, writer.next_index, writer.recorder, subject.backward_class

    def begin(args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        if forms.last is None or type(args[-1]) is list or state.paused or not subject.level:
            return slowly(args, state, frame or _get_frame(1))
        try:
            ctx, index, stack = args[0], next_index(), state.stack
            key = id(ctx if type(ctx) is hidden() else innermost(ctx))
            forward, first, freed, run = None, None, False, 0
            link = links.get(key)
            if link is not None and link[1] == number:
                forward, _, freed, run, first = link
                run, first = run + 1, index if first is None else first
                links[key] = forward, number, freed or not _keep_graph(), run, first
            head: Head = stack[-1][NUMBER] if stack else None, _grad_enabled(), freed, run, first
            call: Open = [index, None, 0.0, writer, head, key, forward, None]
            if sys.stdout is not _heard[0]:
                prints.follow()
            stack.append(call)
            call[BEGAN] = perf_counter()
            return call
        except Exception as error:
            recorder.note(error)
            return None

    return begin, _end_backward(writer)


def _end_backward(writer: Writer) -> End:
    subject, number, forms = writer.subject, writer.number, writer.forms
    recorder, ring, add = writer.recorder, writer.ring, writer.add

    def end(call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        seconds = perf_counter() - call[BEGAN]
        if len(call) != QUICK or call[PRINTED] is not None or _modes():
            return writer.long_way(call, args, result, state)
        try:
            met = (*args[1:], *result) if type(result) is tuple else (*args[1:], result)
            form, level = forms.last, subject.level
            taken = form.take(*met) if form and form.count == len(met) and form.level == level else None
            if taken is None and (taken := forms.take(met, level)) is None:
                return writer.long_way(call, args, result, state)
            index, stack = call[NUMBER], state.stack
            short = (
                index, number, "backward", call[ITS_FORWARD], taken[1], state.name, seconds, recorder.cell,
                call[HEAD], taken, None,
            )  # fmt: skip
            if stack.pop() is not call:
                unwind(stack, call)
            add(short)
            if not index % EVERY:
                ring.settle()
        except Exception as error:
            writer.incomplete(call, seconds, error, state)

    return end
