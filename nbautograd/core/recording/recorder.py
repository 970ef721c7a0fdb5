"""The Recorder that every engine writes to: a call begins, ends or fails.

It looks at tensors without running an operation on them and keeps none of them. An error of its own is counted and
listed, and never reaches the user's run.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from nbautograd.core import torch_internals as internals
from nbautograd.core.recording import prints, reading_ctx
from nbautograd.core.recording.describing import Seen, changed, describe
from nbautograd.core.recording.ring import Ring
from nbautograd.core.recording.state import Record, Subject, ThreadState

_BETWEEN = (os.path.dirname(torch.__file__), os.path.dirname(__file__))  # frames between a call and its caller
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


class Recorder:
    """Writes calls into a ring.

    Attributes:
        ring: where the calls are kept.
        cell: execution count of the notebook cell that is running, or None.
        errors: what went wrong inside the recorder: text -> how often.
    """

    def __init__(self, ring: Ring) -> None:
        self.ring = ring
        self.cell: int | None = None
        self.errors: dict[str, int] = {}

    def born(self, subject: Subject, ctx: Any, state: ThreadState) -> None:
        """A ctx of this Function was made: its next forward lookup is PyTorch's."""
        state.armed, state.armed_ctx = subject, id(ctx)
        self.ring.links.pop(id(ctx), None)  # an older ctx had the same id

    def begin(self, subject: Subject, method: str, args: tuple[Any, ...], state: ThreadState) -> Record | None:
        """A method is about to run; args as PyTorch passes them, with ctx where the method takes it."""
        if not subject.level or state.paused or internals.tracing_state() is not None:
            return None
        try:
            record = Record(subject, method, self.ring.next_index(), state.name)
            self._identify(record, args, state)
            if internals.function_mode_active():
                with internals.disable_torch_function():
                    self._inputs(record, args, state)
            else:
                self._inputs(record, args, state)
            if prints.enabled:
                prints.follow()
            state.stack.append(record)
            record.seconds = perf_counter()
        except Exception as error:
            self.note(error)
            return None
        return record

    def end(self, record: Record, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """The method returned."""
        record.seconds = perf_counter() - record.seconds
        try:
            if internals.function_mode_active():
                with internals.disable_torch_function():
                    self._outputs(record, args, result)
            else:
                self._outputs(record, args, result)
        except Exception as error:
            self.note(error)
            record.missing += (f"{type(error).__name__}: {error}",)
        self._close(record, state)

    def fail(self, record: Record, error: BaseException, state: ThreadState) -> None:
        """The method raised."""
        record.seconds = perf_counter() - record.seconds
        try:
            text = "" if error.args == () else str(error)
            record.exception = f"{type(error).__name__}: {text}" if text else type(error).__name__
        except Exception as ours:
            record.exception = type(error).__name__
            self.note(ours)
        self._close(record, state)

    def note(self, error: Exception) -> None:
        """Count an error of our own."""
        text = f"{type(error).__name__}: {error}"
        self.errors[text] = self.errors.get(text, 0) + 1

    def clear_open_calls(self, state: ThreadState) -> None:
        """Close the calls of this thread that an interrupt inside our own code left open."""
        while state.stack:
            record = state.stack.pop()
            record.exception = record.exception or "KeyboardInterrupt"
            self._close(record, state)

    def _identify(self, record: Record, args: tuple[Any, ...], state: ThreadState) -> None:
        """Which ctx, which forward, inside which call, called from where."""
        if state.stack:
            record.parent = state.stack[-1].index
        record.cell = self.cell
        if record.method == "forward":
            record.ctx_id, state.armed_ctx = state.armed_ctx, 0
            record.caller_line = _caller_line(sys._getframe(3))
            if record.ctx_id:
                self.ring.links[record.ctx_id] = (record.index, False)
            state.last_forward[record.subject.number] = record
        elif record.method != "vmap" and args:
            self._link(record, reading_ctx.innermost(args[0]), state)

    def _link(self, record: Record, ctx: Any, state: ThreadState) -> None:
        record.ctx_id = id(ctx)
        if record.method == "setup_context":  # under torch.func it runs once more, with the ctx of the outer level
            last = state.last_forward.get(record.subject.number)
            if last is not None:
                record.forward = last.index
                self.ring.links[record.ctx_id] = (last.index, False)
            return
        link = self.ring.links.get(record.ctx_id)
        if link is not None:
            record.forward, record.freed = link
        if record.method == "backward":
            record.create_graph = torch.is_grad_enabled()

    def _inputs(self, record: Record, args: tuple[Any, ...], state: ThreadState) -> None:
        subject, method, seen = record.subject, record.method, _new_seen()
        values = args if method == "forward" and subject.sets_up else args[1:]
        if method == "backward" and len(values) == 1 and type(values[0]) is list:
            values = tuple(values[0])  # boxed_grads_call
        elif method == "setup_context":
            values = tuple(item for value in values for item in (value if isinstance(value, tuple) else (value,)))
            seen = _seen_before(state, record)
        record.seen = seen
        record.inputs, record.inputs_same, size = describe(values, "input", subject.level, seen)
        record.size = size

    def _outputs(self, record: Record, args: tuple[Any, ...], result: Any) -> None:
        subject, method, seen = record.subject, record.method, record.seen
        seen = seen if seen is not None else _new_seen()
        if method == "setup_context":
            record.kept, size = reading_ctx.read_ctx(reading_ctx.innermost(args[0]), seen, subject.level)
            record.size += size
            return
        values = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        record.changed = changed(args, record.inputs)
        record.outputs, record.outputs_same, size = describe(values, "output", subject.level, seen, record.changed)
        record.size += size
        if method == "forward" and not subject.sets_up:
            record.kept, size = reading_ctx.read_ctx(reading_ctx.innermost(args[0]), seen, subject.level)
            record.size += size
        elif method == "backward" and record.forward is not None:
            self.ring.links[record.ctx_id] = (record.forward, not internals.keep_graph())

    def _close(self, record: Record, state: ThreadState) -> None:
        """Take the call off the stack, with whatever an interrupt left above it, and put it into the ring."""
        if record.closed:
            return
        record.closed = True
        stack = state.stack
        if stack and stack[-1] is record:
            stack.pop()
        elif record in stack:
            del stack[stack.index(record) :]
        if record.method != "forward" or record.exception is not None or not record.subject.sets_up:
            record.seen = None  # else setup_context takes it over
        if record.stdout:
            record.size += sum(map(len, record.stdout))
        record.size += 700
        self.ring.add(record.packed())


def _new_seen() -> Seen:
    return {}


def _seen_before(state: ThreadState, record: Record) -> Seen:
    """What forward met, for its setup_context: the same objects need not be described again."""
    forward = state.last_forward.get(record.subject.number)
    if forward is None or forward.seen is None:
        return {}
    seen, forward.seen = forward.seen, None
    return seen


def _caller_line(frame: FrameType | None) -> int | None:
    """The line of the user's code that called; None when a check or report of ours did."""
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
    return None if frame is None or frame.f_code.co_filename.startswith(_OURS) else frame.f_lineno
