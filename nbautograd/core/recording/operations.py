"""Operations of ``torch.library``: their calls are recorded as those of the Function that their functions make up.

torch makes a Function of its own for each, with a ctx of that Function's, and gets the user's functions from the
definition whenever it calls them; there it is given the ordinary recording wrappers.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from nbautograd.core.recording.record import CallRecord, CtxLink, InstrumentedFunction, ThreadState, local
from nbautograd.core.recording.recorder import (
    ForwardRecorder,
    MethodRecorder,
    Recorder,
    SetupRecorder,
    method_recorder,
    recording_wrapper,
)
from nbautograd.core.torch_private import ctx as private_ctx
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private import tensors as private


class OperationCalls:
    """Gives torch the recording wrappers of one operation's functions; see ``library.look_before``.

    Args:
        definition: the operation's; held weakly.
        function_for: gives how the Function is recorded that the operation's functions make up, in the place of the
            one before.
        recorder: where the records go.
    """

    def __init__(
        self,
        definition: Any,
        function_for: Callable[[type, type | None], InstrumentedFunction],
        recorder: Recorder,
    ) -> None:
        self._definition = weakref.ref(definition)
        self._function_for, self._recorder = function_for, recorder
        self._registered: tuple[Any, ...] = ()
        self._function: InstrumentedFunction | None = None
        self._torchs: weakref.WeakSet[type] = weakref.WeakSet()
        self._wrappers: dict[tuple[str, int], tuple[Any, Any]] = {}

    def __call__(self, method: str, original: Any) -> Any:
        """Return what torch shall call in the place of a function, itself where nothing is recorded."""
        if local.state.paused or (original is None and method != "setup_context"):
            return original
        try:
            definition = self._definition()
            registered = library.registered(definition)
            if registered != self._registered:
                cls, before = library.recorded_as(definition), self._function
                if cls is not None:
                    self._function = self._function_for(cls, None if before is None else before.cls)
                self._wrappers.clear()
                self._registered = registered
            function = self._function
            if function is None:
                return original
            tracing = private.compiling()
            function.compiled = function.compiled or tracing
            if tracing or not function.level:
                return original
            known = self._wrappers.get((method, id(original)))
            if known is None:
                known = self._wrappers[method, id(original)] = (original, self._wrapper(function, method, original))
            return known[1]
        except Exception as error:  # ours, never the user's
            self._recorder.note(error)
            return original

    def leave(self) -> None:
        """Undo what was done to the Functions that torch made."""
        for cls in self._torchs:
            private_ctx.leave_materialize_grads(cls)

    def _wrapper(self, function: InstrumentedFunction, method: str, original: Any) -> Any:
        if method == "setup_context":
            setup = OperationSetupRecorder(function, method, self._recorder)
            setup.torchs = self._torchs
            if original is None:
                return setup.tie
            recorder: MethodRecorder = setup
        elif method == "forward":
            library.import_first(original)
            recorder = OperationForwardRecorder(function, method, self._recorder)
        else:
            recorder = method_recorder(function, method, self._recorder)
        return functools.update_wrapper(recording_wrapper(original, recorder), original)


class OperationForwardRecorder(ForwardRecorder):
    """Records the calls of an operation's implementation, and what it made: the next setup_context may be another's."""

    def leave(self, record: CallRecord, args: tuple[Any, ...], values: Sequence[Any], state: ThreadState) -> None:
        """Take down the outputs, and what tells them from those of the forward that torch runs on meta tensors."""
        super().leave(record, args, values, state)
        if record.known is not None:
            record.known.own_outputs = _marks(values)


class OperationSetupRecorder(SetupRecorder):
    """Records the calls of an operation's setup_context, which may come without the user's forward before it.

    On meta tensors torch runs another forward; without grad it runs forward alone.
    """

    torchs: weakref.WeakSet[type]  # the Functions that torch made for it

    def begin(self, args: tuple[Any, ...], state: ThreadState) -> CallRecord | None:
        """Take down what setup_context is given; an older ctx may have had the same id."""
        self.links.pop(id(private_ctx.innermost(args[0])), None)
        return super().begin(args, state)

    def arguments(self, args: tuple[Any, ...]) -> Sequence[Any]:
        """Return forward's inputs, those by keyword after the others, then its outputs."""
        _, inputs, *keywords, output = args
        by_keyword = [value for some in keywords for value in some.values()]
        return (*inputs, *by_keyword, *(output if type(output) is tuple else (output,)))

    def link(self, record: CallRecord, args: tuple[Any, ...], state: ThreadState) -> None:
        """Tie ctx to the forward before, if these are its outputs."""
        torchs = getattr(type(private_ctx.innermost(args[0])), "_forward_cls", None)
        if torchs is not None and torchs not in self.torchs:
            self.torchs.add(torchs)
            private_ctx.watch_materialize_grads(torchs)
        self.forget_another_forward(args[-1], state)
        super().link(record, args, state)
        record.keywords = tuple([name for some in args[2:-1] for name in some])
        record.setup_inputs += len(record.keywords)

    def leave(self, record: CallRecord, args: tuple[Any, ...], values: Any, state: ThreadState) -> None:
        """Read ctx, whose flags are one for each tensor of a list, and one for what torch adds to the arguments."""
        super().leave(record, args, values, state)
        flags = iter(record.ctx.needs_input_grad if record.ctx is not None else ())
        if record.ctx is not None:
            record.ctx.needs_input_grad = tuple([_needed(one, flags) for one in args[1]])

    def tie(self, ctx: Any, output: Any, **_: Any) -> None:
        """Tie ctx to the forward before, in the place of a setup_context that nobody registered."""
        state, key = local.state, id(private_ctx.innermost(ctx))
        self.forget_another_forward(output, state)
        forward, _known = state.last_forward.get(self.function.number, (None, None))
        self.links.pop(key, None)
        if forward is not None:
            state.last_forward[self.function.number] = (forward, None)
            self.links[key] = CtxLink(self.function, forward)

    def forget_another_forward(self, output: Any, state: ThreadState) -> None:
        """Forget the forward before when it made other outputs; under ``torch.func`` they are wrapped, and are its."""
        _, known = state.last_forward.get(self.function.number, (None, None))
        own_outputs = frozenset() if known is None else known.own_outputs
        if not private.functorch_active() and own_outputs.isdisjoint(_marks((output,))):
            state.last_forward.pop(self.function.number, None)


def _marks(values: Iterable[Any]) -> frozenset[tuple[int, type, int]]:
    """Return what tells the tensors among some values, in lists too, from others; an id alone may be reused."""
    listed = [item for one in values for item in (one if isinstance(one, (tuple, list)) else (one,))]
    tensors = [one for one in listed if isinstance(one, torch.Tensor)]
    return frozenset([(id(one), type(one), private.dispatch_keys(one)) for one in tensors])


def _needed(argument: Any, flags: Any) -> bool:
    if isinstance(argument, list) and all(isinstance(one, torch.Tensor) for one in argument):
        return True in [next(flags, False) for _ in argument]
    return next(flags, False) is True


private.skip_in_dynamo(OperationCalls.__call__.__code__, OperationSetupRecorder.tie.__code__, with_calls=True)
