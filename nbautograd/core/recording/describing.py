"""Describing the values of a call while it runs: the hot path. Each tensor once per call, known by its ``id``.

Which value is which other is told from the ids when the record is read: all values of a call are alive at its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import torch

from nbautograd.core import torch_internals as internals
from nbautograd.core.recording.snapshot import DATA, SUMMARY, VERSION, WHOLE, Raw, grad_fn_name, raw

Known = dict[int, Raw]  # id of a tensor met in this call -> its description

_TENSOR_FIELDS = 11
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_keys, _ORDINARY = internals.dispatch_keys, internals.ORDINARY
_address, _chars = internals.memory, internals.CHARS
_NONE: Raw = ("NoneType", "None")
_LITERALS = frozenset({int, float, bool})


def describe(values: Iterable[Any], level: int, known: Known) -> tuple[Raw, ...]:
    """Describe values in order.

    Args:
        values: what to describe.
        level: how much to keep.
        known: what this call has described; grows.
    """
    described = []
    for value in values:
        kind = type(value)
        if kind is _Tensor or kind is _Parameter:
            key = id(value)
            one = known.get(key)
            if one is None:
                one = known[key] = _tensor(value, kind, level, key)
            described.append(one)
        elif value is None:
            described.append(_NONE)
        elif kind in _LITERALS:
            described.append((kind.__name__, value))  # becomes text when read
        elif isinstance(value, _Tensor):
            described.append(known.get(id(value)) or known.setdefault(id(value), raw(value, level)))
        else:
            described.append(raw(value, level))
    return tuple(described)


def _tensor(tensor: torch.Tensor, kind: type, level: int, key: int) -> Raw:
    """A plain tensor; whatever is not small, ordinary and contiguous goes the long way."""
    name = "Tensor" if kind is _Tensor else "Parameter"
    if level < SUMMARY:
        try:
            version = tensor._version
        except RuntimeError:  # inference tensors keep none
            return raw(tensor, level)
        shape = tuple(tensor.shape)
        return name, shape, tensor.dtype, tensor.device, tensor.requires_grad, version, None, None, None, "", key
    if _keys is not None and _keys(tensor) == _ORDINARY:
        size, address = tensor.nbytes, _address(tensor)
        if size <= WHOLE and address and tensor.is_contiguous():
            needs = tensor.requires_grad
            grad_fn = grad_fn_name(tensor) if needs else None
            shape, dtype, data = tuple(tensor.shape), tensor.dtype, _chars[size](address).raw
            return name, shape, dtype, None, needs, tensor._version, grad_fn, data, (), "", key
    return raw(tensor, level)


def changed(values: Iterable[Any], before: tuple[Raw, ...]) -> tuple[int, ...]:
    """Positions of the values whose version counter moved since they were described."""
    found: tuple[int, ...] = ()
    for i, (value, one) in enumerate(zip(values, before, strict=False)):
        if len(one) == _TENSOR_FIELDS and one[VERSION] is not None and value._version != one[VERSION]:
            found += (i,)
    return found


def weight(known: Known, described_before: int = 0) -> int:
    """Bytes that the descriptions copied, those aside that were there before."""
    total = 0
    for one in islice(known.values(), described_before, None):
        if one[DATA]:
            total += len(one[DATA])
    return total
