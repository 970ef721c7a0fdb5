"""The recorder: one begin and one end for every recorded call, with hooks for what differs by method.

``recording_wrapper`` runs the user's method between the two. Nothing of a tensor is kept, no torch operation is run
that anybody notices, and an error of our own is counted and listed and never reaches the user's run.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

import torch

from nbautograd.core import stumbles
from nbautograd.core.recording.prints import hear, leave_prints
from nbautograd.core.recording.record import (
    EVERY,
    CallRecord,
    CallRing,
    CtxLink,
    CtxRecord,
    InstrumentedFunction,
    ThreadState,
    local,
    value_around,
)
from nbautograd.core.recording.snapshot import (
    PLAIN_TYPES,
    SHAPES,
    SUMMARY,
    VALUES,
    CallSnapshots,
    Snapshot,
    TensorSnapshot,
    changed_elements,
    is_whole_copy,
    name_of,
    safe_text,
    snapshots,
)
from nbautograd.core.stumbles import record
from nbautograd.core.torch_private import ctx as private_ctx
from nbautograd.core.torch_private import tensors as private

_tracing, _modes = private.tracing, private.function_mode_active
_get_frame = sys._getframe
_PLAIN = tuple(PLAIN_TYPES)


class Recorder:
    """State that the recorders of all methods share.

    Attributes:
        cell: execution count of the notebook cell that is running, or None.
        errors: what went wrong inside the recorder: text -> how often.
    """

    def __init__(self, ring: CallRing) -> None:
        self.ring = ring
        self.cell: int | None = None
        self.errors: dict[str, int] = {}

    def note(self, error: Exception) -> str:
        """Count an error of our own, and return its text."""
        if not isinstance(error, RecursionError):  # the program's own depth
            record(error, "recording")
        text = f"{type(error).__name__}: {stumbles.said(error)}"
        self.errors[text] = self.errors.get(text, 0) + 1
        return text


class MethodRecorder:
    """Records the calls of one method of one Function; this class itself those of jvp and vmap."""

    def __init__(self, function: InstrumentedFunction, method: str, recorder: Recorder) -> None:
        self.function, self.method, self.recorder = function, method, recorder
        self.ring = recorder.ring
        self.links = recorder.ring.links
        self.several = (tuple,) if function.operation else (tuple, list)  # kinds of what is returned that are many

    def begin(self, args: tuple[Any, ...], state: ThreadState) -> CallRecord | None:
        """Take down what a method is given.

        Returns:
            What ``end`` and ``fail`` want; None when the call is not recorded.
        """
        if _modes():
            with private.disable_torch_function():  # no mode of the user's hears what tensors are asked
                return self.begin(args, state)
        function = self.whose(state)
        if function is None or not function.level or state.paused or _tracing():
            self.links.pop(state.armed_ctx, None)  # an older ctx had the same id
            return None
        try:
            around = state.stack[-1].index if state.stack else None
            record = CallRecord(
                self.ring.next_index(), function, self.method, around, state.name, self.recorder.cell,
                function.next_number(), CallSnapshots(),
            )  # fmt: skip
            self.link(record, args, state)
            record.inputs = self.argument_snapshots(self.arguments(args), record)
        except Exception as error:
            self.recorder.note(error)
            return None
        state.stack.append(record)
        try:
            hear(record, state)
        except Exception as error:
            self.recorder.note(error)
        record.began = perf_counter()
        return record

    def end(self, record: CallRecord, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """Take down what a method returned and left behind."""
        record.seconds = record.seconds or perf_counter() - record.began
        if _modes():
            with private.disable_torch_function():
                self.end(record, args, result, state)
            return
        try:
            values = result if type(result) in self.several else (result,)
            self.observe(record, args, values)
            self.leave(record, args, values, state)
        except Exception as error:
            record.missing = self.recorder.note(error)
        self.close(record, state)

    def fail(self, record: CallRecord, args: tuple[Any, ...], error: BaseException, state: ThreadState) -> None:
        """Take down that a method raised."""
        record.seconds = perf_counter() - record.began
        kind = name_of(type(error))
        try:
            text = safe_text(error)
            record.strided = self.strided(args)
        except Exception as ours:
            record.missing, text = self.recorder.note(ours), ""
        record.exception = f"{kind}: {text}" if text else kind
        self.close(record, state)

    def close(self, record: CallRecord, state: ThreadState) -> None:
        """Take a call off the stack and put its record into the ring."""
        leave_prints(record, state)
        stack = state.stack
        if stack and stack[-1] is record:
            stack.pop()
        elif any(record is running for running in stack):
            while stack.pop() is not record:
                pass
        else:  # ``abandon`` has closed it meanwhile
            return
        try:
            record.finish()
            self.ring.add(record)
            if not record.index % EVERY or record.function.level == VALUES:
                self.ring.settle()
        except Exception as error:  # ours, never the user's
            self.recorder.note(error)

    def whose(self, state: ThreadState) -> InstrumentedFunction | None:
        """Return the Function whose call begins, None for one that is not recorded."""
        return self.function

    def arguments(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return what a call is given besides ctx."""
        return args[1:]

    def argument_snapshots(self, arguments: Sequence[Any], record: CallRecord) -> tuple[Snapshot, ...]:
        """Take snapshots of what the call is given."""
        return snapshots(arguments, record.function.level, record.known)

    def link(self, record: CallRecord, args: tuple[Any, ...], state: ThreadState) -> None:
        """Hook of ``begin``: tie the call to the forward whose ctx it gets."""
        if self.method == "jvp":
            link = self.links.get(id(private_ctx.innermost(args[0])))
            if link is not None and link.function is self.function:
                record.forward = link.forward

    def observe(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any]) -> None:
        """Hook of ``end``, before the outputs are taken down: notice what only this moment can tell."""

    def leave(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any], state: ThreadState) -> None:
        """Hook of ``end``: take down the outputs, and what is on ctx."""
        record.outputs = snapshots(values, record.function.level, record.known)

    def strided(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Hook of ``fail``: return the positions of the gradients that were not contiguous."""
        return ()

    def note_changes(self, record: CallRecord, arguments: Sequence[Any]) -> None:
        """Note the inputs that are not what they were; where they appear again, they get a snapshot anew."""
        changed: list[int] = []
        for i, before in enumerate(record.inputs):
            if before.version is not None and arguments[i]._version != before.version:
                changed.append(i)
        if record.method in record.function.writes_unseen:
            same = [i for i, before in enumerate(record.inputs) if i not in changed and is_whole_copy(before)]
            others = changed_elements([(arguments[i], record.inputs[i]) for i in same])  # type: ignore[misc]
            changed += [i for i, other in zip(same, others, strict=True) if other]
        for i in changed:
            assert record.known is not None
            record.known.pop(id(arguments[i]), None)
        if changed:
            record.changed = tuple(changed)

    def note_class_state(self, record: CallRecord) -> None:
        """Record a fingerprint of each class attribute that is no method, to detect later changes."""
        cls = record.function.cls if record.function.keeps_state else None
        if cls is not None:
            state = {name: value for name, value in vars(cls).items() if _is_state(name, value)}
            record.class_state = {name: (id(value), _mark(value)) for name, value in state.items()}

    def take_down(self, record: CallRecord, outputs: Sequence[Any], ctx: Any) -> None:
        """Take down the outputs of a method and what it left on ctx, all elements in one copy."""
        saved, put = private_ctx.to_save(ctx), private_ctx.attributes(ctx)
        taken = snapshots((*outputs, *saved, *put.values()), record.function.level, record.known)
        split = len(outputs) + len(saved)
        record.outputs = taken[: len(outputs)]
        record.ctx = CtxRecord(
            taken[len(outputs) : split],
            dict(zip(put, taken[split:], strict=True)) if put else {},
            getattr(ctx, "needs_input_grad", None) or (),
            private_ctx.marked(ctx, "dirty_tensors"),
            private_ctx.marked(ctx, "non_differentiable"),
            private_ctx.take_materialize_grads(ctx),
        )


class ForwardRecorder(MethodRecorder):
    """Records the calls of forward.

    Attributes:
        returned: called when forward has returned and PyTorch looks setup_context up next.
    """

    returned: Callable[[], None] | None = None

    def __init__(self, function: InstrumentedFunction, method: str, recorder: Recorder) -> None:
        super().__init__(function, method, recorder)
        code = function.function("forward")
        own = frozenset(code.__code__.co_varnames) if code is not None else frozenset()
        self.around = code
        self.names = tuple(function.names("forward") - own) if code is not None else ()

    def arguments(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return what forward is given besides ctx."""
        return args if self.function.sets_up else args[1:]

    def link(self, record: CallRecord, args: tuple[Any, ...], state: ThreadState) -> None:
        """Tie the ctx that was just made to this call."""
        ctx, state.armed_ctx = state.armed_ctx, 0
        if ctx:
            self.links[ctx] = CtxLink(self.function, record.index)
        if self.function.sets_up:
            state.last_forward[self.function.number] = (record.index, None)
        record.caller, state.transformed = caller(_get_frame(3))  # of the wrapper that called begin

    def observe(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any]) -> None:
        """Note inputs that changed, and tensors that came in otherwise than as arguments."""
        arguments = self.arguments(args)
        self.note_changes(record, arguments)
        self.note_class_state(record)
        if self.around is not None:
            for name in self.names:
                value = value_around(self.around, name)
                if type(value) in _PLAIN and value.requires_grad and not any(value is one for one in arguments):
                    record.hidden += (name,)

    def leave(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any], state: ThreadState) -> None:
        """Take down the outputs and ctx, or leave ctx to setup_context."""
        if self.function.sets_up:
            super().leave(record, args, values, state)
            state.last_forward[self.function.number] = (record.index, record.known)
            if self.returned is not None:
                state.pending = self.function
                self.returned()
        else:
            self.take_down(record, values, args[0])


class SetupRecorder(MethodRecorder):
    """Records the calls of setup_context, which takes over what forward has taken down.

    Attributes:
        begun: called when setup_context begins; with an inherited setup_context it tells which subclass the call is
            of: the one whose forward has just returned in this thread.
    """

    begun: Callable[[], None] | None = None

    def whose(self, state: ThreadState) -> InstrumentedFunction | None:
        """Return the Function whose setup_context begins; None for that of a class that is not recorded."""
        if self.begun is None:
            return self.function
        self.begun()
        function, state.pending = state.pending, None
        return function

    def arguments(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return forward's inputs, then its outputs."""
        return (*args[1], *(args[-1] if type(args[-1]) is tuple else (args[-1],)))

    def link(self, record: CallRecord, args: tuple[Any, ...], state: ThreadState) -> None:
        """Tie ctx to the forward before."""
        number = record.function.number
        record.forward, known = state.last_forward.get(number, (None, None))
        record.setup_inputs = len(args[1])
        if record.forward is not None:  # under torch.func it runs once more, with the ctx of the outer level
            state.last_forward[number] = (record.forward, None)
            self.links[id(private_ctx.innermost(args[0]))] = CtxLink(record.function, record.forward)
        if known is not None:
            record.known, known.copied = known, 0  # forward's copies are in the weight of forward's record

    def observe(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any]) -> None:
        """Note inputs and outputs of forward that changed."""
        self.note_changes(record, self.arguments(args))
        self.note_class_state(record)

    def leave(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any], state: ThreadState) -> None:
        """Read ctx; setup_context returns nothing."""
        self.take_down(record, (), private_ctx.innermost(args[0]))


class BackwardRecorder(MethodRecorder):
    """Records the calls of backward."""

    def __init__(self, function: InstrumentedFunction, method: str, recorder: Recorder) -> None:
        super().__init__(function, method, recorder)
        self.rereads = "backward" in function.writes_unseen
        self.writes = self.rereads or function.may_write_in_place("backward")
        self.returned: list[tuple[weakref.ref[Any], int]] = []  # gradients and their versions

    def link(self, record: CallRecord, args: tuple[Any, ...], state: ThreadState) -> None:
        """Find the forward whose ctx this is."""
        ctx = args[0]
        if type(ctx) is not self.function.backward_class():
            ctx = private_ctx.innermost(ctx)
        record.create_graph = torch.is_grad_enabled()
        link = self.links.get(id(ctx))
        if link is None or link.function is not self.function:
            return
        link.runs += 1
        if link.first_run is None:
            link.first_run = record.index
        record.forward, record.freed, record.run, record.first = link.forward, link.freed, link.runs, link.first_run
        link.freed = link.freed or not private.keep_graph()

    def argument_snapshots(self, arguments: Sequence[Any], record: CallRecord) -> tuple[Snapshot, ...]:
        """Take snapshots of the gradients; those in a list (``boxed_grads_call``) may be gone before the end."""
        if len(arguments) == 1 and type(arguments[0]) is list:
            assert record.known is not None
            record.boxed, boxed = True, snapshots(arguments[0], record.function.level, record.known)
            record.known.clear()
            for one in boxed:
                if isinstance(one, TensorSnapshot):
                    one.key = 0
            return boxed
        return super().argument_snapshots(arguments, record)

    def observe(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any]) -> None:
        """Note gradients or saved tensors that changed."""
        if not (len(args) == 2 and type(args[1]) is list):
            self.note_changes(record, args[1:])
        self.note_class_state(record)
        # an augmented assignment is not among the names, and torch itself refuses the next backward after it
        saved = private_ctx.raw_saved(args[0]) if self.writes else None
        if saved and all(tensor is None or type(tensor) in _PLAIN for tensor in saved):
            # what cannot be written unseen tells by its version
            level, apart = min(self.function.level, SUMMARY if self.rereads else SHAPES), CallSnapshots()
            record.saved_after = snapshots(saved, level, apart)
            if record.known is not None:
                record.known.copied += apart.copied

    def leave(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any], state: ThreadState) -> None:
        """Take down the gradients, and which of them an earlier call returned and something wrote to since."""
        super().leave(record, args, values, state)
        # a gradient that was never written in place is no buffer
        for i, version in [(i, taken.version) for i, taken in enumerate(record.outputs) if taken.version]:
            gradient = values[i]
            if any(before() is gradient and version > then for before, then in self.returned):
                record.reused += (i,)
            alive = [one for one in self.returned if one[0]() is not None and one[0]() is not gradient]
            self.returned = [*alive[-15:], (weakref.ref(gradient), version)]

    def strided(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Return the positions of the gradients that were not contiguous."""
        return tuple(i for i, g in enumerate(args[1:]) if type(g) in _PLAIN and not g.is_contiguous())


_RECORDERS = {"forward": ForwardRecorder, "setup_context": SetupRecorder, "backward": BackwardRecorder}


def method_recorder(function: InstrumentedFunction, method: str, recorder: Recorder) -> MethodRecorder:
    """Return the recorder for one method of one Function; ``vjp`` is another name of ``backward``."""
    method = "backward" if method == "vjp" else method
    return _RECORDERS.get(method, MethodRecorder)(function, method, recorder)


def recording_wrapper(method: Callable[..., Any], recorder: MethodRecorder) -> Callable[..., Any]:
    """Return a function that runs the user's and has the call recorded; it takes itself out of tracebacks."""
    begin, end, fail = recorder.begin, recorder.end, recorder.fail

    def run(*given: Any, **named: Any) -> Any:  # by name PyTorch passes only to operations of ``torch.library``:
        __tracebackhide__ = True
        args = (*given, *named.values()) if named else given  # everything, or what is keyword-only
        state: ThreadState = local.state
        stack = state.stack
        depth = len(stack)
        try:
            record = begin(args, state)
            if named and given and record is not None:
                record.keywords = tuple(named)
            try:
                result = method(*given, **named)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                if record is not None:
                    fail(record, args, error, state)
                raise
            if record is not None:
                end(record, args, result, state)
            return result
        finally:
            if len(stack) > depth:  # an interrupt came while we were at work
                abandon(state, recorder.ring, depth)

    return run


def abandon(state: ThreadState, ring: CallRing, depth: int = 0) -> None:
    """Close the calls that an interrupt left open above a depth of a thread's stack: a later one had a dead parent."""
    while len(state.stack) > depth:
        record: CallRecord = state.stack.pop()
        leave_prints(record, state)
        record.finish()
        record.seconds = record.seconds or (perf_counter() - record.began if record.began else 0.0)
        record.exception = record.exception or "KeyboardInterrupt"
        ring.add(record)


def caller(frame: FrameType | None) -> tuple[tuple[CodeType, int] | None, bool]:
    """Return the user's code that called apply and where in it, and True when a transform of ``torch.func`` is between.

    There is no code of the user's when a check of ours called.
    """
    transformed = False
    while frame is not None:
        code = frame.f_code
        kind = _FILES[code.co_filename]
        if kind >= _USERS:
            return ((code, frame.f_lasti) if kind == _USERS else None), transformed
        transformed = transformed or kind == _TRANSFORM
        frame = frame.f_back
    return None, transformed


_BETWEEN, _TRANSFORM, _USERS, _OURS = range(4)
_TRANSFORMS = private_ctx.machinery()[1]
_TORCH_AND_RECORDING = (os.path.dirname(torch.__file__), os.path.dirname(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


class _Files(dict[str, int]):
    """By file name: whether its code stands between a call and its caller, as a transform or otherwise, or calls."""

    def __missing__(self, name: str) -> int:
        if len(self) > 4096:
            self.clear()
        inside = _BETWEEN if name.startswith(_TORCH_AND_RECORDING) else _OURS if name.startswith(_PACKAGE) else _USERS
        self[name] = inside = _TRANSFORM if name in _TRANSFORMS else inside
        return inside


_FILES = _Files()


def _is_state(name: str, value: Any) -> bool:
    if name.startswith(("__", "_backward_cls")) or name == "generate_vmap_rule":
        return False
    return not hasattr(type(value), "__get__")


def _mark(value: Any) -> Any:
    """Return what changes with a value of a class: a tensor's version, a plain value itself."""
    if type(value) in _PLAIN:
        return value._version
    return value if type(value) in (int, float, bool, str) else 0


private.skip_in_dynamo(
    MethodRecorder.begin.__code__, MethodRecorder.end.__code__, MethodRecorder.fail.__code__, with_calls=True
)
private.skip_in_dynamo(
    *[code for code in recording_wrapper.__code__.co_consts if isinstance(code, CodeType)], with_calls=False
)
