"""Describing the values of a call while it runs: the hot path. Each tensor once per call, known by its ``id``.

Which value is which other is told from the ids when the record is read: all values of a call are alive at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from nbautograd.core.recording.snapshot import DATA, SHAPES, SUMMARY, VALUES, WHOLE, Raw, raw
from nbautograd.core.torch_private import tensors as internals

Known = dict[int, Any]  # id of a tensor met in this call -> its description
Describe = Callable[[Iterable[Any], Known], tuple[Raw, ...]]

COPIED = -1  # where ``known`` counts the bytes that were copied

_Tensor = torch.Tensor
_NAMES: dict[Any, str] = {torch.Tensor: "Tensor", torch.nn.Parameter: "Parameter"}
_address, _chars = internals.memory, internals.CHARS
_NONE: Raw = ("NoneType", "None")
_LITERALS = frozenset({int, float, bool})
_REAL = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
                   torch.int8, torch.uint8, torch.bool})  # fmt: skip
_READABLE = internals.dispatch_keys is not None


class _Shapes(dict[torch.Size, tuple[int, ...]]):
    """Each shape as one plain tuple, however many records have it."""

    def __missing__(self, size: torch.Size) -> tuple[int, ...]:
        if len(self) > 4096:
            self.clear()
        found = self[size] = tuple(size)
        return found


_plain = _Shapes()


def _other(value: Any, level: int, known: Known) -> Raw:
    """What is no plain tensor."""
    if value is None:
        return _NONE
    kind = type(value)
    if kind in _LITERALS:
        return kind.__name__, value  # becomes text when read
    if isinstance(value, _Tensor):
        one: Raw = known.get(id(value)) or known.setdefault(id(value), raw(value, level))
        return one
    return raw(value, level)


def shapes(values: Iterable[Any], known: Known) -> tuple[Raw, ...]:
    """Describe values in order, without their elements; known is what this call has described, and grows."""
    described = []
    for value in values:
        name = _NAMES.get(type(value))
        if name is None:
            described.append(_other(value, SHAPES, known))
            continue
        key = id(value)
        one = known.get(key)
        if one is None:
            try:
                one = name, _plain[value.shape], value.dtype, value.device, value.requires_grad, value._version, key
            except RuntimeError:  # inference tensors keep no version
                one = raw(value, SHAPES)
            known[key] = one
        described.append(one)
    return tuple(described)


def summaries(values: Iterable[Any], known: Known) -> tuple[Raw, ...]:
    """As ``shapes``, with the bytes of small tensors; what is not small, ordinary and contiguous goes the long way."""
    described = []
    copied = 0
    for value in values:
        name = _NAMES.get(type(value))
        if name is None:
            described.append(_other(value, SUMMARY, known))
            continue
        key = id(value)
        one = known.get(key)
        if one is None:
            try:
                one = _small(value, name, key) or raw(value, SUMMARY)
            except (RuntimeError, NotImplementedError):  # no elements to be had, or no version
                one = raw(value, SUMMARY)
            known[key] = one
            if one[DATA] is not None:
                copied += len(one[DATA])
        described.append(one)
    if copied:
        known[COPIED] = known.get(COPIED, 0) + copied
    return tuple(described)


def _small(value: torch.Tensor, name: str, key: int) -> Raw | None:
    """A small ordinary tensor, whole; None for others. Batched, opaque and empty ones have no address."""
    size, dtype = value.nbytes, value.dtype
    if size > WHOLE or dtype not in _REAL or not value.is_cpu or not value.is_contiguous() or value.is_neg():
        return None
    address = _address(value)
    if not address or not _READABLE:
        return None
    needs = value.requires_grad
    # not asked of a view, whose node is made anew when its base was changed
    made = None if not needs or value.is_leaf or value._is_view() else type(value.grad_fn).__name__
    data = _chars[size](address).raw
    return name, _plain[value.shape], dtype, None, needs, value._version, made, data, (), "", key


def whole(values: Iterable[Any], known: Known) -> tuple[Raw, ...]:
    """As ``shapes``, with all elements."""
    described = []
    for value in values:
        if isinstance(value, _Tensor):
            one = known.get(id(value))
            if one is None:
                one = known[id(value)] = raw(value, VALUES)
                known[COPIED] = known.get(COPIED, 0) + len(one[DATA] or b"")
            described.append(one)
        else:
            described.append(_other(value, VALUES, known))
    return tuple(described)


def _nothing(values: Iterable[Any], known: Known) -> tuple[Raw, ...]:
    return ()


DESCRIBE: tuple[Describe, ...] = (_nothing, shapes, summaries, whole)  # by level
