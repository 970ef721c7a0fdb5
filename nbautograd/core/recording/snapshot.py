"""Snapshots: what is kept of a value at one moment, taken without a torch operation and without keeping it alive.

One encoding from here to ``Call``: a record holds snapshots, ``decode.py`` turns them into Values when somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import torch

from nbautograd.core.display import Phrase
from nbautograd.core.recording import devices
from nbautograd.core.recording.memory import Request, fetch
from nbautograd.core.torch_private import tensors as private

SHAPES, SUMMARY, VALUES = 1, 2, 3
LEVELS = {"off": 0, "shapes": SHAPES, "summary": SUMMARY, "values": VALUES}

_PLAIN_NAMES: dict[type, str] = {torch.Tensor: "Tensor", torch.nn.Parameter: "Parameter"}
PLAIN_TYPES = frozenset(_PLAIN_NAMES)
_CPU = torch.device("cpu")


@dataclass(slots=True, eq=False)
class TensorSnapshot:
    """What a tensor looked like at one moment.

    Attributes:
        type: name of its Python type.
        shape, dtype, device, requires_grad: as the tensor gave them; a size that is no number is -1, and the shape is
            None where the tensor has none (nested ones).
        version: its in-place counter, None where it has none.
        grad_fn: name of the node that made it, or None.
        key: ``id`` of the tensor: the same for what was the same tensor in one call; 0 when that is not known.
        storage, address: what tells its storage and its first element apart from those of others; 0 when not known.
        nbytes: size of its elements in bytes.
        is_view: True for a view that autograd knows of.
        data: the elements as bytes, or a copy from a device that is still under way, or None.
        strides: in elements when ``data`` spans the tensor's memory as it lies, () when it lies in row-major order;
            None when ``data`` is a sample.
        reason: why ``data`` is missing, None when it is not.
    """

    type: str
    shape: tuple[int, ...] | None
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    version: int | None
    grad_fn: str | None
    key: int
    storage: int
    address: int
    nbytes: int
    is_view: bool = False
    data: bytes | devices.PendingCopy | None = None
    strides: tuple[int, ...] | None = None
    reason: Phrase | None = None


@dataclass(slots=True, eq=False)
class ObjectSnapshot:
    """Anything that is not a tensor: its type's name and a short text made without calling the user's code."""

    type: str
    repr: str


Snapshot = TensorSnapshot | ObjectSnapshot
Known = dict[int, TensorSnapshot]  # by id of a tensor: its snapshot in this call

_NONE = ObjectSnapshot("NoneType", "None")
_GONE = Phrase("recording.missing.storage")


def snapshots(values: Iterable[Any], level: int, known: Known | None = None) -> tuple[Snapshot, ...]:
    """Take a snapshot of each value; a tensor that stands twice, or was met before in this call, shares one.

    Args:
        values: anything.
        level: how much to keep, ``SHAPES``, ``SUMMARY`` or ``VALUES``.
        known: what this call has taken before; grows.
    """
    known = {} if known is None else known
    taken: list[Snapshot] = []
    wanted: list[tuple[TensorSnapshot, Request]] = []
    for value in values:
        kind = type(value)
        if value is None:
            taken.append(_NONE)
        elif issubclass(kind, torch.Tensor):
            one = known.get(id(value))
            if one is None:
                one = known[id(value)] = _tensor(value, kind, level, wanted)
            taken.append(one)
        else:
            taken.append(ObjectSnapshot(kind.__name__, safe_repr(value)))
    if wanted:
        read(wanted)
    return tuple(taken)


def read(wanted: list[tuple[TensorSnapshot, Request]]) -> None:
    """Fill in the elements of some snapshots, all in one copy."""
    sentence = fetch([request for _, request in wanted])
    for one, request in wanted:
        one.data, one.strides = request.data, request.strides
        if request.data is None:
            one.reason = Phrase(sentence) if sentence else _GONE


def changed_elements(tensors: list[tuple[Any, TensorSnapshot]]) -> list[bool]:
    """Return for each tensor that was kept whole whether its elements are others now."""
    requests = [Request(tensor, None, sampled=True) for tensor, _ in tensors]
    if requests:
        fetch(requests)
    pairs = zip(requests, tensors, strict=True)
    return [r.data is not None and r.strides is not None and r.data != before.data for r, (_, before) in pairs]


def _tensor(value: Any, kind: type, level: int, wanted: list[tuple[TensorSnapshot, Request]]) -> TensorSnapshot:
    name = _PLAIN_NAMES.get(kind)
    if name is None:
        return _of_subclass(value)
    keys = private.dispatch_keys(value)
    ordinary = keys == private.ORDINARY
    if not keys or not (ordinary or keys == private.INFERENCE):
        return _unusual(value, name, level, wanted)
    requires_grad = value.requires_grad
    version = value._version if ordinary else None
    one = TensorSnapshot(
        name, tuple(value.shape), value.dtype, _CPU, requires_grad, version,
        _grad_fn_name(value) if requires_grad else None, id(value), private.storage_address(value),
        private.data_address(value), value.nbytes, value._is_view(),
    )  # fmt: skip
    if level >= SUMMARY:
        wanted.append((one, Request(value, version, level == SUMMARY)))
    return one


def _grad_fn_name(tensor: torch.Tensor) -> str | None:
    """Return the name of the node; not of a view's, whose node is made anew when its base was changed."""
    return None if tensor.is_leaf or tensor._is_view() else type(tensor.grad_fn).__name__


def _unusual(value: Any, name: str, level: int, wanted: list[tuple[TensorSnapshot, Request]]) -> TensorSnapshot:
    """Describe a tensor that is not ordinary: each thing is asked for on its own, since any may be refused."""
    shape = _ask(lambda: _sizes(value), None)
    device = _ask(lambda: value.device, _CPU)
    one = TensorSnapshot(
        name, shape, value.dtype, device, _ask(lambda: value.requires_grad, False), _ask(lambda: value._version, None),
        _ask(lambda: _grad_fn_name(value) if value.requires_grad else None, None), id(value),
        0, 0, _ask(lambda: value.nbytes, 0),
    )  # fmt: skip
    if level < SUMMARY:
        return one
    inner = _ask(lambda: private.unwrap_for_grad(value), value)
    if inner is not value and private.dispatch_keys(inner) in (private.ORDINARY, private.INFERENCE):
        wanted.append((one, Request(inner, None, level == SUMMARY)))  # inside torch.func.grad or jvp
        return one
    batched = _ask(lambda: private.vmap_level(value), None)
    if batched is not None:
        one.reason = Phrase("recording.missing.vmap", level=batched)
    elif device.type in ("cpu", "meta"):
        one.reason = Phrase(f"recording.missing.{'meta' if device.type == 'meta' else 'layout'}")
    else:
        one.data, one.strides, one.reason = devices.copied(value, level == SUMMARY)
    return one


def _ask(question: Any, otherwise: Any) -> Any:
    try:
        return question()
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return otherwise


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple([n if type(n) is int else -1 for n in value.shape])


def _of_subclass(value: Any) -> TensorSnapshot:
    """Describe a tensor of a subclass by what it says of itself; its elements are its own business."""
    with private.disable_torch_function():
        name = type(value).__name__
        return TensorSnapshot(
            name, _ask(lambda: _sizes(value), None), value.dtype, _ask(lambda: value.device, _CPU),
            _ask(lambda: value.requires_grad, False), None, None, id(value), 0, 0, 0,
            reason=Phrase("recording.missing.subclass", type=name),
        )  # fmt: skip


_LITERALS = frozenset({int, float, bool})
_SAFE = _LITERALS | {complex, bytes, str, torch.Size, torch.dtype, torch.device, slice, range, type(None)}
_LONGEST = 120  # characters of a text
_MOST_SHOWN = 4  # items of a container

NEEDS_GRADIENT = "<Tensor requires_grad>"


def safe_repr(value: Any, depth: int = 2) -> str:
    """Return a short text for anything, without running a ``__repr__`` of the user's."""
    kind = type(value)
    if kind in _LITERALS:
        return repr(value)
    if kind in _SAFE:
        text = repr(value[:100]) if kind is str or kind is bytes else repr(value)
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if issubclass(kind, torch.Tensor):
        with private.disable_torch_function():
            return NEEDS_GRADIENT if value.requires_grad else f"<{kind.__name__}>"
    if kind in (tuple, list) and depth:
        inside = ", ".join(safe_repr(item, depth - 1) for item in value[:_MOST_SHOWN])
        inside += ", …" if len(value) > _MOST_SHOWN else ""
        return f"({inside})" if kind is tuple else f"[{inside}]"
    if kind is dict and depth:
        items = list(value.items())[:_MOST_SHOWN]
        shown = [f"{safe_repr(k, 0)}: {safe_repr(v, depth - 1)}" for k, v in items]
        return "{" + ", ".join(shown) + (", …" if len(value) > _MOST_SHOWN else "") + "}"
    if kind is np.ndarray:
        return f"<ndarray {value.dtype} {'x'.join(map(str, value.shape))}>"
    named = kind in (FunctionType, BuiltinFunctionType, type)
    return f"<{kind.__name__} {value.__name__}>" if named else f"<{kind.__name__}>"
