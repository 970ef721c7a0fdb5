"""Raw descriptions, made while a call ran, turned into Values when somebody looks: here statistics are computed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from nbautograd.core.recording.snapshot import RawObject, RawTensor
from nbautograd.core.statistics import shown, statistics, thumbnail
from nbautograd.core.values import TensorSummary, Value, tensor_repr

_NUMPY: dict[torch.dtype, Any] = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.int16: np.int16,
    torch.int8: np.int8,
    torch.uint8: np.uint8,
    torch.bool: np.bool_,
}


def value_of(name: str, raw: RawTensor | RawObject, same_as: str = "") -> Value:
    """A Value from what was kept of it."""
    if isinstance(raw, RawTensor):
        summary = summary_of(raw)
        return Value(name, raw.type, tensor_repr(summary), summary, same_as)
    return Value(name, raw.type, raw.repr, None, same_as)


def summary_of(raw: RawTensor) -> TensorSummary:
    """A TensorSummary from what was kept of a tensor."""
    described: dict[str, Any] = {
        "shape": tuple(raw.shape),
        "dtype": str(raw.dtype).removeprefix("torch."),
        "device": str(raw.device),
        "requires_grad": raw.requires_grad,
        "grad_fn": raw.grad_fn,
        "version": raw.version,
        "numel": math.prod(raw.shape),
    }
    if raw.data is None:
        return TensorSummary(**described, reason=raw.reason)
    array = elements(raw)
    if raw.strides is None:
        return TensorSummary(**described, **statistics(array), sampled=True)
    return TensorSummary(**described, **statistics(array), thumbnail=thumbnail(array), values=shown(array))


def elements(raw: RawTensor) -> np.ndarray[Any, Any]:
    """The elements that were kept: in the tensor's shape, or flat when they are a sample."""
    assert raw.data is not None
    flat = _flat(raw.data, raw.dtype)
    if raw.strides is None:
        return flat
    if not flat.size or not raw.strides:
        return flat.reshape(tuple(raw.shape))
    strides = tuple(step * flat.itemsize for step in raw.strides)
    return np.lib.stride_tricks.as_strided(flat, tuple(raw.shape), strides, writeable=False)


def _flat(data: bytes, dtype: torch.dtype) -> np.ndarray[Any, Any]:
    known = _NUMPY.get(dtype)
    if known is not None:
        return np.frombuffer(data, known)
    if dtype == torch.bfloat16:  # the upper half of a float32
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    if not data:
        return np.empty(0, np.float32)
    with torch.no_grad():
        tensor = torch.frombuffer(bytearray(data), dtype=dtype)
        return (torch.view_as_real(tensor).float() if tensor.is_complex() else tensor.to(torch.float64)).numpy()
