"""Writers: what is noted when a method begins and ends. One per class and method, so that nothing is looked up twice.

This is the hot path: few calls, few different questions to torch, all else when the record is read.
"""

from __future__ import annotations

import inspect
import sys
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any

import torch

from nbautograd.core import torch_internals as internals
from nbautograd.core.recording import prints
from nbautograd.core.recording.ctx_use import used_of_ctx
from nbautograd.core.recording.describing import changed, describe
from nbautograd.core.recording.reading_ctx import innermost, read_ctx
from nbautograd.core.recording.recorder import Recorder, caller
from nbautograd.core.recording.ring import EVERY
from nbautograd.core.recording.snapshot import VALUES
from nbautograd.core.recording.state import (
    ASIDE,
    BEGAN,
    CTX,
    GIVEN,
    KNOWN,
    MORE,
    NUMBER,
    WRITER,
    Open,
    Packed,
    Subject,
    ThreadState,
)
from nbautograd.core.source import as_written

_get_frame = sys._getframe
_tracing, _modes = internals.tracing_state, internals.function_mode_active
_grad_enabled, _keep_graph = torch.is_grad_enabled, internals.keep_graph
_heard = prints.heard
_PLAIN = (None, None, False, False, 0, None)  # forward, caller, create_graph, freed, run, first
Found = tuple[Any, ...]  # what a method's end tells: outputs, positions that changed, what is kept of ctx


class Writer:
    """Writes the calls of one method of one Function; this class itself those of jvp and vmap.

    Args:
        subject: the Function.
        method: as calls name it.
        recorder: where the calls go.
    """

    def __init__(self, subject: Subject, method: str, recorder: Recorder) -> None:
        self.subject, self.method, self.recorder = subject, method, recorder
        self.number = subject.number
        self.ring = recorder.ring
        self.links = recorder.ring.links
        self.next_index = recorder.ring.next_index
        self.uses = used_of_ctx(_static_code(subject.cls, method))

    def begin(self, args: tuple[Any, ...], state: ThreadState) -> Open | None:
        """The method is about to run; args as PyTorch passes them, with ctx where the method takes it."""
        if not self.subject.level or state.paused or _tracing() is not None:
            self.links.pop(state.armed_ctx, None)  # an older ctx had the same id
            return None
        stack = state.stack
        call: Open = [
            self.next_index(),
            None,
            0.0,
            (),
            {},
            _modes(),
            stack[-1][NUMBER] if stack else None,
            0,
            _PLAIN,
            self,
        ]
        try:
            if call[ASIDE]:
                with internals.disable_torch_function():
                    self._look(call, args, state)
            else:
                self._look(call, args, state)
            if prints.enabled and sys.stdout is not _heard[0]:
                prints.follow()
        except Exception as error:
            self.recorder.note(error)
            return None
        stack.append(call)
        call[BEGAN] = perf_counter()
        return call

    def end(self, call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """The method returned."""
        seconds = perf_counter() - call[BEGAN]
        missing: tuple[str, ...] = ()
        try:
            values = result if type(result) is tuple else tuple(result) if type(result) is list else (result,)
            if call[ASIDE]:
                with internals.disable_torch_function():
                    found = self._look_again(call, args, values, state)
            else:
                found = self._look_again(call, args, values, state)
        except Exception as error:
            self.recorder.note(error)
            found, missing = ((), (), None), (f"{type(error).__name__}: {error}",)
        stack = state.stack
        if stack and stack[-1] is call:
            stack.pop()
        elif not _unwind(stack, call):
            return
        try:
            self.ring.add(self._packed(call, found, seconds, None, missing, state))
            if not call[NUMBER] % EVERY or self.subject.level >= VALUES:
                self.ring.settle()
        except Exception as error:
            self.recorder.note(error)

    def fail(self, call: Open, error: BaseException, state: ThreadState) -> None:
        """The method raised."""
        seconds = perf_counter() - call[BEGAN]
        kind = type(error).__name__
        try:
            text = str(error) if error.args else ""
        except Exception as ours:
            self.recorder.note(ours)
            text = ""
        if _unwind(state.stack, call):
            try:
                told = f"{kind}: {text}" if text else kind
                self.ring.add(self._packed(call, ((), (), None), seconds, told, (), state))
                self.ring.settle()
            except Exception as ours:
                self.recorder.note(ours)

    def _look(self, call: Open, args: tuple[Any, ...], state: ThreadState) -> None:
        """Describe what the method is given."""
        if self.method == "jvp":
            call[CTX] = id(innermost(args[0]))
            link = self.links.get(call[CTX])
            if link is not None and link[1] == self.number:
                call[MORE] = (link[0], *_PLAIN[1:])
        call[GIVEN] = describe(args[1:], self.subject.level, call[KNOWN])

    def _look_again(self, call: Open, args: tuple[Any, ...], values: tuple[Any, ...], state: ThreadState) -> Found:
        """Describe what the method returned, changed and kept."""
        return describe(values, self.subject.level, call[KNOWN]), (), None

    def _packed(
        self,
        call: Open,
        found: Found,
        seconds: float,
        exception: str | None,
        missing: tuple[str, ...],
        state: ThreadState,
    ) -> Packed:
        """The record: the fields of a Recorded."""
        index, printed, _, inputs, _, _, around, ctx, (forward, called_from, create_graph, freed, run, first), _ = call
        text = "" if printed is None else "".join(printed)
        return (
            index, self.number, self.method, state.name, around, forward, inputs, *found, seconds, text, exception,
            called_from, self.recorder.cell, create_graph, freed, run, first, missing, ctx,
        )  # fmt: skip


class ForwardWriter(Writer):
    """Writes the calls of forward."""

    def _look(self, call: Open, args: tuple[Any, ...], state: ThreadState) -> None:
        call[MORE] = None, caller(_get_frame(3)), False, False, 0, None
        if state.armed_ctx:
            call[CTX], state.armed_ctx = state.armed_ctx, 0
            self.links[call[CTX]] = (call[NUMBER], self.number, False, 0, None)
        subject = self.subject
        if subject.sets_up:
            state.last_forward[self.number] = (call[NUMBER], None)
            call[GIVEN] = describe(args, subject.level, call[KNOWN])
        else:
            call[GIVEN] = describe(args[1:], subject.level, call[KNOWN])

    def _look_again(self, call: Open, args: tuple[Any, ...], values: tuple[Any, ...], state: ThreadState) -> Found:
        subject, known = self.subject, call[KNOWN]
        given = args if subject.sets_up else args[1:]
        moved = changed(given, call[GIVEN])
        for i in moved:  # described anew among the outputs
            known.pop(id(given[i]), None)
        outputs = describe(values, subject.level, known)
        if subject.sets_up:
            state.last_forward[self.number] = (call[NUMBER], known)
            state.pending = subject
            return outputs, moved, None
        return outputs, moved, read_ctx(args[0], self.uses, known, subject.level)


class SetupWriter(Writer):
    """Writes the calls of setup_context, which takes over what forward has described."""

    def _look(self, call: Open, args: tuple[Any, ...], state: ThreadState) -> None:
        index, known = state.last_forward.get(self.number, (None, None))
        ctx = call[CTX] = id(innermost(args[0]))
        if known is not None:
            call[KNOWN] = known
        if index is not None:  # under torch.func it runs once more, with the ctx of the outer level
            state.last_forward[self.number] = (index, None)
            self.links[ctx] = (index, self.number, False, 0, None)
        given, output = args[1], args[2]
        level = self.subject.level
        inputs = describe(given, level, call[KNOWN])
        call[GIVEN] = inputs + describe(output if type(output) is tuple else (output,), level, call[KNOWN])
        call[MORE] = index, None, False, False, len(inputs), None

    def _look_again(self, call: Open, args: tuple[Any, ...], values: tuple[Any, ...], state: ThreadState) -> Found:
        return (), (), read_ctx(innermost(args[0]), self.uses, call[KNOWN], self.subject.level)


class BackwardWriter(Writer):
    """Writes the calls of backward."""

    def _look(self, call: Open, args: tuple[Any, ...], state: ThreadState) -> None:
        ctx = args[0]
        key = call[CTX] = id(ctx if type(ctx) is self.subject.backward_class() else innermost(ctx))
        forward, first, freed, run = None, None, False, 0
        link = self.links.get(key)
        if link is not None and link[1] == self.number:
            forward, number, freed, run, first = link
            run, first = run + 1, call[NUMBER] if first is None else first
            self.links[key] = forward, number, freed or not _keep_graph(), run, first
        call[MORE] = forward, None, _grad_enabled(), freed, run, first
        level = self.subject.level
        if len(args) == 2 and type(args[1]) is list:  # boxed_grads_call: what it holds may be gone before the end
            call[GIVEN] = tuple((*one[:-1], 0) if len(one) > 2 else one for one in describe(args[1], level, {}))
        else:
            call[GIVEN] = describe(args[1:], level, call[KNOWN])

    def _look_again(self, call: Open, args: tuple[Any, ...], values: tuple[Any, ...], state: ThreadState) -> Found:
        known = call[KNOWN]
        moved: tuple[int, ...] = ()
        if known:
            moved = changed(args[1:], call[GIVEN])
            for i in moved:
                known.pop(id(args[i + 1]), None)
        return describe(values, self.subject.level, known), moved, None


def _static_code(cls: type | None, method: str) -> CodeType | None:
    """The code of a method whose first argument is ctx: a plain function in a staticmethod."""
    entry = as_written(inspect.getattr_static(cls, method, None))
    function = entry.__func__ if type(entry) is staticmethod else None
    return function.__code__ if type(function) is FunctionType else None


def _unwind(stack: list[Open], call: Open) -> bool:
    """Take a call off the stack, with whatever an interrupt left above it; False when it is closed already."""
    if not any(call is running for running in stack):
        return False
    while stack.pop() is not call:
        pass
    return True


def clear_open_calls(state: ThreadState) -> None:
    """Close the calls of this thread that an interrupt inside our own code left open."""
    while state.stack:
        state.stack[-1][WRITER].fail(state.stack[-1], KeyboardInterrupt(), state)


_WRITERS = {"forward": ForwardWriter, "setup_context": SetupWriter, "backward": BackwardWriter}


def writer(subject: Subject, method: str, recorder: Recorder) -> Writer:
    """The writer for one method of one Function; ``vjp`` is another name of ``backward``."""
    method = "backward" if method == "vjp" else method
    return _WRITERS.get(method, Writer)(subject, method, recorder)


for _kind in (Writer, *_WRITERS.values()):
    for _method in (_kind.begin, _kind.end, _kind.fail, _kind._look, _kind._look_again):
        internals.skip_in_dynamo(_method.__code__, with_calls=True)
