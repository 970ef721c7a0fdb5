"""Operations of ``torch.library`` with a registered gradient: what the user wrote of them, out of torch's own Function.

torch makes a Function for each (``GeneratedBackwardFor_mylib_swish_default``) whose forward and backward are closures
in torch's files around the user's. Private names: the closures' ``op`` and ``info``, and the attributes of
``CustomOpDef``; without them an operation is a Function like any other.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch.autograd.function import FunctionMeta

try:
    from torch._library import custom_ops as _custom_ops
except ImportError:  # a torch that keeps them elsewhere
    _custom_ops = None  # type: ignore[assignment,unused-ignore]

_MODULE = "torch._library.autograd"


@dataclass(frozen=True)
class Operation:
    """An operation of ``torch.library`` that has a gradient.

    Attributes:
        name: such as ``"mylib::swish"``.
        overload: what runs it, an ``OpOverload``.
        forward: the user's implementation where there is one for all devices, else the overload.
        setup_context, backward: as the user registered them; setup_context may be None.
        vmap: the rule for batches, where one is registered.
        nested: True where it takes or returns lists of tensors.
        keywords: True where some of its arguments are keyword-only.
    """

    name: str
    overload: Any
    forward: Callable[..., Any]
    setup_context: Callable[..., Any] | None
    backward: Callable[..., Any]
    vmap: Callable[..., Any] | None
    nested: bool
    keywords: bool


def is_generated(cls: type) -> bool:
    """Return True for a Function that torch made for an operation of ``torch.library``."""
    return cls.__module__ == _MODULE and cls.__name__.startswith("GeneratedBackwardFor_")


def operation_of(cls: type) -> Operation | None:
    """Return the operation that torch made a Function for; None for other Functions, or where this torch tells less."""
    if not is_generated(cls):
        return None
    inside = _closure(vars(cls).get("forward"))
    nested = "orig_forward" in inside
    if nested:
        inside = _closure(inside["orig_forward"])
    op, info = inside.get("op"), inside.get("info")
    return None if op is None or getattr(info, "_backward_fn", None) is None else _described(op, info, nested)


def _described(op: Any, info: Any, nested: bool) -> Operation:
    schema = op._schema
    name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    keywords = any(argument.kwarg_only for argument in schema.arguments)
    setup, vmap = getattr(info, "_setup_context_fn", None), getattr(info, "_vmap_fn", None)
    return Operation(name, op, _forward(op, info), setup, info._backward_fn, vmap, nested, keywords)


def _takes_lists(op: Any) -> bool:
    return any("Tensor" in str(a.type) and "List" in str(a.type) for a in (*op._schema.arguments, *op._schema.returns))


def as_function(fn: Any) -> Any:
    """Return a Function of the user's own methods for an operation made by ``torch.library.custom_op``.

    Args:
        fn: what the decorator returned, or the operation in ``torch.ops``.

    Returns:
        The Function; anything else, and an operation without a gradient, as it is.
    """
    op = described(fn)
    return fn if op is None else function_of(op) or fn


def described(fn: Any) -> Operation | None:
    """Return what was registered for an operation with a gradient; None for anything else."""
    definition = _definition(fn)
    if getattr(definition, "_backward_fn", None) is None:
        return None
    return _described(definition._opoverload, definition, _takes_lists(definition._opoverload))


def _definition(fn: Any) -> Any:
    overload = fn
    if isinstance(fn, torch._ops.OpOverloadPacket):
        overload = getattr(fn, "default", None)
    if isinstance(overload, torch._ops.OpOverload):
        return getattr(_custom_ops, "OPDEFS", {}).get(overload._schema.name)
    return fn if isinstance(fn, getattr(_custom_ops, "CustomOpDef", ())) else None


def arguments_of(cls: type, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of an operation, and those by keyword, from what torch gives the Function it made."""
    spec = getattr(args[-1], "input_spec", None) if args else None
    if spec is not None:
        args = tuple(torch.utils._pytree.tree_unflatten(list(args[:-1]), spec))
    return args[:-1], dict(getattr(args[-1], "keyword_only_args", None) or {})


def function_of(op: Operation) -> type | None:
    """Return a Function made of the user's own forward, setup_context and backward; None where it takes another form.

    Its backward is right exactly when the operation's is, and a check that looks at its source sees the user's lines.
    """
    if op.nested or op.keywords or not _in_order(op.setup_context):
        return None
    known = _made.get(op.backward)
    if known is None or getattr(vars(known).get("vmap"), "__func__", None) is not op.vmap:
        known = _made[op.backward] = _function(op)
    return known


def stands_for_operation(cls: type) -> bool:
    """Return True for a Function that ``function_of`` made."""
    return cls in _made.values()


def written_as(cls: type) -> type:
    """Return the Function whose source is what the author wrote: the class itself but for an operation's."""
    op = operation_of(cls)
    return cls if op is None else function_of(op) or cls


def name_of(cls: type) -> str:
    """Return the name of a Function, or of the operation that torch made it for, such as ``"mylib::swish"``."""
    op = operation_of(cls)
    return cls.__name__ if op is None else op.name


_made: weakref.WeakKeyDictionary[Any, type] = weakref.WeakKeyDictionary()


def _function(op: Operation) -> type:
    methods = {
        "forward": staticmethod(op.forward),
        "setup_context": staticmethod(op.setup_context or _nothing),
        "backward": staticmethod(op.backward),
    }
    if op.vmap is not None:
        methods["vmap"] = staticmethod(op.vmap)
    module = getattr(op.backward, "__module__", "")
    return FunctionMeta(op.name, (torch.autograd.Function,), {**methods, "__module__": module})


def _nothing(ctx: Any, inputs: Any, output: Any) -> None:
    """Stand for a setup_context that keeps nothing."""


def _in_order(setup: Callable[..., Any] | None) -> bool:
    """Return True for a setup_context that can be called by position, as a Function's is."""
    try:
        return setup is None or list(inspect.signature(setup).parameters) == ["ctx", "inputs", "output"]
    except (TypeError, ValueError):
        return False


def _forward(op: Any, info: Any) -> Callable[..., Any]:
    """Return the user's implementation where it is the only one, so that its source can be read."""
    kernels = getattr(info, "_backend_fns", None)
    init = getattr(info, "_init_fn", None)
    alone = isinstance(kernels, dict) and set(kernels) <= {None} and isinstance(init, FunctionType)
    return init if alone and init is not None else op  # type: ignore[no-any-return]


def _closure(function: Any) -> dict[str, Any]:
    """Return the variables around a function by name; what an engine that records put before it is looked through."""
    function = getattr(function, "original", function)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or function.__closure__ is None:
        return {}
    names, cells = function.__code__.co_freevars, function.__closure__
    return {name: cell.cell_contents for name, cell in zip(names, cells, strict=True) if _filled(cell)}


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
