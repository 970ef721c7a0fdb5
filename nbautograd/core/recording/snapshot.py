"""Describing what a call meets while it runs: cheap, raw, without a torch operation and without keeping anything alive.

A raw value is a tuple of plain things that ``decode.py`` turns into a ``Value`` when somebody looks.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import numpy as np
import torch

from nbautograd.core.torch_private import tensors as internals

SHAPES, SUMMARY, VALUES = 1, 2, 3
LEVELS = {"off": 0, "shapes": SHAPES, "summary": SUMMARY, "values": VALUES}

WHOLE = 4096  # bytes of a tensor kept whole at level "summary"
BLOCKS, BLOCK = 64, 64  # else so many blocks of so many bytes

PLAIN_TYPES = frozenset({torch.Tensor, torch.nn.Parameter})


class RawTensor(NamedTuple):
    """What a tensor looked like at one moment.

    Attributes:
        type: name of its Python type.
        shape, dtype, device, requires_grad, version: as the tensor gave them.
        grad_fn: name of the node that made it, or None.
        data: bytes copied, or None.
        strides: in elements when ``data`` spans the tensor's memory as it lies, () when it lies in row-major order;
            None when ``data`` is a sample.
        reason: why ``data`` is missing.
        key: ``id`` of the tensor: the same for what was the same tensor in one call; 0 when that is not known.
    """

    type: str
    shape: tuple[int, ...]
    dtype: Any
    device: Any
    requires_grad: bool
    version: int | None
    grad_fn: str | None
    data: bytes | None
    strides: tuple[int, ...] | None
    reason: str
    key: int = 0


class RawObject(NamedTuple):
    """Anything that is not a tensor: its type's name and a short text made without calling the user's code."""

    type: str
    repr: str


VERSION, NODE, DATA, STRIDES = map(RawTensor._fields.index, ("version", "grad_fn", "data", "strides"))


# While recording, raw values are exact tuples (of the fields above): tuples of plain things are let go by the garbage
# collector at its first look, NamedTuples never, and full collections would then cost more than the recording.
Raw = tuple[Any, ...]


def raw(value: Any, level: int) -> Raw:
    """Describe one value at a level; the caller has switched off ``__torch_function__`` where that matters."""
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return _plain(value, level)
    if isinstance(value, torch.Tensor):
        return _foreign(value)
    return kind.__name__, safe_repr(value)


_FIELDS = len(RawTensor._fields)


def named(one: Raw) -> RawTensor | RawObject:
    """A raw value with its fields named, for reading."""
    if len(one) == 2:
        return RawObject(one[0], one[1] if type(one[1]) is str else safe_repr(one[1]))
    tensor = RawTensor._make(one if len(one) == _FIELDS else (*one[:6], None, None, None, "", one[6]))
    return tensor if tensor.device is not None else tensor._replace(device="cpu")


def _plain(tensor: torch.Tensor, level: int) -> Raw:
    requires_grad = tensor.requires_grad
    version: int | None
    try:
        version = tensor._version
    except RuntimeError:  # inference tensors keep no version
        version = None
    name = "Tensor" if type(tensor) is torch.Tensor else "Parameter"
    shape, dtype, device = tuple(tensor.shape), tensor.dtype, tensor.device
    if level < SUMMARY:
        return name, shape, dtype, device, requires_grad, version, None, None, None, "", id(tensor)
    grad_fn = grad_fn_name(tensor) if requires_grad else None
    data, strides, reason = _elements(tensor, level)
    return name, shape, dtype, device, requires_grad, version, grad_fn, data, strides, reason, id(tensor)


def grad_fn_name(tensor: torch.Tensor) -> str | None:
    """The name of the node; not asked of a view, whose node is made anew when its base was changed."""
    return None if tensor.is_leaf or tensor._is_view() else type(tensor.grad_fn).__name__


_GONE = "its storage is gone"


def _elements(tensor: torch.Tensor, level: int) -> tuple[bytes | None, tuple[int, ...] | None, str]:
    """Bytes of the elements, their strides (None for a sample) and the reason why they are missing."""
    reason = internals.bytes_reason(tensor)
    if reason:
        inner = internals.unwrap_for_grad(tensor)
        if inner is tensor or type(inner) not in PLAIN_TYPES:
            return None, None, reason
        return _elements(inner, level)
    strides, span = tensor.stride(), tensor.nbytes
    if span <= WHOLE and span and tensor.is_contiguous():
        address = internals.memory(tensor)
        return (internals.copy_bytes(address, span), strides, "") if address else (None, None, _GONE)
    size, itemsize = tensor.numel(), tensor.element_size()
    if not tensor.is_contiguous():
        span = _span(tensor.shape, strides) * itemsize if size else 0
    if not span:
        return b"", strides, ""
    address = internals.memory(tensor)
    if not address:
        return None, None, _GONE
    if span <= WHOLE or (level >= VALUES and span == size * itemsize):
        return internals.copy_bytes(address, span), strides, ""
    if span == size * itemsize:
        return blocks(address, span), None, ""
    return _picked(tensor.shape, strides, itemsize, address, span, level)


def _span(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def blocks(address: int, span: int) -> bytes:
    """64 blocks of 64 bytes, evenly over the memory, the last one at its end; each starts at a multiple of 64."""
    step = (span - BLOCK) // (BLOCKS - 1) // BLOCK * BLOCK
    if step < BLOCK:
        return internals.copy_bytes(address, span // BLOCK * BLOCK)[:WHOLE]
    shape = (internals.memory_view(address, span), 0, (step, 1))
    return np.ndarray((BLOCKS, BLOCK), np.uint8, *shape).tobytes()


def _picked(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, address: int, span: int, level: int
) -> tuple[bytes, tuple[int, ...] | None, str]:
    """A tensor with gaps or repeats in memory: its elements, or every k-th of the longest dimension for a sample."""
    view = np.ndarray(
        shape, f"V{itemsize}", internals.memory_view(address, span), 0, tuple(s * itemsize for s in strides)
    )
    if level >= VALUES or view.nbytes <= WHOLE:
        return view.tobytes(), _contiguous(shape), ""
    while view.nbytes > WHOLE:
        axis = int(np.argmax(view.shape))
        view = view[tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(view.ndim))]
    return view.tobytes(), None, ""


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def _foreign(tensor: torch.Tensor) -> Raw:
    """A tensor of a subclass: what it says of itself, no data."""
    with internals.disable_torch_function():
        shape = tuple(n if type(n) is int else -1 for n in tensor.shape)
        name = type(tensor).__name__
        seen = (name, shape, tensor.dtype, tensor.device, tensor.requires_grad)
        return *seen, None, None, None, None, f"{name} is a subclass of Tensor", id(tensor)


_SAFE = frozenset(
    {int, float, complex, bool, type(None), bytes, str, torch.Size, torch.dtype, torch.device, slice, range}
)


NEEDS_GRADIENT = "<Tensor requires_grad>"


def safe_repr(value: Any, depth: int = 2) -> str:
    """A short text for anything, without running a ``__repr__`` of the user's."""
    kind = type(value)
    if kind in _SAFE:
        text = repr(value[:100]) if kind is str or kind is bytes else repr(value)
        return text if len(text) <= 120 else text[:119] + "…"
    if isinstance(value, torch.Tensor):
        with internals.disable_torch_function():
            return NEEDS_GRADIENT if value.requires_grad else f"<{kind.__name__}>"
    if kind in (tuple, list) and depth:
        inside = ", ".join(safe_repr(item, depth - 1) for item in value[:4]) + (", …" if len(value) > 4 else "")
        return f"({inside})" if kind is tuple else f"[{inside}]"
    if kind is dict and depth:
        shown = [f"{safe_repr(k, 0)}: {safe_repr(v, depth - 1)}" for k, v in list(value.items())[:4]]
        return "{" + ", ".join(shown) + (", …" if len(value) > 4 else "") + "}"
    if kind is np.ndarray:
        return f"<ndarray {value.dtype} {'x'.join(map(str, value.shape))}>"
    named = kind in (FunctionType, BuiltinFunctionType, type)
    return f"<{kind.__name__} {value.__name__}>" if named else f"<{kind.__name__}>"
