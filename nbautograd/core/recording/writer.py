"""Writer: what is noted when a method begins and ends. One per class and method, so that nothing is looked up twice.

This is the hot path: few calls, few different questions to torch, all else when the record is read.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from time import perf_counter
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from nbautograd.core.recording import prints
from nbautograd.core.recording.ctx_use import used_of_ctx
from nbautograd.core.recording.describing import COPIED, DESCRIBE, Describe
from nbautograd.core.recording.forms import Forms
from nbautograd.core.recording.noticing import Watch
from nbautograd.core.recording.reading_ctx import ONLY_SAVES, innermost
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.ring import CALL, EVERY, VALUE
from nbautograd.core.recording.snapshot import VALUES, Raw
from nbautograd.core.recording.state import (
    BEGAN,
    GIVEN,
    HEAD,
    ITS_CTX,
    ITS_FORWARD,
    KNOWN,
    NUMBER,
    QUICK,
    WRITER,
    Noticed,
    Open,
    Subject,
    ThreadState,
    begun,
)
from nbautograd.core.source import as_written
from nbautograd.core.torch_private import tensors as internals

T = TypeVar("T")
Begin = Callable[..., "Open | None"]
End = Callable[[Open, tuple[Any, ...], Any, ThreadState], None]

_get_frame = sys._getframe
_tracing, _modes = internals.tracing, internals.function_mode_active
_heard = prints.heard


class Writer:
    """Writes the calls of one method of one Function; this class itself those of jvp and vmap.

    Args:
        subject: the Function.
        method: as calls name it.
        recorder: where the calls go.
    """

    def __init__(self, subject: Subject, method: str, recorder: Recorder) -> None:
        self.subject, self.method, self.recorder = subject, method, recorder
        self.number, self.sets_up = subject.number, subject.sets_up
        self.ring, self.links = recorder.ring, recorder.ring.links
        self.add, self.next_index = recorder.ring.add, recorder.ring.next_index
        code = _static_code(subject.cls, method)
        self.uses = used_of_ctx(code)
        self.only_saves = self.uses is not None and self.uses <= ONLY_SAVES
        self.watch = Watch(subject, method)
        self.quick = False  # True when most calls are written by ``quick.py``, which wants to know how values look
        self.forms = Forms()

    def begin(self, args: tuple[Any, ...], state: ThreadState, frame: FrameType | None = None) -> Open | None:
        """The method is about to run.

        Args:
            args: as PyTorch passes them, with ctx where the method takes it.
            state: of this thread.
            frame: the caller's, where it is not the one that called us.

        Returns:
            What ``end`` and ``fail`` want to be given; None when the call is not recorded.
        """
        level = self.subject.level
        if not level or state.paused or _tracing():
            self.unseen(state)
            return None
        if _modes() and not state.aside:
            return without_modes(state, self.begin, args, state, frame or _get_frame(2))
        try:
            ctx, forward = 0, None
            if self.method == "jvp":
                ctx = id(innermost(args[0]))
                link = self.links.get(ctx)
                forward = link[0] if link is not None and link[1] == self.number else None
            known: dict[int, Raw] = {}
            given = DESCRIBE[level](args[1:], known)
            call: Open = [
                self.next_index(), None, 0.0, self, given, known, state.stack[-1][NUMBER] if state.stack else None, ctx,
                forward, None, False, False, 0, None,
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
        """The method returned."""
        seconds = perf_counter() - call[BEGAN]
        if _modes() and not state.aside:
            return without_modes(state, self.end, call, args, result, state)
        try:
            values = result if type(result) is tuple or type(result) is list else (result,)
            outputs = DESCRIBE[self.subject.level](values, call[KNOWN])
        except Exception as error:
            return self.incomplete(call, seconds, error, state)
        return self._close(call, outputs, (), None, seconds, state)

    def fail(self, call: Open, error: BaseException, state: ThreadState, args: tuple[Any, ...] = ()) -> None:
        """The method raised."""
        seconds = perf_counter() - call[BEGAN]
        kind = type(error).__name__
        try:
            text = str(error) if error.args else ""
        except Exception as ours:
            self.recorder.note(ours)
            text = ""
        noticed: Noticed = self.watch.failure(args) if self.method == "backward" else ()
        self.describe_given(call, args)
        self._close(call, (), noticed, None, seconds, state, f"{kind}: {text}" if text else kind)
        self.ring.settle()

    def describe_given(self, call: Open, args: tuple[Any, ...]) -> None:
        """Describe what a call was given, where ``quick.py`` has put that off to its end."""
        if len(call) != QUICK:
            return
        _lengthen(call)
        try:
            call[GIVEN] = DESCRIBE[self.subject.level](self.given(args), call[KNOWN])
        except Exception as error:
            self.recorder.note(error)

    def long_way(self, call: Open, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        """The end of a call that ``quick.py`` was asked to end, and that looks like none before."""
        if len(call) == QUICK and _tracing():  # torch.jit.trace would write down what we ask
            unwind(state.stack, call)
        else:
            self.end(call, args, result, state)

    def given(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a call is given besides ctx."""
        return args[1:]

    def unseen(self, state: ThreadState) -> None:
        """A call that is not recorded."""
        self.links.pop(state.armed_ctx, None)  # an older ctx had the same id

    def incomplete(self, call: Open, seconds: float, error: Exception | None, state: ThreadState) -> None:
        """Write down what there is: after an error of our own, or when an interrupt left calls open (error None)."""
        missing: tuple[str, ...] = ()
        if error is not None:
            self.recorder.note(error)
            missing = (f"{type(error).__name__}: {error}",)
        self._close(call, (), (), None, seconds, state, None, missing)

    def given_boxed(self, gradients: list[Any], describe: Describe) -> tuple[Raw, ...]:
        """Gradients in a list (``boxed_grads_call``), which may be gone before the end: told apart by no id."""
        return tuple((*one[:-1], 0) if len(one) > 2 else one for one in describe(gradients, {}))

    def _close(
        self,
        call: Open,
        outputs: tuple[Raw, ...],
        noticed: Noticed,
        kept: Any,
        seconds: float,
        state: ThreadState,
        exception: str | None = None,
        missing: tuple[str, ...] = (),
    ) -> None:
        """Take the call off the stack and put its record, the fields of a Recorded, into the ring."""
        stack = state.stack
        if stack and stack[-1] is call:
            stack.pop()
        elif not unwind(stack, call):
            return
        _lengthen(call)
        try:
            index, printed, _, _, inputs, known, around, _, forward, called_from, graph, freed, run, first = call
            self.add((
                index, self.number, self.method, forward,
                known.get(COPIED, 0) + CALL + VALUE * (len(inputs) + len(outputs)), state.name, around, seconds,
                self.recorder.cell, called_from, graph, freed, run, first, inputs, outputs, noticed, kept,
                "" if printed is None else "".join(printed), exception, missing,
            ))  # fmt: skip
            if not index % EVERY or self.subject.level >= VALUES:
                self.ring.settle()
        except Exception as error:
            self.recorder.note(error)


def without_modes(state: ThreadState, method: Callable[..., T], *args: Any) -> T:
    """Run a method of ours so that no function mode of the user's hears what it asks tensors."""
    state.aside = True
    try:
        with internals.disable_torch_function():
            return method(*args)
    finally:
        state.aside = False


def _lengthen(call: Open) -> None:
    """Make an Open call of one that ``quick.py`` began, or that an interrupt inside our own code left half made."""
    if len(call) == QUICK:
        (parent, *rest), ctx, forward = begun(call[HEAD]), call[ITS_CTX], call[ITS_FORWARD]
        call[GIVEN:] = [(), {}, parent, ctx, forward, *rest]
    elif len(call) == WRITER + 1:
        call += [(), {}, None, 0, None, None, False, False, 0, None]


def _static_code(cls: type | None, method: str) -> CodeType | None:
    """The code of a method whose first argument is ctx: a plain function in a staticmethod."""
    entry = as_written(inspect.getattr_static(cls, method, None))
    function = entry.__func__ if type(entry) is staticmethod else None
    return function.__code__ if type(function) is FunctionType else None


def unwind(stack: list[Open], call: Open) -> bool:
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
