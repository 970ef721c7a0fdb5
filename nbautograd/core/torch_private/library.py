"""Operations of ``torch.library`` with a registered gradient: what the user wrote of them, out of torch's own Function.

torch makes a Function for each (``GeneratedBackwardFor_mylib_swish_default``) whose forward and backward are closures
in torch's files around the user's. Private names: the closures' ``op`` and ``info``, and the attributes of
``CustomOpDef``, which torch reads anew for each call; without them an operation is a Function like any other, and its
calls are not recorded.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import weakref
from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch.autograd.function import FunctionMeta

try:
    from torch._library import custom_ops as _custom_ops
except ImportError:  # a torch that keeps them elsewhere
    _custom_ops = None  # type: ignore[assignment,unused-ignore]

try:
    from torch._compile import _disable_dynamo

    _lazy: Any = _disable_dynamo(len)
except (AttributeError, ImportError, TypeError):  # a torch that leaves them to Dynamo in another way
    _lazy = None

_MODULE = "torch._library.autograd"
_ENTRIES = {"_setup_context_fn": "setup_context", "_backward_fn": "backward", "_vmap_fn": "vmap"}

Look = Callable[[str, Any], Any]  # given a method and what torch would call for it: what it shall call


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
        definition: where torch keeps these functions, a ``CustomOpDef`` where the decorator made the operation.
    """

    name: str
    overload: Any
    forward: Callable[..., Any]
    setup_context: Callable[..., Any] | None
    backward: Callable[..., Any]
    vmap: Callable[..., Any] | None
    nested: bool
    keywords: bool
    definition: Any


def is_generated(cls: type) -> bool:
    """Return True for a Function that torch made for an operation of ``torch.library``."""
    return cls.__module__ == _MODULE and cls.__name__.startswith("GeneratedBackwardFor_")


def operation_of(cls: type) -> Operation | None:
    """Return the operation that torch made a Function for; None for other Functions, or where this torch tells less."""
    if not is_generated(cls):
        return None
    inside, nested = _inside(cls)
    op, info = inside.get("op"), inside.get("info")
    return None if op is None or _raw(info, "_backward_fn") is None else _described(op, info, nested)


def _inside(generated: type) -> tuple[dict[str, Any], bool]:
    """Return the variables around torch's forward, and True where another is around it that sees to lists."""
    inside = _closure(vars(generated).get("forward"))
    return (_closure(inside["orig_forward"]), True) if "orig_forward" in inside else (inside, False)


def _described(op: Any, info: Any, nested: bool) -> Operation:
    schema = op._schema
    name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    keywords = any(argument.kwarg_only for argument in schema.arguments)
    setup, backward, vmap = (_raw(info, entry) for entry in _ENTRIES)
    return Operation(name, op, _forward(op, info), setup, backward, vmap, nested, keywords, info)


def _raw(info: Any, name: str) -> Any:
    return getattr(info, "__dict__", {}).get(name)


def as_function(fn: Any) -> Any:
    """Return a Function of the user's own methods for an operation made by ``torch.library.custom_op``.

    Returns:
        The Function; anything else, and an operation without a gradient, as it is.
    """
    op = described(fn)
    return fn if op is None else function_of(op) or fn


def described(fn: Any) -> Operation | None:
    """Return what was registered for an operation with a gradient; None for anything else."""
    definition: Any = None if isinstance(fn, type) else definition_of(fn)
    if _raw(definition, "_backward_fn") is None:
        return None
    op = definition._opoverload
    types = [str(one.type) for one in (*op._schema.arguments, *op._schema.returns)]
    return _described(op, definition, any("Tensor" in text and "List" in text for text in types))


def definition_of(fn: Any) -> Any:
    """Return the ``CustomOpDef`` of an operation; None for one that was made otherwise, and for anything else.

    Args:
        fn: the definition itself, the operation in ``torch.ops``, or a Function that torch or ``function_of`` made.
    """
    if isinstance(fn, type):
        fn = _inside(fn)[0].get("info") if is_generated(fn) else _definitions.get(fn, lambda: None)()
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
    return None if op.nested or op.keywords or not _in_order(op.setup_context) else function_class_of(op)


def recorded_as(definition: Any) -> type | None:
    """Return the Function under whose name and lines an operation's calls are recorded; None without a gradient."""
    op = described(definition)
    return None if op is None else function_class_of(op)


def function_for_generated(generated: type) -> type | None:
    """Return the Function that stands for one that torch made; None without a gradient, or where nothing can use it."""
    op = operation_of(generated)
    return None if op is None else recorded_as(definition_of(generated)) or function_of(op)


def checked_as(cls: type) -> Any:
    """Return what a check calls: the operation that a Function was made of, or else the Function itself."""
    definition = definition_of(cls) if stands_for_operation(cls) else None
    return cls if definition is None else as_function(definition)


def registered(definition: Any) -> tuple[Any, ...]:
    """Return what ``recorded_as`` rests on: while it is the same, so is the Function."""
    kept = definition.__dict__
    return kept["_init_fn"], *kept["_backend_fns"], *[kept[name] for name in _ENTRIES]


def stands_for_operation(cls: Any) -> bool:
    """Return True for a Function that was made of an operation's functions."""
    return cls in _definitions


def look_before(definition: Any, look: Look) -> bool:
    """Have torch call ``look(method, function)`` in the place of each function of an operation.

    The definition gets a class of its own, whose attributes are read through ``look``; what it keeps stays as it is,
    whatever is registered later.

    Returns:
        True where it is so; False where this torch keeps the functions elsewhere.
    """
    kept, kind = getattr(definition, "__dict__", {}), type(definition)
    known = isinstance(kept.get("_backend_fns"), dict) and _ENTRIES.keys() | {"_init_fn"} <= kept.keys()
    if not known or "_look" in vars(kind):
        return known
    entries: dict[str, Any] = {name: _entry(name, partial(look, method)) for name, method in _ENTRIES.items()}
    entries["_backend_fns"] = _entry("_backend_fns", lambda kernels: _Kernels(kernels, look))
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    definition.__class__ = type(kind.__name__, (kind,), {**names, **entries, "_look": staticmethod(look)})
    return True


def import_first(implementation: Any) -> None:
    """Import what torch is to import when it first calls an implementation: seconds, none the user's."""
    code = getattr(implementation, "__code__", None)
    if code is not None and code is getattr(_lazy, "__code__", None):
        importlib.import_module("torch._dynamo")


def looked_before(fn: Any) -> bool:
    """Return True for an operation, or a Function made for it, that ``look_before`` changed."""
    return "_look" in vars(type(definition_of(fn)))


def written_in_main(fn: Any) -> bool:
    """Return True for an operation that was written in a script or a notebook."""
    return getattr(_raw(definition_of(fn), "_init_fn"), "__module__", "") == "__main__"


def leave(definition: Any) -> Any:
    """Undo ``look_before``; returns what it was given, None where nothing is to be undone."""
    look = vars(type(definition)).get("_look")
    if look is not None:
        definition.__class__ = type(definition).__base__
    return None if look is None else look.__func__


def _entry(name: str, seen: Callable[[Any], Any]) -> property:
    return property(lambda self: seen(self.__dict__[name]), lambda self, value: self.__dict__.__setitem__(name, value))


class _Kernels(UserDict[Any, Any]):
    """The implementations of an operation by device, as torch is to call them; changes go to torch's own dict."""

    def __init__(self, kernels: dict[Any, Any], look: Look) -> None:
        self.data, self._look = kernels, look

    def __getitem__(self, device: Any) -> Any:
        return self._look("forward", self.data[device])


def written_as(cls: type) -> type:
    """Return the Function whose source is what the author wrote: the class itself but for an operation's."""
    op = operation_of(cls)
    return cls if op is None else function_of(op) or cls


def name_of(cls: type) -> str:
    """Return the name of a Function, or of the operation that torch made it for, such as ``"mylib::swish"``."""
    op = operation_of(cls)
    return cls.__name__ if op is None else op.name


# by overload, the functions and the Function made of them; by Function, the definition
_functions: weakref.WeakKeyDictionary[Any, tuple[tuple[Any, ...], type]] = weakref.WeakKeyDictionary()
_definitions: weakref.WeakKeyDictionary[type, Callable[[], Any]] = weakref.WeakKeyDictionary()


def function_class_of(op: Operation) -> type:
    """Return the Function made of an operation's functions, the same one until others are registered.

    Where ``function_of`` gives none it cannot be called, and only tells who wrote what.
    """
    parts = (op.forward, op.setup_context, op.backward, op.vmap)
    known = _functions.get(op.overload)
    if known is not None and known[0] == parts:
        return known[1]
    methods = {"forward": op.forward, "setup_context": op.setup_context or _nothing, "backward": op.backward}
    if op.vmap is not None:
        methods["vmap"] = op.vmap
    made = FunctionMeta(op.name, (torch.autograd.Function,), {name: staticmethod(one) for name, one in methods.items()})
    # only now: who is told of the user's classes is not of this
    made.__module__ = getattr(op.backward, "__module__", "")
    _functions[op.overload], _definitions[made] = (parts, made), weakref.ref(op.definition)
    return made


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
    kernels, init = _raw(info, "_backend_fns"), _raw(info, "_init_fn")
    alone = isinstance(kernels, dict) and set(kernels) <= {None} and isinstance(init, FunctionType)
    return init if alone and init is not None else op  # type: ignore[no-any-return]


def _closure(function: Any) -> dict[str, Any]:
    """Return the variables around a function by name; what an engine that records put before it is looked through."""
    function = getattr(function, "original", function)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or function.__closure__ is None:
        return {}
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        with contextlib.suppress(ValueError):  # an empty cell
            found[name] = cell.cell_contents
    return found
