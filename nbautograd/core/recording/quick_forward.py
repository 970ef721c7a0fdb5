"""The quick way to write down calls of forward; see ``quick.py``.

This is the hot path: what these functions read is local to them, and what is rare is asked last.
"""

from __future__ import annotations

import sys
from time import perf_counter
from types import FrameType
from typing import Any

from nbautograd.core.recording import prints
from nbautograd.core.recording.reading_ctx import beside_saved
from nbautograd.core.recording.recorder import CALLERS, USERS, caller, whose
from nbautograd.core.recording.ring import EVERY
from nbautograd.core.recording.snapshot import SUMMARY
from nbautograd.core.recording.state import BEGAN, HEAD, NUMBER, PRINTED, QUICK, Head, Open, ThreadState
from nbautograd.core.recording.writer import Begin, End, Writer, unwind
from nbautograd.core.torch_private import tensors as internals

_modes, _get_frame, _heard, _CALLER = internals.function_mode_active, sys._getframe, prints.heard, CALLERS + 1
_NOBODY = (None, 0)
_NOTHING: tuple[Any, ...] | None = ()


def forward(writer: Writer) -> tuple[Begin, End]:
    """As ``quick.pair``, for forward."""
    subject, number, forms, links = writer.subject, writer.number, writer.forms, writer.links
    slowly, next_index, recorder, sets_up = writer.begin, writer.next_index, writer.recorder, writer.sets_up

    def begin(args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        if forms.last is None or state.paused or not subject.level:
            return slowly(args, state, frame or _get_frame(1))
        try:
            index, ctx, stack = next_index(), state.armed_ctx, state.stack
            state.armed_ctx = 0
            if sets_up:
                state.handed = None
            elif ctx:
                links[ctx] = (index, number, False, 0, None)
            frame = frame or _get_frame(_CALLER)
            code, around = frame.f_code, stack[-1][NUMBER] if stack else None
            if whose[code.co_filename] == USERS:
                head: Head = around, code, frame.f_lasti
            else:
                head = around, *(caller(frame) or _NOBODY)
            call: Open = [index, None, 0.0, writer, head, ctx, None, None]
            if sys.stdout is not _heard[0]:
                prints.follow()
            stack.append(call)
            call[BEGAN] = perf_counter()
            return call
        except Exception as error:
            recorder.note(error)
            return None

    return begin, (_end_forward if sets_up else _end_combined)(writer)


def _end_forward(writer: Writer) -> End:
    """Where setup_context follows, which will want to know what forward met."""
    subject, number, forms = writer.subject, writer.number, writer.forms
    recorder, ring, add = writer.recorder, writer.ring, writer.add

    def end(call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        seconds = perf_counter() - call[BEGAN]
        if len(call) != QUICK or call[PRINTED] is not None or _modes():
            return writer.long_way(call, args, result, state)
        try:
            met = (*args, *result) if type(result) is tuple else (*args, result)
            form, level = forms.last, subject.level
            taken = form.take(*met) if form and form.count == len(met) and form.level == level else None
            if taken is None and (taken := forms.take(met, level)) is None:
                return writer.long_way(call, args, result, state)
            index, stack = call[NUMBER], state.stack
            short = (
                index, number, "forward", None, taken[1], state.name, seconds, recorder.cell,
                call[HEAD], taken, None,
            )  # fmt: skip
            if stack.pop() is not call:
                unwind(stack, call)
            add(short)
            if not index % EVERY:
                ring.settle()
            state.handed, state.pending = (number, index, id(result), short), subject
        except Exception as error:
            writer.incomplete(call, seconds, error, state)

    return end


def _end_combined(writer: Writer) -> End:
    """Where forward gets ctx itself."""
    subject, number, forms, uses = writer.subject, writer.number, writer.forms, writer.uses
    recorder, ring, add, only_saves = writer.recorder, writer.ring, writer.add, writer.only_saves

    def end(call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        seconds = perf_counter() - call[BEGAN]
        saved = getattr(args[0], "to_save", 0)
        if saved is None:
            saved = ()
        if len(call) != QUICK or call[PRINTED] is not None or type(saved) is not tuple or _modes():
            return writer.long_way(call, args, result, state)
        try:
            met = (*args[1:], *result, *saved) if type(result) is tuple else (*args[1:], result, *saved)
            form, level, on_ctx = forms.last, subject.level, _NOTHING
            taken = form.take(*met) if form and form.count == len(met) and form.level == level else None
            if taken is None and (taken := forms.take(met, level)) is None:
                return writer.long_way(call, args, result, state)
            if level >= SUMMARY or not only_saves:
                on_ctx = beside_saved(args[0], saved, uses, taken[0][-1], level)
            if on_ctx is None:
                return writer.long_way(call, args, result, state)
            index, stack = call[NUMBER], state.stack
            short = (
                index, number, "forward", None, taken[1], state.name, seconds, recorder.cell,
                call[HEAD], taken, on_ctx,
            )  # fmt: skip
            if stack.pop() is not call:
                unwind(stack, call)
            add(short)
            if not index % EVERY:
                ring.settle()
        except Exception as error:
            writer.incomplete(call, seconds, error, state)

    return end
