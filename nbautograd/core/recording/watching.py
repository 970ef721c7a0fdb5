"""Watch: every call of every custom Function in a program, with copies of the arguments of a few calls of each kind.

A hook on torch's base class of all ctxs notices each new ctx, so that classes made before or during are met alike, by
whatever way their ``apply`` was kept. It puts a spy in the place of the class's ``forward`` when the class is first
met. All is undone when the last watch ends. Nothing that the program can see is changed or drawn at random; copies are
made below autograd and the user's modes.
"""

from __future__ import annotations

import enum
import functools
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from nbautograd.core import forks, stumbles
from nbautograd.core.display import Phrase
from nbautograd.core.recording import spy
from nbautograd.core.recording.argument_copies import CODE, PLAIN, KeptTensor, NotKept, copied, kept
from nbautograd.core.recording.record import CallRing, InstrumentedFunction, ThreadState, local
from nbautograd.core.recording.recorder import MethodRecorder, Recorder, recording_wrapper
from nbautograd.core.recording.snapshot import DEVICE_OF, DTYPE_OF, IS_NESTED, LAYOUT_OF, REQUIRES_GRAD_OF
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
TEXT = 80  # letters of a string argument, and items of a list, up to which they tell situations apart
DEPTH = 3  # of lists in lists up to which the same is true
DEEPEST = 100  # of lists in lists that are kept: others look into them by recursion


class CopiedCall:
    """Copies of the arguments of one call; tensors are made of what was read when somebody first looks at them.

    Args:
        kept: the arguments of forward without ctx, those by keyword last.
        names: of those by keyword, which only an operation of ``torch.library`` has.
        elements, bytes: of the tensors among them.
    """

    def __init__(self, kept: tuple[Any, ...], names: tuple[str, ...], elements: int, bytes: int) -> None:
        self._kept, self._names = kept, names
        self._made: tuple[Any, ...] | None = None
        self.elements, self.bytes = elements, bytes

    def _all(self) -> tuple[Any, ...]:
        if self._made is None:
            self._made, self._kept = copied(self._kept, _tensor_of), ()
        return self._made

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Return the arguments of forward, without ctx."""
        made = self._all()
        return made[: len(made) - len(self._names)]

    @property
    def keywords(self) -> dict[str, Any]:
        """Return the keyword-only arguments of an operation of ``torch.library``."""
        made = self._all()
        return dict(zip(self._names, made[len(made) - len(self._names) :], strict=True))


def _tensor_of(item: Any) -> Tensor:
    tensor: Tensor = item.tensor() if isinstance(item, KeptTensor) else item
    return tensor


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


Held = weakref.ref[Any]


class BlockEnd:
    """``__exit__`` as an object that a ``with`` statement holds until its block is over, however it ends.

    An interrupt may come before the first step of ``__exit__``, or between the last one of ``__enter__`` and the block:
    then nobody calls anything any more, and a watch would be on for ever. But the statement lets go of this object, a
    C function whose frame is in no traceback, and with it the watch ends.
    """

    def __init__(self, leave: Callable[..., None]) -> None:
        self.leave = leave

    def __get__(self, manager: Any, owner: type | None = None) -> Callable[..., None]:
        if manager is None:
            return self.leave
        held = functools.partial(self.leave, manager)
        manager.block = weakref.ref(held, lambda _: _hook.end_those_over())
        return held


class FunctionWatch:
    """Watches every custom Function while its block runs.

    Attributes:
        functions: what was met, by class, in the order of the first calls.
        unseen: what was not.
        errors: mistakes of our own, which never reach the program: text -> how often.
        caller: who makes the calls now, such as a test; empty where that is not known.
    """

    def __init__(self) -> None:
        self.functions: dict[type, WatchedFunction] = {}
        self.unseen = Unseen()
        self.errors: dict[str, int] = {}
        self.bytes = 0
        self.caller = ""
        self.links: dict[int, Situation] = {}  # by id of a ctx; one that is created takes an older one's id out
        self.block: Held | None = None  # of the ``with`` statement that asked last
        self.held: Held | None = None  # of the one whose block this watch is on for
        self._lock = forks.lock()
        self._forks = 0

    def begin(self, block: Held | None) -> None:
        """Begin to watch."""
        self.held = None if block is None or block() is None else block
        self._forks = _forks.count
        _hook.add(self)

    def end(self) -> None:
        """Stop watching."""
        _hook.remove(self)
        self.unseen.processes += _forks.count - self._forks

    @property
    def running(self) -> bool:
        """True while it watches."""
        return not self.over and any(one is self for one in _hook.watches)

    @property
    def over(self) -> bool:
        """True once the ``with`` statement has let go of its block."""
        return self.held is not None and self.held() is None

    def __enter__(self) -> FunctionWatch:
        self.begin(self.block)
        return self

    def _leave(self, *_: object) -> None:
        self.end()

    __exit__ = BlockEnd(_leave)

    def see(self, cls: type, ctx: int, args: tuple[Any, ...], grad: bool, required: tuple[bool, ...] | None) -> None:
        """Take note of a call of forward.

        Args:
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
                required = tuple([_requires_grad(x) for x in given])
            inner = (one for x in given if isinstance(x, (tuple, list)) for one in x)
            if not grad or not (any(required) or any(map(_requires_grad, inner))):
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
        try:
            elements, size, others = _extent((*args, *keywords.values()))
        except NotKept as problem:
            situation.lacking = situation.lacking or problem.phrase
            return
        largest = situation.copies[-1] if len(situation.copies) == KEPT else None
        if largest is not None and elements >= largest.elements:
            return
        freed = 0 if largest is None else largest.bytes
        room = min(CLASS_BYTES - found.bytes, ALL_BYTES - self.bytes) + freed
        if size + others > room:
            situation.lacking = situation.lacking or Phrase("audit.too_large", size=_mebibytes(size + others))
            return
        if private.profiling():
            situation.lacking = Phrase("audit.profiled")
            return
        try:
            copies, size = _copies((*args, *keywords.values()), required, others, room)
        except NotKept as problem:
            situation.lacking = situation.lacking or problem.phrase
            return
        if largest is not None:
            situation.copies.pop()
        found.bytes += size - freed
        self.bytes += size - freed
        situation.copies.append(CopiedCall(copies, tuple(keywords), elements, size))
        situation.copies.sort(key=lambda call: call.elements)


def _kind(item: Any, required: bool, depth: int = 0) -> Any:
    """Return what tells one argument's situation from another's."""
    if isinstance(item, Tensor):
        layout = LAYOUT_OF(item)
        contiguous = Tensor.is_contiguous(item) if layout is torch.strided and not IS_NESTED(item) else None
        return DTYPE_OF(item), Tensor.dim(item), required, layout, DEVICE_OF(item), contiguous, type(item)
    kind = type(item)
    if kind is str and len(item) > TEXT:
        return str
    if kind is float:
        return float, repr(item)
    if kind in PLAIN:  # of a class of the user's, hashing and comparing would be the user's
        return kind, item
    if isinstance(item, (tuple, list)):
        if depth == DEPTH:
            return kind
        if len(item) > TEXT:
            return kind, frozenset(_kind(x, REQUIRES_GRAD_OF(x)) if isinstance(x, Tensor) else type(x) for x in item)
        return kind, tuple([_kind(one, _requires_grad(one), depth + 1) for one in item])
    if isinstance(item, types.FunctionType):  # one that is made anew for each call has the code of the others
        return types.FunctionType, item.__qualname__, id(item.__code__)
    if isinstance(item, types.MethodType):
        return types.MethodType, _kind(item.__func__, False), type(item.__self__)
    if isinstance(item, functools.partial):
        return functools.partial, _kind(item.func, False)
    return id(item) if isinstance(item, (*CODE, enum.Enum)) else kind


def _requires_grad(item: Any) -> bool:
    return isinstance(item, Tensor) and REQUIRES_GRAD_OF(item)


def _extent(items: Sequence[Any]) -> tuple[int, int, int]:
    """Return how many elements the tensors among these have, their bytes, and those of all else that is counted.

    Raises:
        NotKept: for a list that holds itself, which nothing that reads a kept call would come to the end of.
    """
    elements = size = others = 0
    done: set[int] = set()

    def count(items: Sequence[Any], within: tuple[int, ...]) -> None:
        nonlocal elements, size, others
        for item in items:
            kind = type(item)
            if isinstance(item, Tensor):
                elements += Tensor.numel(item)
                size += Tensor.numel(item) * Tensor.element_size(item)
            elif isinstance(item, np.ndarray):
                others += item.nbytes
            elif kind in PLAIN:
                others += sys.getsizeof(item)
            elif isinstance(item, (tuple, list)):
                if id(item) in within or len(within) == DEEPEST:
                    raise NotKept("audit.not_copied", type=kind.__name__)
                if id(item) not in done:
                    count(item, (*within, id(item)))
                    done.add(id(item))
                    others += 8 * len(item)

    count(items, ())
    return elements, size, others


def _copies(items: tuple[Any, ...], required: tuple[bool, ...], size: int, room: int) -> tuple[tuple[Any, ...], int]:
    """Return copies of the arguments of one call, and the bytes of all tensors in them added to a size.

    Raises:
        NotKept: where they cannot be copied, or take more than the room.
    """
    needs = {id(item): need for item, need in zip(items, required, strict=False)}

    def fit(item: Tensor) -> None:
        nonlocal size
        size += Tensor.numel(item) * Tensor.element_size(item)
        if size > room:
            raise NotKept("audit.too_large", size=_mebibytes(size))

    copies = kept(items, lambda item: needs.get(id(item), REQUIRES_GRAD_OF(item)), fit)
    return copies, size


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.3g} MiB"


class _Tap:
    """The spy on one method of a class, and what stands behind it."""

    def __init__(self, function: InstrumentedFunction, cls: Any, method: str) -> None:
        self.cls, self.method, self.function = cls, method, function
        self.owner: Any = defining_classes(cls).get(method)
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
        watcher = _MethodWatcher(self.function, self.method, self.cls)
        self.spy, self.before = made, found
        self.hook = (self.function if found is None else found[0], recording_wrapper(method, watcher))
        made.hooks[id(self.cls)] = self.hook
        if made is not entry:
            setattr(self.owner, self.method, made)

    def remove(self) -> None:
        """Leave the class as it is without us; what others have put there since stays.

        It may be done again where an interrupt came in the middle.
        """
        if self.spy is None:
            return
        if self.spy.hooks.get(id(self.cls)) is self.hook:
            if self.before is not None:
                self.spy.hooks[id(self.cls)] = self.before
                return
            self.spy.leave(id(self.cls))
        if not self.spy.hooks and vars(self.owner).get(self.method) is self.spy:
            setattr(self.owner, self.method, self.spy.original)


class _MethodWatcher(MethodRecorder):
    """Shows forwards that begin and backwards that end to all who watch; it makes no record."""

    def __init__(self, function: InstrumentedFunction, method: str, cls: type) -> None:
        super().__init__(function, method, _no_log)
        self.cls = cls
        self.forward, self.skips = method == "forward", 0 if function.sets_up else 1

    def begin(self, args: tuple[Any, ...], state: ThreadState) -> Any:
        if not self.forward:
            return args[0]
        _hook.see(self.cls, args[self.skips :])
        return None

    def end(self, record: Any, args: tuple[Any, ...], result: Any, state: ThreadState) -> None:
        _hook.see_backward(record, True)

    def fail(self, record: Any, args: tuple[Any, ...], error: BaseException, state: ThreadState) -> None:
        _hook.see_backward(record, False)


_no_log = Recorder(CallRing())  # where nothing is put


class _CallState(threading.local):
    """State of one thread whose call begins."""

    grad = True
    ctx = 0
    required: tuple[bool, ...] | None = None


_seen = _CallState()


class _Hook:
    """The hook on the base class of all ctxs, there while anybody watches."""

    def __init__(self) -> None:
        self.watches: tuple[FunctionWatch, ...] = ()
        self.taps: dict[type, tuple[_Tap, ...]] = {}
        self._lock = forks.lock()

    def add(self, watch: FunctionWatch) -> None:
        with self._lock:
            self.end_those_over()
            self.watches = (*self.watches, watch)
            spy.ctx_watcher = self.ctx_created
            BackwardCFunction.__init__ = _NEW_CTX  # type: ignore[method-assign,assignment]

    def remove(self, watch: FunctionWatch) -> None:
        with self._lock:
            self.watches = tuple(one for one in self.watches if one is not watch)
            self.end_those_over()

    def end_those_over(self) -> None:
        """End the watches whose block is over, and leave no trace with the last one.

        What an interrupt left half done is done the next time, which is when its ``with`` statement is left.
        """
        with self._lock:
            self.watches = tuple(one for one in self.watches if not one.over)
            if self.watches:
                return
            spy.ctx_watcher = None
            if vars(BackwardCFunction).get("__init__") is _NEW_CTX:
                del BackwardCFunction.__init__
            for cls, taps in tuple(self.taps.items()):
                for tap in taps:
                    tap.remove()
                self.taps.pop(cls, None)

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
                    function, own = InstrumentedFunction(cls), defining_classes(cls)
                    methods = ("forward", *(method for method in ("backward", "vjp") if method in own))
                    taps = self.taps[cls] = tuple(_Tap(function, cls, method) for method in methods)
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

    def see(self, cls: type, given: tuple[Any, ...]) -> None:
        try:
            if cls.__module__.startswith("torch._functorch."):
                _seen.required = tuple([_requires_grad(x) for x in given])
                for tap in self.taps.pop(cls, ()):  # torch makes such a class for each call
                    tap.remove()
                return
            required, _seen.required = _seen.required, None
            grad = _seen.grad
            with private.disable_torch_function():  # neither a mode nor a subclass of the user's hears of it
                for watch in self.watches:
                    watch.see(cls, _seen.ctx, given, grad, required)
        except Exception as error:
            self.note(error)

    def see_backward(self, ctx: Any, returned: bool) -> None:
        for watch in self.watches:
            watch.see_backward(id(ctx), returned)

    def note(self, error: Exception) -> None:
        record(error, "audit's watch", decides=True)
        text = f"{type(error).__name__}: {stumbles.said(error)}"
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


class _Forks:
    count = 0

    def forked(self) -> None:
        self.count += 1


_forks = _Forks()
_hook = _Hook()
_NEW_CTX = _NewCtx()


def _watch_nothing() -> None:
    """Watch nothing in the child of a fork: nobody reads what a watch would keep."""
    _hook.watches = ()
    _hook.end_those_over()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_forks.forked, after_in_child=_watch_nothing)


def compiled_meanwhile() -> bool:
    """Return True where torch.compile has compiled anything in this process."""
    utils: Mapping[str, Any] | None = (
        vars(sys.modules["torch._dynamo.utils"]) if "torch._dynamo.utils" in sys.modules else None
    )
    counters = {} if utils is None else utils.get("counters", {})
    return bool(counters and counters["frames"].get("ok"))


private.skip_in_dynamo(
    _NewCtx.__get__.__code__,
    _Hook.ctx_created.__code__,
    *[method.__code__ for method in (_MethodWatcher.begin, _MethodWatcher.end, _MethodWatcher.fail)],
    with_calls=True,
)
