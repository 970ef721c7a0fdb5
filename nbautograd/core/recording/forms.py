"""Forms: what the values of a call looked like, so that the next call's can be told to look the same in one question.

A training loop calls a Function with the same shapes, dtypes and flags again and again. A writer keeps a Form of what
it described; when the values of the next call fit it, only what differs is written down (``short.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from nbautograd.core.recording.ring import SHORT
from nbautograd.core.recording.short import ABSENT, OTHER, Told
from nbautograd.core.recording.snapshot import (
    DATA,
    NODE,
    PLAIN_TYPES,
    SHAPES,
    SUMMARY,
    VERSION,
    WHOLE,
    Raw,
    blocks,
    grad_fn_name,
)
from nbautograd.core.recording.unrolled import NOTHING, PLAIN, TENSOR, compiled
from nbautograd.core.torch_private import tensors as internals

_PLAIN = frozenset({int, float, bool})
_TYPES = PLAIN_TYPES | _PLAIN | {type(None)}  # what a form can have: nothing of it changes unseen
_MOST = 16  # forms kept by a writer

# what a form has told, bytes that the record takes, bytes of the tensors or None, their versions, and then the values
# that are no tensors
Taken = tuple[Any, ...]


class Form:
    """What the values of one call looked like.

    Args:
        values: what the call was given, what it gave, and what it saved.
        given, gave: how many of each.
        raws: their descriptions.
        level: at which they were described.

    Attributes:
        level: as given.
        count: how many values.
        take: of the values of another call, one argument each: a Taken, None when they look different.
    """

    def __init__(self, values: Sequence[Any], given: int, gave: int, raws: Sequence[Raw], level: int) -> None:
        self.level, self.count = level, len(values)
        pattern = _pattern(values)
        tensors = [i for i, one in enumerate(pattern) if one == TENSOR]
        templates = tuple(_template(raws[i]) for i in tensors)
        sizes = tuple(len(raws[i][DATA]) if level >= SUMMARY else 0 for i in tensors)
        slots = tuple(_slot(i, one, tensors) for i, one in enumerate(pattern))
        told: Told = given, gave, slots, templates, sizes, TENSOR not in pattern[given + gave :]
        self.take = _take(values, pattern, tensors, told, level)


class Forms:
    """The forms of one writer.

    Attributes:
        last: the one that fitted last, None as long as there is none.
    """

    def __init__(self) -> None:
        self.last: Form | None = None
        self._others: dict[tuple[int, Any], Form] = {}  # by how many values, and the shape of the first tensor
        self._built = self._not_before = 0

    def take(self, values: tuple[Any, ...], level: int) -> Taken | None:
        """What a record keeps of values that fit a form that is not the last; None when they fit none."""
        if internals.tracing():  # torch.jit.trace writes down that a shape was asked for
            return None
        form = self._others.get(_key(values))
        if form is None or form.level != level:
            return None
        taken: Taken | None = form.take(*values)
        if taken is not None:
            self.last = form
        return taken

    def learn(
        self, values: tuple[Any, ...], given: int, gave: int, raws: Sequence[Raw], level: int, index: int
    ) -> None:
        """Make a form of values that were described the long way; the more were made, the rarer.

        Args:
            values, given, gave, raws, level: as for a Form.
            index: number of the call.
        """
        if index < self._not_before or not _can_have_a_form(values, raws, level):
            return
        self._built += 1
        self._not_before = index + self._built
        if len(self._others) >= _MOST:
            self._others.clear()
        self.last = self._others[_key(values)] = Form(values, given, gave, raws, level)


def _pattern(values: Sequence[Any]) -> tuple[str | int, ...]:
    first: dict[int, int] = {}
    pattern: list[str | int] = []
    for i, value in enumerate(values):
        if type(value) in PLAIN_TYPES:
            before = first.setdefault(id(value), i)
            pattern.append(TENSOR if before == i else before)
        else:
            pattern.append(NOTHING if value is None else PLAIN)
    return tuple(pattern)


def _slot(i: int, one: str | int, tensors: list[int]) -> int:
    if one in (NOTHING, PLAIN):
        return ABSENT if one == NOTHING else OTHER
    return tensors.index(one if isinstance(one, int) else i)


def _can_have_a_form(values: tuple[Any, ...], raws: Sequence[Raw], level: int) -> bool:
    if level not in (SHAPES, SUMMARY) or not _TYPES.issuperset(map(type, values)):
        return False
    tensors = [(v, raw) for v, raw in zip(values, raws, strict=True) if type(v) in PLAIN_TYPES]
    return bool(tensors) and all(_ordinary(v) and (level < SUMMARY or raw[DATA]) for v, raw in tensors)


def _ordinary(tensor: torch.Tensor) -> bool:
    return not internals.bytes_reason(tensor) and not tensor.is_inference() and tensor.is_contiguous()


def _key(values: tuple[Any, ...]) -> tuple[int, Any]:
    return len(values), next((v.shape for v in values if type(v) in PLAIN_TYPES), None)


def _take(
    values: Sequence[Any], pattern: tuple[str | int, ...], at: list[int], told: Told, level: int
) -> Callable[..., Any]:
    tensors, types = [values[i] for i in at], [type(v) for v, one in zip(values, pattern, strict=True) if one == PLAIN]
    same = internals.same_as(tensors)
    if level < SUMMARY:
        shallow: Callable[..., Any] = compiled(pattern, (), False)(told, SHORT, same, types)
        return shallow
    needs = {i: told[3][j][NODE] for j, i in enumerate(at) if values[i].requires_grad}
    copies = [_copier(tensor) for tensor in tensors]
    make = compiled(pattern, tuple(needs), True)
    take: Callable[..., Any] = make(told, SHORT, same, types, _node, needs.values(), internals.memory, b"".join, copies)
    return take


def _template(raw: Raw) -> Raw:
    """A description without what differs from call to call."""
    changing = {VERSION: None, len(raw) - 1: 0, **({DATA: None} if len(raw) > DATA + 1 else {})}
    return tuple(changing.get(i, field) for i, field in enumerate(raw))


def _node(tensor: torch.Tensor) -> str | None:
    return None if tensor.is_leaf else grad_fn_name(tensor)


def _copier(tensor: torch.Tensor) -> Callable[[int], Any]:
    """Gives the bytes at an address that ``describing`` would copy of such a tensor, as bytes or another buffer."""
    size = tensor.nbytes
    return internals.CHARS[size] if size <= WHOLE else partial(blocks, span=size)
