"""Private names of torch about a Function's classes and its ctx, each behind a probe with a way to go on without it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch

from nbautograd.core import forks
from nbautograd.core.torch_private.tensors import functorch_active

_MATERIALIZE = "materialize_grads"
_flag_in_c = getattr(getattr(torch._C, "_FunctionBase", None), _MATERIALIZE, None)
_flags: dict[int, bool] = {}  # by id of a ctx whose forward is still under way
_MOST_FLAGS = 4096  # then they are of forwards that raised, and are let go


def backward_class(cls: type) -> type | None:
    """Return the hidden class whose instances are ``ctx`` and ``grad_fn`` of a Function."""
    hidden = vars(cls).get("_backward_cls")
    return hidden if isinstance(hidden, type) else None


def user_function_code() -> CodeType | None:
    """Return the code that looks up a user's ``backward`` when the engine runs a node."""
    return getattr(getattr(torch.autograd.function.BackwardCFunction, "_get_user_fn", None), "__code__", None)


def machinery() -> tuple[frozenset[CodeType], frozenset[str]]:
    """Return who calls backward, vjp, jvp and vmap for PyTorch: code objects, and files whose every function does."""
    base = torch.autograd.function.BackwardCFunction
    codes = {getattr(getattr(base, name, None), "__code__", None) for name in ("_get_user_fn", "apply", "apply_jvp")}
    try:
        from torch._functorch import autograd_function

        files = frozenset({autograd_function.generate_single_level_function.__code__.co_filename})
    except (ImportError, AttributeError):
        files = frozenset()
    return frozenset(code for code in codes if code is not None), files


def innermost(ctx: Any) -> Any:
    """Return the real ctx inside the wrappers that ``torch.func.vmap`` puts around it."""
    while "_pt_inner_ctx" in getattr(ctx, "__dict__", ()):
        ctx = ctx.__dict__["_pt_inner_ctx"]
    return ctx


def to_save(ctx: Any) -> tuple[Any, ...]:
    """Return what ``save_for_backward`` was given, while forward has not been wrapped up yet.

    ``ctx.saved_tensors`` would run unpack hooks, check versions and may clear; ``to_save`` holds the same objects.
    """
    saved = getattr(ctx, "to_save", None)
    if not saved:
        return ()
    return saved if type(saved) is tuple else (saved,)


def marked(ctx: Any, kind: str) -> tuple[int, ...]:
    """Return the ids of the tensors that ctx marks: ``dirty_tensors`` or ``non_differentiable``."""
    tensors = getattr(ctx, kind, None)
    if not tensors:
        return ()
    return tuple(map(id, tensors)) if isinstance(tensors, tuple) else (id(tensors),)


def attributes(ctx: Any) -> dict[str, Any]:
    """Return what the user put on ctx by name."""
    return {name: value for name, value in ctx.__dict__.items() if not name.startswith("_pt_")} if ctx.__dict__ else {}


def raw_saved(ctx: Any) -> list[Any] | None:
    """Return the saved tensors as they are now, past hooks and version checks; None when they cannot be had."""
    try:
        return [slot.data for slot in ctx._raw_saved_tensors]
    except (AttributeError, RuntimeError):  # freed, or not in this torch
        return None


class _MaterializeFlag:
    """Stands on the hidden backward class before torch's own attribute, which can be set but not read."""

    def __get__(self, ctx: Any, owner: type | None = None) -> Any:
        return _flag_in_c.__get__(ctx, owner)  # type: ignore[union-attr]

    def __set__(self, ctx: Any, value: Any) -> None:
        __tracebackhide__ = True
        try:
            _flag_in_c.__set__(ctx, value)  # type: ignore[union-attr]
        except BaseException as error:
            error.__traceback__ = None
            raise
        note_materialize_grads(ctx, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (torch._C._FunctionBase, _MATERIALIZE)


def note_materialize_grads(ctx: Any, value: Any) -> None:
    """Remember what ``set_materialize_grads`` was given."""
    if len(_flags) > _MOST_FLAGS:
        _flags.clear()
    _flags[id(ctx)] = value is True


def take_materialize_grads(ctx: Any) -> bool:
    """Return and forget the flag of a ctx whose forward has ended."""
    return _flags.pop(id(innermost(ctx)), True) if _flags else True


def watch_materialize_grads(cls: type) -> None:
    """Have a Function's ``set_materialize_grads`` remembered."""
    hidden = backward_class(cls)
    if hidden is not None and _flag_in_c is not None and _MATERIALIZE not in vars(hidden):
        setattr(hidden, _MATERIALIZE, _MaterializeFlag())


def leave_materialize_grads(cls: type) -> None:
    """Undo ``watch_materialize_grads``."""
    hidden = backward_class(cls)
    if hidden is not None and isinstance(vars(hidden).get(_MATERIALIZE), _MaterializeFlag):
        delattr(hidden, _MATERIALIZE)


class _Replaced(threading.local):
    """Substitutes for ``apply`` in one thread, by Function."""

    def __init__(self) -> None:
        self.run: dict[type, Callable[..., Any]] = {}


_replaced = _Replaced()


class _Apply:
    """Stands on a class of torch's before its own ``apply``, which every thread gets that replaces nothing.

    Args:
        base: the class.
        transformed: True to stand aside unless a transform of ``torch.func`` is active.
    """

    def __init__(self, base: Any, transformed: bool) -> None:
        self.base, self.transformed, self.users = base, transformed, 0
        self.own: Any = None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        run = _replaced.run.get(owner)
        if run is not None and (functorch_active() or not self.transformed):
            return run
        return self.resolved(owner)

    def resolved(self, cls: Any) -> Callable[..., Any]:
        """Return what a Function would have without this."""
        above: Any = super(self.base, cls)
        return above.apply if self.own is None else self.own.__get__(None, cls)  # type: ignore[no-any-return]

    def adjust_users(self, count: int) -> None:
        """Change the number of users; at zero restore the class."""
        self.users += count
        if self.users == count > 0:
            self.own, self.base.apply = vars(self.base).get("apply"), self
        elif not self.users and self.own is None:
            del self.base.apply
        elif not self.users:
            self.base.apply = self.own


_Function = torch.autograd.Function
# True where `Function.apply` is Python's and ends with `super().apply`, which an `apply` that was looked up before
# comes to as well; since torch 2.14 it is C's own, and only one that is looked up meanwhile can be another
sees_earlier_apply = isinstance(vars(_Function).get("apply"), classmethod)
_within: Any = getattr(torch.autograd.function, "_SingleLevelFunction", _Function) if sees_earlier_apply else _Function
_LAST = _Apply(_within, False)
_FIRST = _Apply(_Function, True)  # a transform would go another way from there
_lock = forks.lock()


@contextlib.contextmanager
def apply_replaced(cls: type, run: Callable[..., Any], *, transformed: bool = False) -> Iterator[Callable[..., Any]]:
    """Have calls of a Function run something else in this thread, for the time.

    However ``apply`` is reached where ``sees_earlier_apply``; else where it is looked up meanwhile.

    Args:
        cls: the Function, which stays as it is, in this thread and in all others.
        run: takes the arguments of ``apply``.
        transformed: True to have calls inside a transform of ``torch.func`` run it as well, where ``apply`` is looked
            up on the class.

    Yields:
        What would have been run.
    """
    before = _replaced.run.get(cls)
    standing = [_LAST, _FIRST] if transformed and _within is not _Function else [_LAST]
    with _lock:
        for one in standing:
            one.adjust_users(1)
    _replaced.run[cls] = run
    try:
        yield before or _LAST.resolved(cls)
    finally:
        del _replaced.run[cls]
        if before is not None:
            _replaced.run[cls] = before
        with _lock:
            for one in standing:
                one.adjust_users(-1)
