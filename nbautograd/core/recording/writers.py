"""The writers of forward, setup_context and backward, and which writer a method gets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import perf_counter
from types import FrameType
from typing import Any

import torch

from nbautograd.core.recording import prints
from nbautograd.core.recording.describing import COPIED, DESCRIBE, Known
from nbautograd.core.recording.reading_ctx import innermost, read_ctx
from nbautograd.core.recording.recorder import Recorder, caller, who_called
from nbautograd.core.recording.snapshot import Raw
from nbautograd.core.recording.state import BEGAN, GIVEN, KNOWN, NUMBER, Noticed, Open, Subject, ThreadState
from nbautograd.core.recording.writer import Writer, without_modes
from nbautograd.core.torch_private import tensors as internals

_tracing, _modes = internals.tracing, internals.function_mode_active
_grad_enabled, _keep_graph = torch.is_grad_enabled, internals.keep_graph
_heard = prints.heard
_get_frame = sys._getframe


class ForwardWriter(Writer):
    """Writes the calls of forward."""

    def begin(self, args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        """As ``Writer.begin``; ties ctx to this call."""
        level = self.subject.level
        if not level or state.paused or _tracing():
            self.unseen(state)
            return None
        if _modes() and not state.aside:
            return without_modes(state, self.begin, args, state, frame or _get_frame(2))
        try:
            index, ctx, stack = self.next_index(), state.armed_ctx, state.stack
            known: Known = {}
            if ctx:
                state.armed_ctx = 0
                self.links[ctx] = (index, self.number, False, 0, None)
            if self.sets_up:
                state.last_forward[self.number] = (index, None)
                given = DESCRIBE[level](args, known)
            else:
                given = DESCRIBE[level](args[1:], known)
            call: Open = [
                index, None, 0.0, self, given, known, stack[-1][NUMBER] if stack else None, ctx,
                None, who_called() if frame is None else caller(frame), False, False, 0, None,
            ]  # fmt: skip
        except Exception as error:
            self.recorder.note(error)
            return None
        if prints.enabled and sys.stdout is not _heard[0]:
            prints.follow()
        state.stack.append(call)
        call[BEGAN] = perf_counter()
        return call

    def end(self, call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """As ``Writer.end``."""
        seconds = perf_counter() - call[BEGAN]
        if _modes() and not state.aside:
            return without_modes(state, self.end, call, args, result, state)
        try:
            values = result if type(result) is tuple or type(result) is list else (result,)
            self.describe_given(call, args)
            level, known, kept = self.subject.level, call[KNOWN], None
            watch = self.watch
            noticed: Noticed = watch.forward(args, result, call) if watch.awake else ()
            outputs = DESCRIBE[level](values, known)
            if self.sets_up:
                state.last_forward[self.number] = (call[NUMBER], known)
                state.pending = self.subject
            else:
                kept = read_ctx(args[0], self.uses, known, level)
            if self.quick:
                self._learn(call, args, values, (*call[GIVEN], *outputs), kept)
        except Exception as error:
            return self.incomplete(call, seconds, error, state)
        return self._close(call, outputs, noticed, kept, seconds, state)

    def _learn(
        self, call: Open, args: tuple[Any, ...], values: Sequence[Any], raws: tuple[Raw, ...], kept: Any
    ) -> None:
        """Remember how the values of this call looked, and what it saved."""
        met = (*self.given(args), *values)
        if kept is not None and type(saved := args[0].to_save) is tuple:
            met, raws = met + saved, raws + kept[0]
        self.forms.learn(met, len(call[GIVEN]), len(values), raws, self.subject.level, call[NUMBER])

    def given(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """As ``Writer.given``."""
        return args if self.sets_up else args[1:]


class SetupWriter(Writer):
    """Writes the calls of setup_context, which takes over what forward has described."""

    def given(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """As ``Writer.given``."""
        return (*args[1], *(args[2] if type(args[2]) is tuple else (args[2],)))

    def begin(self, args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        """As ``Writer.begin``; ties ctx to the forward before."""
        level = self.subject.level
        if not level or state.paused or _tracing():
            self.unseen(state)
            return None
        if _modes() and not state.aside:
            return without_modes(state, self.begin, args, state, frame)
        try:
            index, taken = state.last_forward.get(self.number, (None, None))
            ctx = id(innermost(args[0]))
            if index is not None:  # under torch.func it runs once more, with the ctx of the outer level
                state.last_forward[self.number] = (index, None)
                self.links[ctx] = (index, self.number, False, 0, None)
            known: Known = {} if type(taken) is not dict else taken
            known.pop(COPIED, None)  # forward has counted them
            inputs, stack = DESCRIBE[level](args[1], known), state.stack
            given = inputs + DESCRIBE[level](args[2] if type(args[2]) is tuple else (args[2],), known)
            call: Open = [
                self.next_index(), None, 0.0, self, given, known, stack[-1][NUMBER] if stack else None, ctx,
                index, None, False, False, len(inputs), None,
            ]  # fmt: skip
        except Exception as error:
            self.recorder.note(error)
            return None
        if prints.enabled and sys.stdout is not _heard[0]:
            prints.follow()
        state.stack.append(call)
        call[BEGAN] = perf_counter()
        return call

    def end(self, call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """As ``Writer.end``."""
        seconds = perf_counter() - call[BEGAN]
        if _modes() and not state.aside:
            return without_modes(state, self.end, call, args, result, state)
        try:
            self.describe_given(call, args)
            kept = read_ctx(innermost(args[0]), self.uses, call[KNOWN], self.subject.level)
            watch = self.watch
            noticed: Noticed = watch.setup(args, call) if watch.awake else ()
        except Exception as error:
            return self.incomplete(call, seconds, error, state)
        return self._close(call, (), noticed, kept, seconds, state)


class BackwardWriter(Writer):
    """Writes the calls of backward."""

    def begin(self, args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        """As ``Writer.begin``; finds the forward whose ctx this is."""
        level = self.subject.level
        if not level or state.paused or _tracing():
            self.unseen(state)
            return None
        if _modes() and not state.aside:
            return without_modes(state, self.begin, args, state, frame)
        try:
            ctx, index, stack = args[0], self.next_index(), state.stack
            known: Known = {}
            key = id(ctx if type(ctx) is self.subject.backward_class() else innermost(ctx))
            forward, first, freed, run = None, None, False, 0
            link = self.links.get(key)
            if link is not None and link[1] == self.number:
                forward, number, freed, run, first = link
                run, first = run + 1, index if first is None else first
                self.links[key] = forward, number, freed or not _keep_graph(), run, first
            if len(args) == 2 and type(args[1]) is list:  # boxed_grads_call: what it holds may be gone before the end
                given = self.given_boxed(args[1], DESCRIBE[level])
            else:
                given = DESCRIBE[level](args[1:], known)
            call: Open = [
                index, None, 0.0, self, given, known, stack[-1][NUMBER] if stack else None, key,
                forward, None, _grad_enabled(), freed, run, first,
            ]  # fmt: skip
        except Exception as error:
            self.recorder.note(error)
            return None
        if prints.enabled and sys.stdout is not _heard[0]:
            prints.follow()
        state.stack.append(call)
        call[BEGAN] = perf_counter()
        return call

    def end(self, call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """As ``Writer.end``."""
        seconds = perf_counter() - call[BEGAN]
        if _modes() and not state.aside:
            return without_modes(state, self.end, call, args, result, state)
        try:
            values = result if type(result) is tuple or type(result) is list else (result,)
            self.describe_given(call, args)
            watch, level = self.watch, self.subject.level
            noticed: Noticed = watch.backward(args, result, call) if watch.awake else ()
            outputs = DESCRIBE[level](values, call[KNOWN])
            if self.quick:
                met, raws = (*args[1:], *values), (*call[GIVEN], *outputs)
                self.forms.learn(met, len(args) - 1, len(values), raws, level, call[NUMBER])
        except Exception as error:
            return self.incomplete(call, seconds, error, state)
        return self._close(call, outputs, noticed, None, seconds, state)


_WRITERS = {"forward": ForwardWriter, "setup_context": SetupWriter, "backward": BackwardWriter}


def writer(subject: Subject, method: str, recorder: Recorder) -> Writer:
    """The writer for one method of one Function; ``vjp`` is another name of ``backward``."""
    method = "backward" if method == "vjp" else method
    return _WRITERS.get(method, Writer)(subject, method, recorder)


for _kind in (Writer, *_WRITERS.values()):
    for _method in (_kind.begin, _kind.end):
        internals.skip_in_dynamo(_method.__code__, with_calls=True)
