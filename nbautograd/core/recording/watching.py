"""Watch: every call of every custom Function in a program, with copies of the arguments of a few calls of each kind.

A hook on torch's base class of all ctxs notices each new ctx, so that classes made before or during are met alike, by
whatever way their ``apply`` was kept. It puts a spy in the place of the class's ``forward`` when the class is first
met. All is undone when the last watch ends. Nothing that the program can see is changed or drawn at random; copies are
made below autograd and the user's modes.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from nbautograd.core.display import Phrase
from nbautograd.core.recording import spy
from nbautograd.core.recording.argument_copies import CODE, PLAIN, NotKept, copied, copied_tensor
from nbautograd.core.recording.record import InstrumentedFunction, local
from nbautograd.core.stumbles import record
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private import tensors as private
from nbautograd.core.user_source import defining_classes

KEPT = 3  # calls of each situation that are kept
CLASS_BYTES = 64 << 20  # of copied arguments of one Function
ALL_BYTES = 256 << 20  # of copied arguments in all
SITUATIONS = 64  # of one Function that are told apart
TENSOR = 7  # facts that tell one tensor's situation from another's
MOST_CALLERS = 1000  # of each situation that are told apart, such as the tests of a run
TEXT = 80  # letters of a string argument up to which it tells situations apart


@dataclass
class CopiedCall:
    """Copies of the arguments of one call.

    Attributes:
        arguments: of forward, without ctx.
        keywords: keyword-only arguments of an operation of ``torch.library``.
        elements, bytes: of the tensors among them.
    """

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    elements: int
    bytes: int


@dataclass
class Situation:
    """Calls of one Function whose arguments are of the same kinds.

    Attributes:
        calls: how many there were.
        copies: copies of the arguments of the smallest ones, smallest first.
        lacking: why a call could not be kept, where none was.
        backwards: how many of the program's own backwards of these calls returned.
        raised: how many of them raised.
        callers: who made the calls, as far as the watch was told.
    """

    calls: int = 0
    copies: list[CopiedCall] = field(default_factory=list)
    lacking: Phrase | None = None
    backwards: int = 0
    raised: int = 0
    callers: dict[str, None] = field(default_factory=dict)


@dataclass(eq=False)
class WatchedFunction:
    """A Function that was met.

    Attributes:
        cls: the class.
        situations: by what tells them apart.
        calls: how many there were with a gradient to follow.
        without_gradient: calls that nothing can be differentiated through (``no_grad``, no input requires grad).
        others: calls of further situations than are told apart.
        bytes: of all copies that are kept.
    """

    cls: type
    situations: dict[Any, Situation] = field(default_factory=dict)
    calls: int = 0
    without_gradient: int = 0
    others: int = 0
    bytes: int = 0


@dataclass
class Unseen:
    """Calls that a watch knows it did not see.

    Attributes:
        compiled: calls of graphs that torch.compile made.
        batched: by name, calls inside torch.vmap of Functions for which torch writes the batching rule.
        traced: calls under torch.jit.trace.
        processes: processes that were forked meanwhile.
    """

    compiled: int = 0
    batched: dict[str, int] = field(default_factory=dict)
    traced: int = 0
    processes: int = 0


class Watch:
    """Watches every custom Function while its block runs.

    Attributes:
        functions: what was met, by class, in the order of the first calls.
        unseen: what was not.
        errors: mistakes of our own, which never reach the program: text -> how often.
        caller: who makes the calls now, such as a test; empty where that is not known.

    Example:
        >>> import torch
        >>> from nbautograd.core.recording.watching import Watch
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return 2 * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return 2 * grad
        >>> with Watch() as watch:
        ...     _ = Double.apply(torch.ones(3, requires_grad=True))
        >>> [(f.cls.__name__, f.calls) for f in watch.functions.values()]
        [('Double', 1)]
    """

    def __init__(self) -> None:
        self.functions: dict[type, WatchedFunction] = {}
        self.unseen = Unseen()
        self.errors: dict[str, int] = {}
        self.bytes = 0
        self.caller = ""
        self.links: dict[int, Situation] = {}  # by id of a ctx; one that is created takes an older one's id out
        self._lock = threading.RLock()
        self._forks = 0

    def __enter__(self) -> Watch:
        self._forks = _forks.count
        _hook.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        _hook.remove(self)
        self.unseen.processes += _forks.count - self._forks

    def see(self, cls: type, ctx: int, args: tuple[Any, ...], grad: bool, required: tuple[bool, ...] | None) -> None:
        """Take note of a call of forward.

        Args:
            cls: the Function.
            ctx: id of the call's ctx.
            args: of forward, without ctx.
            grad: True where grad mode was on when ``apply`` was called.
            required: which arguments require grad in the transform of ``torch.func`` around the call; None outside.
        """
        if private.tracing():
            self.unseen.traced += 1
            return
        with self._lock:
            found = self.functions.get(cls)
            if found is None:
                found = self.functions[cls] = WatchedFunction(cls)
            keywords: dict[str, Any] = {}
            if library.is_generated(cls):
                args, keywords = library.arguments_of(cls, args)
            given = (*args, *keywords.values())
            if required is None or len(required) != len(given):
                required = tuple([isinstance(x, Tensor) and x.requires_grad for x in given])
            if not grad or not (any(required) or any(_inner_requires_grad(x) for x in given)):
                found.without_gradient += 1
                return
            found.calls += 1
            self._sort(found, ctx, args, keywords, required)

    def see_backward(self, ctx: int, returned: bool) -> None:
        """Take note of how the backward of a call ended."""
        situation = self.links.get(ctx)
        if situation is not None:
            with self._lock:
                situation.backwards += returned
                situation.raised += not returned

    def _sort(
        self, found: WatchedFunction, ctx: int, args: tuple[Any, ...], keywords: dict[str, Any],
        required: tuple[bool, ...],
    ) -> None:  # fmt: skip
        key = tuple([_kind(x, needs) for x, needs in zip((*args, *keywords.values()), required, strict=True)])
        situation = found.situations.get(key)
        if situation is None:
            if len(found.situations) >= SITUATIONS:
                found.others += 1
                return
            situation = found.situations[key] = Situation()
        situation.calls += 1
        self.links[ctx] = situation
        if self.caller and len(situation.callers) < MOST_CALLERS:
            situation.callers[self.caller] = None
        elements, size = _extent((*args, *keywords.values()))
        largest = situation.copies[-1] if len(situation.copies) == KEPT else None
        if largest is not None and elements >= largest.elements:
            return
        freed = 0 if largest is None else largest.bytes
        if found.bytes - freed + size > CLASS_BYTES or self.bytes - freed + size > ALL_BYTES:
            situation.lacking = situation.lacking or Phrase("audit.too_large", size=_mebibytes(size))
            return
        if private.profiling():
            situation.lacking = Phrase("audit.profiled")
            return
        try:
            room = min(CLASS_BYTES - found.bytes, ALL_BYTES - self.bytes) + freed
            copies, size = _copies((*args, *keywords.values()), required, room)
        except NotKept as problem:
            situation.lacking = situation.lacking or problem.phrase
            return
        if largest is not None:
            situation.copies.pop()
        found.bytes += size - freed
        self.bytes += size - freed
        named = dict(zip(keywords, copies[len(args) :], strict=True))
        situation.copies.append(CopiedCall(copies[: len(args)], named, elements, size))
        situation.copies.sort(key=lambda call: call.elements)


def _kind(item: Any, required: bool) -> Any:
    """Return what tells one argument's situation from another's."""
    if isinstance(item, Tensor):
        dense = item.layout is torch.strided and not item.is_nested
        contiguous = item.is_contiguous() if dense else None
        return item.dtype, item.dim(), required, item.layout, item.device, contiguous, type(item)
    if isinstance(item, str) and len(item) > TEXT:
        return str
    if isinstance(item, float):
        return float, repr(item)
    if isinstance(item, PLAIN):
        return type(item), item
    if isinstance(item, (tuple, list)):
        return type(item), tuple([_kind(one, _requires_grad(one)) for one in item])
    if isinstance(item, types.FunctionType):  # one that is made anew for each call has the code of the others
        return types.FunctionType, item.__qualname__, id(item.__code__)
    if isinstance(item, types.MethodType):
        return types.MethodType, _kind(item.__func__, False), type(item.__self__)
    if isinstance(item, functools.partial):
        return functools.partial, _kind(item.func, False)
    return id(item) if isinstance(item, CODE) else type(item)


def _requires_grad(item: Any) -> bool:
    return isinstance(item, Tensor) and item.requires_grad


def _inner_requires_grad(item: Any) -> bool:
    return isinstance(item, (tuple, list)) and any(_requires_grad(one) for one in item)


def _extent(items: Any) -> tuple[int, int]:
    """Return how many elements and bytes the tensors among these have."""
    elements = size = 0
    for item in items:
        if isinstance(item, Tensor):
            count = item.numel()
            elements, size = elements + count, size + count * item.element_size()
        elif isinstance(item, (tuple, list)):
            inner = _extent(item)
            elements, size = elements + inner[0], size + inner[1]
        elif isinstance(item, np.ndarray):
            size += item.nbytes
    return elements, size


def _copies(items: tuple[Any, ...], required: tuple[bool, ...], room: int) -> tuple[tuple[Any, ...], int]:
    """Return copies of the arguments of one call, and the bytes of all tensors in them.

    Raises:
        NotKept: where they cannot be copied, or take more than the room.
    """
    needs = {id(item): need for item, need in zip(items, required, strict=False)}
    size = 0

    def copy_tensor(item: Tensor) -> Tensor:
        nonlocal size
        made = copied_tensor(item, needs.get(id(item), item.requires_grad))
        size += item.numel() * item.element_size()
        if size > room:
            raise NotKept("audit.too_large", size=_mebibytes(size))
        return made

    size += sum(item.nbytes for item in items if isinstance(item, np.ndarray))
    return copied(items, copy_tensor), size


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.3g} MiB"


class _Tap:
    """The spy on one method of a class, and what stands behind it.

    Args:
        function: for calls that nobody else records.
        cls: the Function.
        method: its name.
    """

    def __init__(self, function: InstrumentedFunction, cls: Any, method: str) -> None:
        self.cls, self.method, self.function = cls, method, function
        self.owner: Any = defining_classes(cls).get(method)
        self.skips = 0 if function.sets_up else 1
        self.before: tuple[Any, Any] | None = None
        self.spy: Any = None
        self.hook: tuple[InstrumentedFunction, Callable[..., Any]] | None = None

    def stand(self) -> InstrumentedFunction | None:
        """Have the spy stand in the class; returns whose wrapper it hands to PyTorch."""
        if self.owner is None:
            return None
        here = self.spy is not None and vars(self.owner).get(self.method) is self.spy
        if not here or self.spy.hooks.get(id(self.cls)) is not self.hook:
            self._install()
        return None if self.hook is None else self.hook[0]

    def _install(self) -> None:
        entry = vars(self.owner)[self.method]
        made = entry if isinstance(entry, spy.Spy) else spy.spy_on(entry, self.method)
        found = made.hooks.get(id(self.cls))
        method = spy.plain_get(made.original, self.cls) if found is None else found[1]
        if not callable(method):
            self.spy = self.hook = None
            return
        wrapper = (_watching_wrapper if self.method == "forward" else _backward_wrapper)(method, self)
        self.spy, self.before = made, found
        self.hook = (self.function if found is None else found[0], wrapper)
        made.hooks[id(self.cls)] = self.hook
        if made is not entry:
            setattr(self.owner, self.method, made)

    def remove(self) -> None:
        """Leave the class as it is without us; what others have put there since stays."""
        if self.spy is None or self.spy.hooks.get(id(self.cls)) is not self.hook:
            return
        if self.before is not None:
            self.spy.hooks[id(self.cls)] = self.before
            return
        del self.spy.hooks[id(self.cls)]
        if not self.spy.hooks and vars(self.owner).get(self.method) is self.spy:
            setattr(self.owner, self.method, self.spy.original)


def _taps(cls: type) -> tuple[_Tap, ...]:
    """Return the taps on a class: that on forward first."""
    function = InstrumentedFunction(cls)
    backwards = [method for method in ("backward", "vjp") if method in defining_classes(cls)]
    return tuple(_Tap(function, cls, method) for method in ("forward", *backwards))


class _Seen(threading.local):
    """State of one thread whose call begins."""

    grad = True
    ctx = 0
    required: tuple[bool, ...] | None = None


_seen = _Seen()


class _Hook:
    """The hook on the base class of all ctxs, there while anybody watches."""

    def __init__(self) -> None:
        self.watches: tuple[Watch, ...] = ()
        self.taps: dict[type, tuple[_Tap, ...]] = {}
        self._lock = threading.RLock()

    def add(self, watch: Watch) -> None:
        """Begin."""
        with self._lock:
            self.watches = (*self.watches, watch)
            spy.ctx_watcher = self.ctx_created
            BackwardCFunction.__init__ = _NEW_CTX  # type: ignore[method-assign,assignment]

    def remove(self, watch: Watch) -> None:
        """End, and leave no trace with the last one."""
        with self._lock:
            self.watches = tuple(one for one in self.watches if one is not watch)
            if self.watches:
                return
            spy.ctx_watcher = None
            if vars(BackwardCFunction).get("__init__") is _NEW_CTX:
                del BackwardCFunction.__init__
            for tap in itertools.chain.from_iterable(self.taps.values()):
                tap.remove()
            self.taps = {}

    def ctx_created(self, ctx: Any) -> None:
        """Take note that a ctx is created: PyTorch looks up forward next."""
        state = local.state
        if state.paused or not self.watches:
            return
        try:
            cls: type | None = getattr(type(ctx), "_forward_cls", None)
            if cls is None:
                return
            _seen.grad, _seen.ctx = torch.is_grad_enabled(), id(ctx)
            for watch in self.watches:
                watch.links.pop(id(ctx), None)
            taps = self.taps.get(cls)
            if taps is None:
                if cls.__module__.startswith("torch._functorch.") and not self._of_torch_func(cls):
                    return
                with self._lock:
                    taps = self.taps[cls] = _taps(cls)
            armed, *_ = [tap.stand() for tap in taps]
            state.armed = armed or state.armed  # the next lookup of forward in this thread, which is PyTorch's
        except Exception as error:
            self.note(error)

    def _of_torch_func(self, cls: type) -> bool:
        """Count what torch makes for itself; True for the Function that torch.func.grad puts around the user's."""
        if cls.__name__.endswith("Generated"):
            return True
        for watch in self.watches:
            if cls.__name__.startswith("Vmapped"):
                name = cls.__name__.removeprefix("Vmapped")
                watch.unseen.batched[name] = watch.unseen.batched.get(name, 0) + 1
            else:
                watch.unseen.compiled += 1
        return False

    def see(self, tap: _Tap, args: tuple[Any, ...]) -> None:
        """Hand a call to all who watch."""
        try:
            given = args[tap.skips :]
            if tap.cls.__module__.startswith("torch._functorch."):
                _seen.required = tuple([isinstance(x, Tensor) and x.requires_grad for x in given])
                self.taps.pop(tap.cls, None)  # torch makes such a class for each call
                return
            required, _seen.required = _seen.required, None
            grad = _seen.grad
            with private.disable_torch_function():  # neither a mode nor a subclass of the user's hears of it
                for watch in self.watches:
                    watch.see(tap.cls, _seen.ctx, given, grad, required)
        except Exception as error:
            self.note(error)

    def see_backward(self, ctx: Any, returned: bool) -> None:
        """Tell all who watch how a backward ended."""
        for watch in self.watches:
            watch.see_backward(id(ctx), returned)

    def note(self, error: Exception) -> None:
        """Count a mistake of ours, which never reaches the program."""
        record(error, "audit's watch", decides=True)
        text = f"{type(error).__name__}: {error}"
        for watch in self.watches:
            watch.errors[text] = watch.errors.get(text, 0) + 1


class _NewCtx:
    """``__init__`` of the base class of all ctxs: notices that one is made, changes nothing."""

    def __get__(self, ctx: Any, owner: type | None = None) -> Any:
        if ctx is None:
            return object.__init__
        _hook.ctx_created(ctx)
        return spy.return_none

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (object, "__init__")


def _watching_wrapper(method: Callable[..., Any], tap: _Tap) -> Callable[..., Any]:
    """Return a function that shows the call to who watches and runs the user's; it takes itself out of tracebacks."""
    see = _hook.see

    def run(*args: Any) -> Any:
        __tracebackhide__ = True
        see(tap, args)
        try:
            return method(*args)
        except BaseException as error:
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise

    return run


def _backward_wrapper(method: Callable[..., Any], tap: _Tap) -> Callable[..., Any]:
    """Return a function that runs the user's backward and tells how it ended; it takes itself out of tracebacks."""
    see = _hook.see_backward

    def run(ctx: Any, *grads: Any) -> Any:
        __tracebackhide__ = True
        try:
            result = method(ctx, *grads)
        except BaseException as error:
            see(ctx, False)
            if error.__traceback__ is not None:
                error.__traceback__ = error.__traceback__.tb_next
            raise
        see(ctx, True)
        return result

    return run


class _Forks:
    count = 0

    def forked(self) -> None:
        self.count += 1


_forks = _Forks()
_hook = _Hook()
_NEW_CTX = _NewCtx()


def _watch_nothing() -> None:
    """Watch nothing in the child of a fork: nobody reads what a watch would keep."""
    for watch in _hook.watches:
        _hook.remove(watch)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_forks.forked, after_in_child=_watch_nothing)


def compiled_meanwhile() -> bool:
    """Return True where torch.compile has compiled anything in this process."""
    utils: Mapping[str, Any] | None = (
        vars(sys.modules["torch._dynamo.utils"]) if "torch._dynamo.utils" in sys.modules else None
    )
    counters = {} if utils is None else utils.get("counters", {})
    return bool(counters and counters["frames"].get("ok"))


private.skip_in_dynamo(_NewCtx.__get__.__code__, _Hook.see.__code__, _Hook.ctx_created.__code__, with_calls=True)
private.skip_in_dynamo(
    *[
        code
        for wrapper in (_watching_wrapper, _backward_wrapper)
        for code in wrapper.__code__.co_consts
        if isinstance(code, types.CodeType)
    ],
    with_calls=False,
)
