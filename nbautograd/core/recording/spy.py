"""The spy: a descriptor in the place of each method that hands a recording wrapper only to PyTorch.

Everybody else who looks the method up (user code, ``inspect``, pickle, Dynamo) gets the user's own function. PyTorch
is known by what it does: it makes a ctx and looks up ``forward`` right after, ``setup_context`` after that; it looks
up ``backward``, ``vjp``, ``jvp`` and ``vmap`` from functions of its own, known by their code.
"""

from __future__ import annotations

import copy
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from nbautograd.core.display import Phrase
from nbautograd.core.recording.record import InstrumentedFunction, local
from nbautograd.core.recording.recorder import MethodRecorder, Recorder, method_recorder, recording_wrapper
from nbautograd.core.torch_private import ctx as private_ctx
from nbautograd.core.torch_private import tensors as private
from nbautograd.core.user_source import defining_classes

_CODES, _FILES = private_ctx.machinery()
_GET_USER_FN = private_ctx.user_function_code()  # compared first: it is who asks in nearly all cases
_get_frame = sys._getframe
_functorch_active = private.functorch_active
return_none: Callable[[], None] = [].clear  # a C function that does nothing
ctx_watcher: Callable[[Any], None] | None = None  # told of new ctxs of recorded Functions too; see watching.py


class Spy:
    """Stands in a class's dict where ``original`` stood; this class itself for backward, vjp, jvp and vmap.

    Attributes:
        hooks: by id of the class that is recorded, the Function and the wrapper for PyTorch.
    """

    original: Any
    method: str
    hooks: dict[int, tuple[InstrumentedFunction, Callable[..., Any]]]
    function: Any  # the user's function when ``original`` is a plain staticmethod

    def watch(self, cls: type, function: InstrumentedFunction, recorder: Recorder) -> MethodRecorder:
        """Record the calls made through this class; returns what records them."""
        one = method_recorder(function, self.method, recorder)
        self.hooks[id(cls)] = (function, recording_wrapper(_get(self.original, cls), one))
        if self.method not in vars(cls):  # inherited: this spy outlives the class, whose id may be used again
            weakref.finalize(cls, _forget, weakref.ref(self), id(cls)).atexit = False
        return one

    def leave(self, key: int) -> None:
        """Record no calls any more that are made through the class with this id."""
        self.hooks.pop(key, None)

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
    """The spy on forward: hands the wrapper out right after a ctx was made.

    Attributes:
        setups: by id of the class that is recorded, the spy on its setup_context.
    """

    setups: dict[int, SetupSpy]

    def leave(self, key: int) -> None:
        """Record no calls any more that are made through the class with this id."""
        super().leave(key)
        self.setups.pop(key, None)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        hook = self.hooks.get(id(owner))
        if hook is not None:
            function, state = hook[0], local.state
            setup = self.setups.get(id(owner))
            if state.armed is function:
                state.armed = None
                if setup is not None:
                    setup.looked_up_by(_NATIVE)
                return hook[1]
            name = _get_frame(1).f_code.co_filename
            if setup is not None:
                setup.looked_up_by(_PYTHON if name in _FILES else _NATIVE)
            if not state.paused and function.level:
                if name in _FILES:  # inside torch.func.vmap, where no ctx was made
                    return hook[1]
                _notice_dynamo(name, function)
        return self.function if self.function is not None else _get(self.original, owner, instance)


class SetupSpy(Spy):
    """The spy on setup_context: hands the wrapper out while a call is under way.

    PyTorch calls what its lookup of setup_context gives without a look whether it gave anything: an interrupt in our
    ``__get__`` would end the process. So this is a ``NativeSetupSpy`` but for ``torch.func``, which looks the method up
    in Python, once for each of its levels, after PyTorch itself has.

    Attributes:
        expecting: threads in which forward has returned and setup_context has not begun.
    """

    expecting: set[int]

    def looked_up_by(self, kind: type[SetupSpy]) -> None:
        """Be the kind of spy for who looks setup_context up next."""
        if self.__class__ is not kind:
            self.__class__ = kind

    def hand_out(self, wrapper: Callable[..., Any]) -> None:
        """Have the staticmethod hold a wrapper: forward has just returned. Any will do: it asks whose call it is."""
        local.state.handed_out = self.take_back
        self.expecting.add(threading.get_ident())
        staticmethod.__init__(self, wrapper)  # type: ignore[arg-type]

    def take_back(self) -> None:
        """Have the staticmethod hold the user's own function again: setup_context has begun."""
        if self.expecting:
            own = threading.get_ident()
            if self.expecting <= {own}:  # no other thread runs between this look and the exchange
                staticmethod.__init__(self, self.function)  # type: ignore[arg-type]
            self.expecting.discard(own)
            local.state.handed_out = None
            if local.state.transformed:
                self.looked_up_by(_PYTHON)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        hook = self.hooks.get(id(owner))
        if hook is not None:
            function, state = hook[0], local.state
            wanted = state.pending is function or state.armed is function
            if not wanted and not state.paused and _functorch_active() and function.level:
                wanted = _get_frame(1).f_code.co_filename in _FILES
            if wanted:
                state.pending = function
                return hook[1]
        return self.function if self.function is not None else _get(self.original, owner, instance)


class StaticSpy(Spy, staticmethod):  # type: ignore[type-arg]
    """A Spy that is a staticmethod, as what it stands for is."""


class StaticForwardSpy(ForwardSpy, staticmethod):  # type: ignore[type-arg]
    """A ForwardSpy that is a staticmethod, as what it stands for is."""


class StaticSetupSpy(SetupSpy, staticmethod):  # type: ignore[type-arg]
    """A SetupSpy that is a staticmethod, as what it stands for is."""


class NativeSetupSpy(staticmethod, SetupSpy):  # type: ignore[type-arg]
    """A SetupSpy whose lookup is the staticmethod's own: it runs no Python and cannot fail."""


_PYTHON, _NATIVE = StaticSetupSpy, NativeSetupSpy


_KINDS: dict[str, tuple[type[Spy], type[Spy]]] = {
    "forward": (ForwardSpy, StaticForwardSpy),
    "setup_context": (StaticSetupSpy, StaticSetupSpy),  # ``install`` lets no other kind of method come here
}


def spy_on(original: Any, method: str) -> Spy:
    """Return a spy that stands for what a class has in a method's place."""
    plain, static = _KINDS.get(method, (Spy, StaticSpy))
    kind: Any = static if isinstance(original, staticmethod) else plain
    spy: Spy = kind(original.__func__) if isinstance(original, staticmethod) else kind()
    spy.original, spy.method, spy.hooks = original, method, {}
    spy.function = original.__func__ if type(original) is staticmethod else None
    if isinstance(spy, ForwardSpy):
        spy.setups = {}
    elif isinstance(spy, SetupSpy):
        spy.expecting = set()
        spy.looked_up_by(_NATIVE)
    return spy


def _forget(spy: weakref.ref[Spy], key: int) -> None:
    alive = spy()
    if alive is not None:
        alive.leave(key)


def _get(original: Any, owner: type | None, instance: Any = None) -> Any:
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
            ctx_watcher(ctx)
        return return_none

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (object, "__init__")


def install(cls: type, function: InstrumentedFunction, recorder: Recorder) -> list[Phrase]:
    """Put spies where the methods are defined, and a notice of new ctxs on the hidden backward class."""
    problems = []
    spies: dict[str, tuple[Any, MethodRecorder]] = {}
    for method, owner in defining_classes(cls).items():
        entry = vars(owner)[method]
        original = entry.original if isinstance(entry, Spy) else entry
        missing = "not_static" if not callable(plain_get(original, cls)) else None
        if missing is None and method == "setup_context" and type(original) is not staticmethod:
            missing = "not_static"  # only a staticmethod's lookup can be ours and run no Python
        if missing is not None:
            problems.append(Phrase(f"recording.{missing}", function=cls.__name__, method=method))
            continue
        spy = entry if isinstance(entry, Spy) else spy_on(entry, method)
        spies[method] = spy, spy.watch(cls, function, recorder)
        if spy is not entry:
            setattr(owner, method, spy)
    _tie(cls, *spies.get("forward", (None, None)), *spies.get("setup_context", (None, None)))
    backward_class = private_ctx.backward_class(cls)
    if backward_class is None:
        problems.append(
            Phrase("recording.failed_to_install", function=f"{cls.__name__}.forward", error="no backward class")
        )
    elif "__init__" not in vars(backward_class):
        backward_class.__init__ = _CtxCreation(function, recorder)  # type: ignore[misc]
    private_ctx.watch_materialize_grads(cls)
    return problems


def withdraw(cls: type) -> None:
    """Take the spies out where nobody else needs them; a method that the user set anew meanwhile stays."""
    for method, owner in defining_classes(cls).items():
        entry = vars(owner)[method]
        if isinstance(entry, Spy):
            entry.leave(id(cls))
            if not entry.hooks:
                setattr(owner, method, entry.original)


def remove(cls: type) -> None:
    """Take the spies out, and the notice of new ctxs."""
    withdraw(cls)
    private_ctx.leave_materialize_grads(cls)
    backward_class = private_ctx.backward_class(cls)
    if backward_class is not None and isinstance(vars(backward_class).get("__init__"), _CtxCreation):
        del backward_class.__init__  # type: ignore[misc]


def _tie(cls: type, forward: Any, recorder: Any, setup: Any, setup_recorder: Any) -> None:
    """Have the spy on setup_context hand its wrapper out from the end of a forward until setup_context begins."""
    if forward is not None and setup is not None:
        forward.setups[id(cls)] = setup
        recorder.returned = partial(setup.hand_out, setup.hooks[id(cls)][1])
        setup_recorder.begun = setup.take_back


def plain_get(original: Any, cls: type) -> Any:
    """Return what looking the method up gives, without running a property or another descriptor of the user's."""
    if isinstance(original, (staticmethod, classmethod, FunctionType)) or callable(original):
        return _get(original, cls)
    return None


private.skip_in_dynamo(
    *[kind.__get__.__code__ for kind in (Spy, ForwardSpy, SetupSpy, _CtxCreation)],
    with_calls=True,
)
