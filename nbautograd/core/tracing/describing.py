"""Description of a dispatch without running any code of the user's: no ``__repr__``, no torch operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import resolve_name

from nbautograd.core.recording.live_log import value_of
from nbautograd.core.recording.snapshot import PLAIN_TYPES, SUMMARY, ObjectSnapshot, Snapshot, safe_repr, snapshots
from nbautograd.core.torch_private import tensors as internals
from nbautograd.core.values import Value

SHORT = 6  # characters of a number that is written in full
LISTED = 4  # attributes or items that are shown of an object


def function_name(func: Any) -> str:
    """``"torch.mean"``, ``"torch.Tensor.add"``, ``"aten.add.Tensor"``.

    Example:
        >>> import torch
        >>> from nbautograd.core.tracing.describing import function_name
        >>> function_name(torch.mean)
        'torch.mean'
    """
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(func)
    with contextlib.suppress(Exception):
        found = resolve_name(func)
        if isinstance(found, str):
            return found.removesuffix(".__get__")
    return str(getattr(func, "__qualname__", None) or getattr(func, "__name__", None) or type(func).__name__)


def describe(value: Any) -> Snapshot:
    """One argument or result as plain data, for ``decoded``; nothing of it stays alive."""
    if type(value) in PLAIN_TYPES:
        return snapshots([value], SUMMARY)[0]
    if isinstance(value, torch.Tensor) and not _dispatches(type(value)):
        with internals.disable_torch_function():
            return snapshots([value], SUMMARY)[0]
    return ObjectSnapshot(type(value).__name__, _text(value))


def decoded(name: str, one: Snapshot) -> Value:
    """The Value of a description."""
    return value_of(name, one)


def implementation(method: Callable[..., Any], cls: type, func: Any) -> tuple[str, int | None]:
    """Name and line of what a table that the method reads has for ``func``; ``("", None)`` without one.

    The table is any dict among the names that the method's code reads: ``HANDLED_FUNCTIONS[func]`` as the PyTorch
    documentation writes it, a global or an attribute of the class.
    """
    scope = method.__globals__
    for name in method.__code__.co_names:
        table = scope.get(name, vars(cls).get(name))
        if type(table) is dict and func in table:
            function = getattr(table[func], "__func__", table[func])
            code = getattr(function, "__code__", None)
            return getattr(function, "__name__", type(function).__name__), getattr(code, "co_firstlineno", None)
    return "", None


def _dispatches(kind: type) -> bool:
    """Return True if asking such a tensor for its shape may run the user's ``__torch_dispatch__``."""
    return getattr(kind, "__torch_dispatch__", None) is not torch.Tensor.__torch_dispatch__


def _text(value: Any, depth: int = 2) -> str:
    """``<ScalarTensor _N=2 _value=3>``: a text made of what the object holds."""
    kind = type(value)
    if kind in PLAIN_TYPES:
        return _tensor_text(value)
    if kind is float:
        return repr(value) if len(repr(value)) <= SHORT else f"{value:.4g}"
    if kind in (list, tuple) and depth:
        inside = ", ".join(_text(item, depth - 1) for item in value[:LISTED]) + (", …" if len(value) > LISTED else "")
        return f"[{inside}]" if kind is list else f"({inside})"
    held = _attributes(value)
    if not held or not depth:
        return safe_repr(value)
    inside = " ".join(f"{name}={_text(item, depth - 1)}" for name, item in list(held.items())[:LISTED])
    return f"<{kind.__name__} {inside}{' …' if len(held) > LISTED else ''}>"


def _attributes(value: Any) -> dict[str, Any]:
    """Return an object's own ``__dict__``; nothing where code of its own would answer."""
    if isinstance(value, (type, torch.nn.Module)) or callable(value) or type(value).__module__ == "builtins":
        return {}
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def _tensor_text(tensor: torch.Tensor) -> str:
    shape = "×".join(map(str, tensor.shape))
    return f"{str(tensor.dtype).removeprefix('torch.')} {shape}".strip()
