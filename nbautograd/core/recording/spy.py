"""The spy: a descriptor in the place of each method that hands a recording wrapper only to PyTorch.

Everybody else who looks the method up (user code, ``inspect``, pickle, Dynamo) gets the user's own function. PyTorch
is known by what it does: it makes a ctx and looks up ``forward`` right after, ``setup_context`` after that; it looks
up ``backward``, ``vjp``, ``jvp`` and ``vmap`` from functions of its own, known by their code.
"""

from __future__ import annotations

import copy
import sys
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from nbautograd.core.display import Phrase
from nbautograd.core.recording.record import InstrumentedFunction, local
from nbautograd.core.recording.recorder import Recorder, method_recorder, recording_wrapper
from nbautograd.core.torch_private import ctx as private_ctx
from nbautograd.core.torch_private import tensors as private
from nbautograd.core.user_source import defining_classes

_CODES, _FILES = private_ctx.machinery()
_GET_USER_FN = private_ctx.user_function_code()  # compared first: it is who asks in nearly all cases
_get_frame = sys._getframe
_functorch_active = private.functorch_active
return_none: Callable[[], None] = [].clear  # a C function that does nothing
ctx_watcher: Callable[[type], None] | None = None  # told of new ctxs of recorded Functions too; see watching.py


class Spy:
    """Stands in a class's dict where ``original`` stood; this class itself for backward, vjp, jvp and vmap.

    Args:
        original: the very object that the user's class had there.
        method: its name.

    Attributes:
        hooks: by id of the class that is recorded, the Function and the wrapper for PyTorch.
    """

    original: Any
    method: str
    hooks: dict[int, tuple[InstrumentedFunction, Callable[..., Any]]]
    function: Any  # the user's function when ``original`` is a plain staticmethod

    def watch(self, cls: type, function: InstrumentedFunction, recorder: Recorder) -> None:
        """Record the calls made through this class."""
        method = _get(self.original, cls)
        wrapper = recording_wrapper(method, method_recorder(function, self.method, recorder))
        self.hooks[id(cls)] = (function, wrapper)
        if self.method not in vars(cls):  # inherited: this spy outlives the class, whose id may be used again
            weakref.finalize(cls, _forget, weakref.ref(self), id(cls)).atexit = False

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        hook = self.hooks.get(id(owner))
        if hook is not None and not local.state.paused and hook[0].level:
            code = _get_frame(1).f_code
            if code is _GET_USER_FN or code in _CODES or code.co_filename in _FILES:
                return hook[1]
            _notice_dynamo(code.co_filename, hook[0])
        return self.function if self.function is not None else _get(self.original, owner, instance)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Have picklers that go by value take the original along, not us."""
        if isinstance(self.original, (staticmethod, classmethod)):
            return type(self.original), (self.original.__func__,)
        return copy.copy, (self.original,)


class ForwardSpy(Spy):
    """The spy on forward: hands the wrapper out right after a ctx was made."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        hook = self.hooks.get(id(owner))
        if hook is not None:
            function, state = hook[0], local.state
            if state.armed is function:
                state.armed = None
                return hook[1]
            if not state.paused and function.level:
                name = _get_frame(1).f_code.co_filename
                if name in _FILES:  # inside torch.func.vmap, where no ctx was made
                    return hook[1]
                _notice_dynamo(name, function)
        return self.function if self.function is not None else _get(self.original, owner, instance)


class SetupSpy(Spy):
    """The spy on setup_context: hands the wrapper out while a call is under way."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        hook = self.hooks.get(id(owner))
        if hook is not None:
            function, state = hook[0], local.state
            if state.pending is function:
                state.pending = None
                return hook[1]
            if state.armed is function:
                return hook[1]
            wanted = not state.paused and _functorch_active() and function.level
            if wanted and _get_frame(1).f_code.co_filename in _FILES:
                return hook[1]
        return self.function if self.function is not None else _get(self.original, owner, instance)


class StaticSpy(Spy, staticmethod):  # type: ignore[type-arg]
    """A Spy that is a staticmethod, as what it stands for is."""


class StaticForwardSpy(ForwardSpy, staticmethod):  # type: ignore[type-arg]
    """A ForwardSpy that is a staticmethod, as what it stands for is."""


class StaticSetupSpy(SetupSpy, staticmethod):  # type: ignore[type-arg]
    """A SetupSpy that is a staticmethod, as what it stands for is."""


_KINDS: dict[str, tuple[type[Spy], type[Spy]]] = {
    "forward": (ForwardSpy, StaticForwardSpy),
    "setup_context": (SetupSpy, StaticSetupSpy),
}


def spy_on(original: Any, method: str) -> Spy:
    """Return a spy that stands for what a class has in a method's place."""
    plain, static = _KINDS.get(method, (Spy, StaticSpy))
    kind: Any = static if isinstance(original, staticmethod) else plain
    spy: Spy = kind(original.__func__) if isinstance(original, staticmethod) else kind()
    spy.original, spy.method, spy.hooks = original, method, {}
    spy.function = original.__func__ if type(original) is staticmethod else None
    return spy


def _forget(spy: weakref.ref[Spy], key: int) -> None:
    alive = spy()
    if alive is not None:
        alive.hooks.pop(key, None)


def _get(original: Any, owner: type | None, instance: Any = None) -> Any:
    """Return what the class attribute gives when we are not there."""
    getter = getattr(type(original), "__get__", None)
    return original if getter is None else getter(original, instance, owner)


def _notice_dynamo(filename: str, function: InstrumentedFunction) -> None:
    if not function.compiled and "_dynamo" in filename:
        function.compiled = True


class _CtxCreation:
    """``__init__`` of the hidden backward class: notices that a ctx is made, changes nothing."""

    def __init__(self, function: InstrumentedFunction, recorder: Recorder) -> None:
        self.function = function
        self.links = recorder.ring.links

    def __get__(self, ctx: Any, owner: type | None = None) -> Any:
        if ctx is None:
            return object.__init__
        state, function = local.state, self.function
        if not state.paused and function.level:
            state.armed, state.armed_ctx = function, id(ctx)
        elif self.links:
            self.links.pop(id(ctx), None)  # an older ctx had the same id
        if ctx_watcher is not None:
            ctx_watcher(type(ctx))
        return return_none

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (object, "__init__")


class SpyEngine:
    """Records through spies; see the module."""

    name = "spy"

    def install(self, cls: type, function: InstrumentedFunction, recorder: Recorder) -> list[Phrase]:
        """Put spies where the methods are defined, and a notice of new ctxs on the hidden backward class."""
        problems = []
        for method, owner in defining_classes(cls).items():
            entry = vars(owner)[method]
            spy = entry if isinstance(entry, Spy) else spy_on(entry, method)
            if not callable(plain_get(spy.original, cls)):
                problems.append(Phrase("recording.not_callable", function=cls.__name__, method=method))
                continue
            spy.watch(cls, function, recorder)
            if spy is not entry:
                setattr(owner, method, spy)
        backward_class = private_ctx.backward_class(cls)
        if backward_class is None:
            problems.append(Phrase("recording.no_backward_class", function=cls.__name__))
        elif "__init__" not in vars(backward_class):
            backward_class.__init__ = _CtxCreation(function, recorder)  # type: ignore[misc]
        private_ctx.watch_materialize_grads(cls)
        return problems

    def withdraw(self, cls: type) -> None:
        """Take the spies out where nobody else needs them; a method that the user set anew meanwhile stays."""
        for method, owner in defining_classes(cls).items():
            entry = vars(owner)[method]
            if isinstance(entry, Spy):
                entry.hooks.pop(id(cls), None)
                if not entry.hooks:
                    setattr(owner, method, entry.original)

    def remove(self, cls: type) -> None:
        """Take the spies out, and the notice of new ctxs."""
        self.withdraw(cls)
        private_ctx.leave_materialize_grads(cls)
        backward_class = private_ctx.backward_class(cls)
        if backward_class is not None and isinstance(vars(backward_class).get("__init__"), _CtxCreation):
            del backward_class.__init__  # type: ignore[misc]


def plain_get(original: Any, cls: type) -> Any:
    """Return what looking the method up gives, without running a property or another descriptor of the user's."""
    if isinstance(original, (staticmethod, classmethod, FunctionType)) or callable(original):
        return _get(original, cls)
    return None


private.skip_in_dynamo(
    *[kind.__get__.__code__ for kind in (Spy, ForwardSpy, SetupSpy, _CtxCreation)],
    with_calls=True,
)
