"""Private names of torch about a Function's classes and its ctx, each behind a probe with a way to go on without it."""

from __future__ import annotations

from types import CodeType
from typing import Any

import torch

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


def marked(ctx: Any, kind: str) -> tuple[Any, ...]:
    """Return the tensors that ctx marks: ``dirty_tensors`` or ``non_differentiable``."""
    tensors = getattr(ctx, kind, None)
    if not tensors:
        return ()
    return tensors if isinstance(tensors, tuple) else (tensors,)


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
