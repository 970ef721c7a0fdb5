"""``ctx.set_materialize_grads``: the flag is write-only in torch, so it is heard when it is set."""

from __future__ import annotations

from typing import Any

import torch

from nbautograd.core.torch_private import tensors as internals

_NAME = "materialize_grads"
_in_c = getattr(torch._C._FunctionBase, _NAME, None)
_set: dict[int, bool] = {}  # by id of a ctx whose forward is still under way


class _Flag:
    """Stands on the hidden backward class before torch's own attribute, and behaves like it."""

    def __get__(self, ctx: Any, owner: type | None = None) -> Any:
        return _in_c.__get__(ctx, owner)  # type: ignore[union-attr]

    def __set__(self, ctx: Any, value: Any) -> None:
        __tracebackhide__ = True
        try:
            _in_c.__set__(ctx, value)  # type: ignore[union-attr]
        except BaseException as error:
            error.__traceback__ = None
            raise
        heard(ctx, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (torch._C._FunctionBase, _NAME)


def heard(ctx: Any, value: Any) -> None:
    """The flag was set."""
    if len(_set) > 4096:  # of forwards that raised
        _set.clear()
    _set[id(ctx)] = value is True


def told(ctx: Any) -> bool:
    """Whether the gradients of this ctx are materialised; asked once, when forward has ended."""
    while "_pt_inner_ctx" in getattr(ctx, "__dict__", ()):
        ctx = ctx.__dict__["_pt_inner_ctx"]
    return _set.pop(id(ctx), True)


def listen(cls: type) -> None:
    """Hear the flag of a Function being set."""
    hidden = internals.backward_class(cls)
    if hidden is not None and _in_c is not None and _NAME not in vars(hidden):
        setattr(hidden, _NAME, _Flag())


def leave(cls: type) -> None:
    """Take ``listen`` back."""
    hidden = internals.backward_class(cls)
    if hidden is not None and isinstance(vars(hidden).get(_NAME), _Flag):
        delattr(hidden, _NAME)
