"""Engine "monitoring": the interpreter tells when a method's code starts, returns or raises (Python 3.12 and later).

Nothing of the class is touched. Code objects can be shared, by subclasses and by classes that one factory made, so that
each start is asked whose it is: by the class of its ctx, or by the ``apply`` that called it.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from nbautograd.core.recording import materialising, quick
from nbautograd.core.recording.dynamo import Tracing
from nbautograd.core.recording.engine import recordable_methods
from nbautograd.core.recording.reading_ctx import innermost
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.spy import SpyEngine
from nbautograd.core.recording.state import Open, Subject, ThreadState, local
from nbautograd.core.recording.writer import Begin, End, Writer
from nbautograd.core.recording.writers import writer

_VARARGS, _GENERATES = 0x04, 0x20 | 0x80 | 0x200
_TOOLS = (4, 3)  # numbers that Python reserves for nobody
_FLAG = torch.autograd.function.FunctionCtx.set_materialize_grads.__code__
_APPLY = getattr(getattr(torch.autograd.Function.apply, "__func__", None), "__code__", None)
_get_frame = sys._getframe
_TORCH = os.path.dirname(torch.__file__)


class Hook(NamedTuple):
    """A method that is recorded."""

    owner: weakref.ref[type]
    writer: Writer
    begin: Begin
    end: End
    takes_ctx: bool
    takes_class: bool


Entry = tuple[CodeType, "Open | None", "tuple[Any, ...]", "Hook | None"]


class MonitoringEngine:
    """Records through ``sys.monitoring``; see the module."""

    name = "monitoring"

    def __init__(self) -> None:
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._tool: int | None = None
        self._hooks: dict[int, tuple[CodeType, list[Hook]]] = {}  # by id: equal codes are not the same code
        self._tracing = Tracing()
        self._spies = SpyEngine()

    def install(self, cls: type, subject: Subject, recorder: Recorder) -> list[str]:
        """Ask for the events of the code of each method."""
        if self._monitoring is None:
            raise RuntimeError("sys.monitoring needs Python 3.12")
        entries = {method: vars(owner)[method] for method, owner in recordable_methods(cls)}
        codes = {method: _code(entry) for method, entry in entries.items()}
        if not all(codes.values()):  # a partial, a generator, something of the user's: spies see these
            return self._spies.install(cls, subject, recorder)
        self._begin()
        for method, code in codes.items():
            takes_ctx = method != "vmap" and not (method == "forward" and subject.sets_up)
            takes_class = isinstance(entries[method], classmethod)
            writing = writer(subject, method, recorder)
            hook = Hook(weakref.ref(cls), writing, *quick.pair(writing), takes_ctx, takes_class)
            self._hooks.setdefault(id(code), (code, []))[1].append(hook)
            self._listen(code, True)
        self._tracing.watch(self._listen, subject)
        return []

    def withdraw(self, cls: type) -> None:
        """As ``remove``: there is nothing else to keep."""
        self.remove(cls)

    def remove(self, cls: type) -> None:
        """Ask for nothing more of this class, nor of one that is gone."""
        self._spies.remove(cls)
        for key, (code, hooks) in list(self._hooks.items()):
            hooks[:] = [hook for hook in hooks if hook.owner() not in (cls, None)]
            if not hooks:
                del self._hooks[key]
                self._listen(code, False)
        if not self._hooks:
            self._end()

    def _begin(self) -> None:
        """Take a number and register what is to be called."""
        if self._tool is not None:
            return
        free = [tool for tool in _TOOLS if self._monitoring.get_tool(tool) is None]
        if not free:
            raise RuntimeError("other tools have taken sys.monitoring's numbers")
        tool = self._tool = free[0]
        self._monitoring.use_tool_id(tool, "nbautograd")
        events = self._monitoring.events
        self._monitoring.register_callback(tool, events.PY_START, self._started)
        self._monitoring.register_callback(tool, events.PY_RETURN, self._returned)
        self._monitoring.register_callback(tool, events.PY_UNWIND, self._raised)
        self._monitoring.set_events(tool, events.PY_UNWIND)  # Python has no local events for what raises
        self._listen(_FLAG, True)

    def _end(self) -> None:
        if self._tool is None:
            return
        tool, self._tool = self._tool, None
        events = self._monitoring.events
        self._monitoring.set_events(tool, 0)
        for code in (_FLAG, *self._tracing.forget()):
            self._monitoring.set_local_events(tool, code, 0)
        for event in (events.PY_START, events.PY_RETURN, events.PY_UNWIND):
            self._monitoring.register_callback(tool, event, None)
        self._monitoring.free_tool_id(tool)

    def _listen(self, code: CodeType, wanted: bool) -> None:
        if self._tool is not None:
            events = self._monitoring.events
            self._monitoring.set_local_events(self._tool, code, events.PY_START | events.PY_RETURN if wanted else 0)

    def _started(self, code: CodeType, offset: int) -> None:
        """A code of interest starts; the frame that runs it is the one below ours."""
        known = self._hooks.get(id(code))
        frame = _get_frame(1)
        if known is None:
            if code is _FLAG:
                materialising.heard(*_arguments(frame, code))
            else:
                self._tracing.started(code, frame)
            return
        state: ThreadState = local.state
        entries: list[Entry] = state.monitored
        args = _arguments(frame, code)
        hook = _whose(known[1], args, frame)
        call = None
        if hook is not None:
            args = args[1:] if hook.takes_class else args
            try:
                state.armed_ctx = 0
                if hook.takes_ctx:
                    ctx = innermost(args[0])
                    state.armed_ctx = id(ctx)
                    if hook.writer.method == "forward":  # without the defaults, which apply was not given
                        args = args[: 1 + len(getattr(ctx, "needs_input_grad", args))]
                call = hook.begin(args, state, frame.f_back)
            except Exception as error:
                hook.writer.recorder.note(error)
            state.armed_ctx = 0
        entries.append((code, call, args if call is not None else (), hook))

    def _returned(self, code: CodeType, offset: int, result: Any) -> None:
        entries: list[Entry] = local.state.monitored
        if id(code) in self._hooks and entries and entries[-1][0] is code:
            _, call, args, hook = entries.pop()
            if call is not None and hook is not None:
                hook.end(call, args, result, local.state)
        else:
            self._tracing.returned(code)

    def _raised(self, code: CodeType, offset: int, error: BaseException) -> None:
        if id(code) not in self._hooks:
            return
        entries: list[Entry] = local.state.monitored
        if entries and entries[-1][0] is code:
            _, call, args, hook = entries.pop()
            if call is not None and hook is not None:
                hook.writer.fail(call, error, local.state, args)


def _code(entry: Any) -> Any:
    """The code that runs when PyTorch calls a method; None when there is none, or when it only begins with the call."""
    function = entry.__func__ if isinstance(entry, (staticmethod, classmethod)) else entry
    code = getattr(function, "__code__", None)
    return None if code is None or code.co_flags & _GENERATES else code


def _arguments(frame: FrameType, code: CodeType) -> tuple[Any, ...]:
    """The positional arguments of a frame that has just begun, and nothing kept of it."""
    values: Any = frame.f_locals
    args = tuple([values[name] for name in code.co_varnames[: code.co_argcount]])
    if code.co_flags & _VARARGS:
        args += values[code.co_varnames[code.co_argcount + code.co_kwonlyargcount]]
    if type(values) is dict:  # Python 3.12 keeps this copy with the frame: what the user deletes would live on in it
        values.clear()
    return args


def _whose(hooks: list[Hook], args: tuple[Any, ...], frame: FrameType) -> Hook | None:
    """Which of the classes that share a code is running it; None for one that is not recorded, and for the user's call.

    The classes that torch.func makes around the user's name it no more: then it is the first.
    """
    if hooks[0].takes_ctx:
        ctx = args[1] if hooks[0].takes_class and len(args) > 1 else args[0] if args else None
        cls = getattr(type(innermost(ctx)), "_forward_cls", None)
        generated = cls is not None and cls.__module__.startswith("torch.")
    else:
        cls, generated = _applied(frame.f_back)
    return next((hook for hook in hooks if hook.owner() is cls), hooks[0] if generated else None)


def _applied(caller: FrameType | None) -> tuple[Any, bool]:
    """The class whose ``apply`` called a method that gets no ctx, and whether it can be any."""
    if caller is None or _APPLY is None:
        return None, True
    if caller.f_code is not _APPLY:
        return None, caller.f_code.co_filename.startswith(_TORCH)
    values: Any = caller.f_locals
    cls = values.get("cls")
    if type(values) is dict:
        values.clear()
    return cls, getattr(cls, "__module__", "").startswith("torch._functorch")
