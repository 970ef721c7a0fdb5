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
from nbautograd.core.recording.ring import Ring
from nbautograd.core.recording.snapshot import PLAIN_TYPES, Raw, RawTensor, raw
from nbautograd.core.recording.state import Record, Subject, ThreadState, local

_NOT_THE_USERS = (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_FORWARD = ("forward", "setup_context")


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
            record = Record(subject, method, self.ring.next_index(), subject.level, state.name)
            self._identify(record, args, state)
            if internals.function_mode_active():
                with internals.disable_torch_function():
                    self._inputs(record, args)
            else:
                self._inputs(record, args)
            prints.follow()
            self.ring.append(record)
            state.stack.append(record)
            record.seconds = perf_counter()
        except Exception as error:
            self.note(error)
            return None
        return record

    def end(self, record: Record, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """The method returned."""
        now = perf_counter()
        try:
            record.seconds = now - record.seconds
            if internals.function_mode_active():
                with internals.disable_torch_function():
                    self._outputs(record, args, result, state)
            else:
                self._outputs(record, args, result, state)
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
            record.ctx_id = state.armed_ctx
            record.caller_line = _caller_line(sys._getframe(3))
            if record.ctx_id:
                self.ring.links[record.ctx_id] = (record.index, False)
            state.last_forward[record.subject] = record
        elif record.method != "vmap":
            self._link(record, reading_ctx.innermost(args[0]) if args else None, state)

    def _link(self, record: Record, ctx: Any, state: ThreadState) -> None:
        record.ctx_id = id(ctx)
        if record.method == "setup_context":  # under torch.func it runs once more, with the ctx of the outer level
            last = state.last_forward.get(record.subject)
            if last is not None:
                record.forward = last.index
                self.ring.links[record.ctx_id] = (last.index, False)
        else:
            index, record.freed = self.ring.links.get(record.ctx_id, (None, False))
            record.forward = index
        if record.method == "backward":
            record.create_graph = torch.is_grad_enabled()

    def _inputs(self, record: Record, args: tuple[Any, ...]) -> None:
        takes_ctx = record.method != "forward" or "setup_context" not in record.subject.methods.codes
        values = args[1:] if takes_ctx else args
        if record.method == "backward" and len(values) == 1 and type(values[0]) is list:
            values = tuple(values[0])  # boxed_grads_call
        if record.method == "setup_context":
            values = tuple(item for value in values for item in (value if isinstance(value, tuple) else (value,)))
        seen: dict[int, tuple[str, Raw]] = {}
        if record.method == "setup_context" and record.forward is not None:
            seen.update(_seen_before(local.state, record))
        record.inputs, same = describe_all(values, "input", record.level, seen)
        record.inputs_same = tuple("" if place == f"input {i}" else place for i, place in enumerate(same))
        record.seen = seen

    def _outputs(self, record: Record, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        record.single = not isinstance(result, (tuple, list))
        values = (result,) if record.single else tuple(result)
        seen = record.seen if record.seen is not None else {}
        record.changed = _changed(record, args)
        if record.method == "setup_context":
            values = ()
        record.outputs, record.outputs_same = describe_all(values, "output", record.level, seen, record.changed)
        takes_ctx = record.method == "setup_context" or "setup_context" not in record.subject.methods.codes
        if record.method in _FORWARD and takes_ctx and args:
            record.kept = reading_ctx.read_ctx(reading_ctx.innermost(args[0]), seen, record.level)
            forward = state.last_forward.get(record.subject)
            if record.method == "setup_context" and forward is not None and forward.index == record.forward:
                forward.kept = record.kept
        if record.method == "backward" and record.forward is not None:
            self.ring.links[record.ctx_id] = (record.forward, not internals.keep_graph())

    def _close(self, record: Record, state: ThreadState) -> None:
        """Take the call off the stack, whatever an interrupt left above it, and let the ring count it."""
        if record in state.stack:
            del state.stack[state.stack.index(record) :]
        if record.method != "forward" or "setup_context" not in record.subject.methods.codes:
            record.seen = None
        record.done = True
        self.ring.charge(record, _size(record))


def describe_all(
    values: tuple[Any, ...], kind: str, level: int, seen: dict[int, tuple[str, Raw]], changed: tuple[int, ...] = ()
) -> tuple[tuple[Raw, ...], tuple[str, ...]]:
    """Describe values in order; one that was seen before in this call keeps its description and says which it is.

    Args:
        values: what to describe.
        kind: ``"input"`` or ``"output"``, for the ids that later values refer to.
        level: how much to keep.
        seen: by id, what this call has met; grows.
        changed: positions of inputs that were changed in place, whose old description no longer holds.
    """
    described: list[Raw] = []
    same: list[str] = []
    for position, value in enumerate(values):
        before = seen.get(id(value)) if isinstance(value, torch.Tensor) else None
        if before is not None:
            stale = bool(changed) and before[0] in {f"input {i}" for i in changed}
            described.append(raw(value, level) if stale else before[1])
            same.append(before[0])
        else:
            plain = type(value) in PLAIN_TYPES
            one = raw(value, level)
            described.append(one)
            same.append("")
            if plain or isinstance(value, torch.Tensor):
                seen[id(value)] = (f"{kind} {position}", one)
    return tuple(described), tuple(same)


def _seen_before(state: ThreadState, record: Record) -> dict[int, tuple[str, Raw]]:
    """What forward met, for its setup_context: the same objects need not be described again."""
    forward = state.last_forward.get(record.subject)
    seen = forward.seen if forward is not None else None
    if forward is not None:
        forward.seen = None
    return seen or {}


def _changed(record: Record, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Positions of the inputs whose version counter moved while the method ran."""
    values = args[len(args) - len(record.inputs) :]
    boxed = record.method == "backward" and len(args) == 2 and type(args[1]) is list
    if record.method == "setup_context" or boxed or len(values) != len(record.inputs):
        return ()
    return tuple(
        i
        for i, (value, before) in enumerate(zip(values, record.inputs, strict=True))
        if type(before) is RawTensor and before.version is not None and value._version != before.version
    )


def _caller_line(frame: FrameType | None) -> int | None:
    """The line of the nearest frame that is neither ours nor torch's."""
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None


def _size(record: Record) -> int:
    """Bytes that a record takes, estimated."""
    kept = record.kept
    raws = (*record.inputs, *record.outputs, *(() if kept is None else (*kept.saved, *kept.attributes.values())))
    data = sum(len(one.data) for one in raws if type(one) is RawTensor and one.data is not None)
    printed = sum(map(len, record.stdout)) if record.stdout else 0
    return 700 + 250 * len(raws) + data + printed
