"""Engine "spy": a descriptor in the place of each static method that hands a recording wrapper only to PyTorch.

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

from nbautograd import messages
from nbautograd.core.recording import materialising
from nbautograd.core.recording.engine import recordable_methods, wrapper
from nbautograd.core.recording.recorder import Recorder
from nbautograd.core.recording.state import Subject, local
from nbautograd.core.recording.writers import writer
from nbautograd.core.torch_private import tensors as internals

_CODES, _FILES = internals.machinery()
_GET_USER_FN = internals.user_function_code()  # asked first: comparing code objects for identity is fast
_functorch_active = internals.functorch_active
_return_none: Callable[[], None] = [].clear  # a C function that does nothing


class Spy:
    """Stands in a class's dict where ``original`` stood.

    Attributes:
        original: the very object that the user's class had there.
        method: its name.
        function: the user's function when ``original`` is a plain staticmethod.
        hooks: by id of the class that is recorded, its subject and the wrapper for PyTorch.
    """

    original: Any
    method: str
    function: Any
    hooks: Hooks

    def watch(self, cls: type, subject: Subject, recorder: Recorder) -> None:
        """Record the calls made through this class."""
        function = _get(self.original, cls)
        self.hooks[id(cls)] = (subject, wrapper(function, writer(subject, self.method, recorder)))
        if self.method not in vars(cls):  # inherited: this spy outlives the class, whose id may be used again
            weakref.finalize(cls, _forget, weakref.ref(self), id(cls)).atexit = False

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Picklers that go by value take the original along, not us."""
        if isinstance(self.original, (staticmethod, classmethod)):
            return type(self.original), (self.original.__func__,)
        return copy.copy, (self.original,)


class StaticSpy(Spy, staticmethod):  # type: ignore[type-arg]
    """A Spy that is a staticmethod, as what it stands for is."""


Hooks = dict[int, tuple[Subject, Callable[..., Any]]]
Getter = Callable[..., Any]


def _lookup(hooks: Hooks, original: Any, function: Any) -> Getter:
    """The ``__get__`` of a Spy on backward, vjp, jvp or vmap."""

    def get(self: Spy, instance: Any, owner: type | None = None) -> Any:
        hook = hooks.get(id(owner))
        if hook is not None and not local.state.paused and hook[0].level:
            code = sys._getframe(1).f_code
            if code is _GET_USER_FN or code in _CODES or code.co_filename in _FILES:
                return hook[1]
            _notice_dynamo(code.co_filename, hook[0])
        return function if function is not None else _get(original, owner, instance)

    return get


def _forward_lookup(hooks: Hooks, original: Any, function: Any) -> Getter:
    """On forward: hands the wrapper out right after a ctx was made."""

    def get(self: Spy, instance: Any, owner: type | None = None) -> Any:
        hook = hooks.get(id(owner))
        if hook is not None:
            subject, handed = hook
            state = local.state
            if state.armed is subject:
                state.armed = None
                return handed
            if not state.paused and subject.level:
                name = sys._getframe(1).f_code.co_filename
                if name in _FILES:  # inside torch.func.vmap, where no ctx was made
                    return handed
                _notice_dynamo(name, subject)
        return function if function is not None else _get(original, owner, instance)

    return get


def _setup_lookup(hooks: Hooks, original: Any, function: Any) -> Getter:
    """On setup_context: hands the wrapper out while a call is under way."""

    def get(self: Spy, instance: Any, owner: type | None = None) -> Any:
        hook = hooks.get(id(owner))
        if hook is not None:
            subject, state = hook[0], local.state
            if state.pending is subject:
                state.pending = None
                return hook[1]
            if state.armed is subject:
                return hook[1]
            wanted = not state.paused and _functorch_active() and subject.level
            if wanted and sys._getframe(1).f_code.co_filename in _FILES:
                return hook[1]
        return function if function is not None else _get(original, owner, instance)

    return get


_LOOKUPS = {"forward": _forward_lookup, "setup_context": _setup_lookup}


def _forget(spy: weakref.ref[Spy], key: int) -> None:
    alive = spy()
    if alive is not None:
        alive.hooks.pop(key, None)


def _spy(original: Any, method: str) -> Spy:
    """A Spy of a class of its own: what its ``__get__`` reads is local to it, and five of them run on every call."""
    hooks: Hooks = {}
    function = original.__func__ if type(original) is staticmethod else None
    base: type[Spy] = StaticSpy if isinstance(original, staticmethod) else Spy
    getter = _LOOKUPS.get(method, _lookup)(hooks, original, function)
    internals.skip_in_dynamo(getter.__code__, with_calls=True)
    kind: Any = type(base.__name__, (base,), {"__get__": getter})
    spy: Spy = kind(original.__func__) if isinstance(original, staticmethod) else kind()
    spy.original, spy.method, spy.hooks, spy.function = original, method, hooks, function
    return spy


def _get(original: Any, owner: type | None, instance: Any = None) -> Any:
    """What the class attribute gives when we are not there."""
    getter = getattr(type(original), "__get__", None)
    return original if getter is None else getter(original, instance, owner)


def _notice_dynamo(filename: str, subject: Subject) -> None:
    if not subject.traced and "_dynamo" in filename:
        subject.traced = True


class _Birth:
    """``__init__`` of the hidden backward class: notices that a ctx is made, changes nothing."""

    def __init__(self, subject: Subject, recorder: Recorder) -> None:
        self.subject = subject
        self.links = recorder.ring.links

    def __get__(self, ctx: Any, owner: type | None = None) -> Any:
        if ctx is None:
            return object.__init__
        state, subject = local.state, self.subject
        if not state.paused and subject.level:
            state.armed, state.armed_ctx = subject, id(ctx)
        elif self.links:
            self.links.pop(id(ctx), None)  # an older ctx had the same id
        return _return_none

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (object, "__init__")


class SpyEngine:
    """Records through spies; see the module."""

    name = "spy"

    def install(self, cls: type, subject: Subject, recorder: Recorder) -> list[str]:
        """Put spies where the methods are defined, and a birth notice on the hidden backward class."""
        problems = []
        for method, owner in recordable_methods(cls):
            entry = vars(owner)[method]
            spy = entry if isinstance(entry, Spy) else _spy(entry, method)
            if not callable(_plain_get(spy.original, cls)):
                problems.append(messages.text("recording.not_callable", function=cls.__name__, method=method))
                continue
            spy.watch(cls, subject, recorder)
            if spy is not entry:
                setattr(owner, method, spy)
        backward_class = internals.backward_class(cls)
        if backward_class is None:
            problems.append(messages.text("recording.no_backward_class", function=cls.__name__))
        elif "__init__" not in vars(backward_class):
            backward_class.__init__ = _Birth(subject, recorder)  # type: ignore[misc]
        materialising.listen(cls)
        return problems

    def withdraw(self, cls: type) -> None:
        """Take the spies out where nobody else needs them; a method that the user set anew meanwhile stays."""
        for method, owner in recordable_methods(cls):
            entry = vars(owner)[method]
            if isinstance(entry, Spy):
                entry.hooks.pop(id(cls), None)
                if not entry.hooks:
                    setattr(owner, method, entry.original)

    def remove(self, cls: type) -> None:
        """Take the spies out, and the birth notice."""
        self.withdraw(cls)
        materialising.leave(cls)
        backward_class = internals.backward_class(cls)
        if backward_class is not None and isinstance(vars(backward_class).get("__init__"), _Birth):
            del backward_class.__init__  # type: ignore[misc]


def _plain_get(original: Any, cls: type) -> Any:
    """What looking the method up gives, without running a property or another descriptor of the user's."""
    if isinstance(original, (staticmethod, classmethod, FunctionType)) or callable(original):
        return _get(original, cls)
    return None


internals.skip_in_dynamo(_Birth.__get__.__code__, with_calls=True)
