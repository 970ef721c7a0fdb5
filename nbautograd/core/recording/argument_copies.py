"""Copies of arguments that nothing in a program can change: tensors, containers, modules, and code with what it holds.

No code of a program runs while a copy is made. What is one object in several places stays one: a module that is handed
over by its parameters beside it reads the copies of these.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import enum
import functools
import random
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.display import Phrase
from nbautograd.core.recording import memory
from nbautograd.core.recording.snapshot import (
    DEVICE_OF,
    DTYPE_OF,
    IS_NESTED,
    LAYOUT_OF,
    PLAIN_TYPES,
    TensorSnapshot,
    memory_of,
)
from nbautograd.core.torch_private import tensors as private
from nbautograd.core.user_source import closure

PLAIN = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
CODE = (types.BuiltinFunctionType, types.MethodDescriptorType, types.ModuleType, type, np.ufunc)
_FIXED = (
    *PLAIN,
    *CODE,
    enum.Enum,
    slice,
    range,
    torch.Size,
    np.dtype,
    type(Ellipsis),
    property,
    staticmethod,
    classmethod,
)
_ARRAYS = (np.ndarray, np.memmap)  # of other subclasses a copy would be made by code of theirs
_CONTAINERS = (tuple, list, set, frozenset, dict, collections.OrderedDict, collections.defaultdict, collections.deque)
# a copy of a lock is a free one: whoever holds the program's does not hold up a call on copies
_LOCKS: dict[type, Callable[[], Any]] = {type(make()): make for make in (threading.Lock, threading.RLock)}
# what is one by itself: other processes know a group, and the graph of the program is reached from a node of it
_SHARED: tuple[Any, ...] = (torch.autograd.graph.Node,)
if torch.distributed.is_available():
    _SHARED += (torch.distributed.ProcessGroup,)
# a copy draws the same numbers again, so that each call on copies is the one that the program made
_RANDOM = (random.Random, np.random.RandomState, np.random.Generator)
_KEYS: tuple[type, ...] = (type({}.keys()), type(collections.OrderedDict().keys()))
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was written in Python, as a rule
MOST_OBJECTS = 10_000  # objects of one call


class NotKept(Exception):  # noqa: N818 - a reason, not a mistake
    """Arguments that cannot be copied.

    Attributes:
        phrase: why.
    """

    def __init__(self, message_id: str, **params: Any) -> None:
        super().__init__(message_id)
        self.phrase = Phrase(message_id, **params)


def copied(items: Sequence[Any], copy_tensor: Callable[[Any], Any], tied: dict[int, Any] | None = None) -> Any:
    """Return copies of arguments, each object once.

    Args:
        copy_tensor: called once for each tensor in them, however deep.
        tied: by the id of an object, what is to stand in its place.

    Raises:
        NotKept: for what cannot be copied without running code of its own.
    """
    copier = _Copier(copy_tensor, dict(tied or {}))
    return tuple([copier.copy(item) for item in items])


def tensors_inside(items: Sequence[Any]) -> list[Tensor]:
    """Return the tensors that are out of sight in arguments: in modules, closures, objects."""
    inside: list[Tensor] = []

    def note(item: Tensor) -> Tensor:
        inside.append(item)
        return item

    copied([item for item in items if is_structure(item)], note)
    return inside


def is_structure(item: Any) -> bool:
    """Return True for an argument that may hold tensors out of sight: a module, a method, a closure, an object."""
    if isinstance(item, (tuple, list, set, frozenset)):
        return any(is_structure(one) for one in item)
    if isinstance(item, dict):
        return any(is_structure(one) for one in item.values())
    if isinstance(item, types.FunctionType):
        return any(not isinstance(one, _FIXED) for one in _held(item))
    known = isinstance(item, (*_FIXED, Tensor, np.ndarray, np.generic))
    return not known and type(item) is not object and not _is_member(item)


def _is_member(item: Any) -> bool:
    """Return True for a constant of an enumeration that was written in C++, such as a kind of reduction."""
    kind = type(item)
    return kind.__module__.startswith("torch._C") and isinstance(getattr(kind, "__members__", None), dict)


class _Copier:
    def __init__(self, copy_tensor: Callable[[Any], Any], done: dict[int, Any]) -> None:
        self.copy_tensor, self.done = copy_tensor, done
        self.originals: list[Any] = []  # an id is that of its object as long as the object lives

    def copy(self, item: Any) -> Any:
        if isinstance(item, _FIXED) or type(item) is object or _is_member(item):
            return item
        if id(item) not in self.done:
            if len(self.originals) >= MOST_OBJECTS:
                raise NotKept("audit.not_copied", type=type(item).__name__)
            self.originals.append(item)
            try:
                self.done[id(item)] = self._new(item)
            except RecursionError:
                raise NotKept("audit.not_copied", type=type(item).__name__) from None
        return self.done[id(item)]

    def _new(self, item: Any) -> Any:
        kind = type(item)
        if isinstance(item, (Tensor, KeptTensor)):
            return self.copy_tensor(item)
        if kind in _CONTAINERS or (isinstance(item, tuple) and hasattr(item, "_fields")):
            return self._container(item)
        if kind in _KEYS:
            return self.copy(collections.OrderedDict.fromkeys(item)).keys()
        if kind in _ARRAYS and not item.dtype.hasobject:
            return _array(item)
        if isinstance(item, np.generic) and not item.dtype.hasobject:
            return item.copy()
        if kind is types.FunctionType:
            return self._function(item)
        if kind is types.MethodType:
            return types.MethodType(self.copy(item.__func__), self.copy(item.__self__))
        if kind is functools.partial:
            keywords = {name: self.copy(value) for name, value in item.keywords.items()}
            return functools.partial(self.copy(item.func), *map(self.copy, item.args), **keywords)
        if kind in _LOCKS:
            return _LOCKS[kind]()
        if isinstance(item, _SHARED):
            return item
        if kind in _RANDOM:
            return copy.deepcopy(item)
        if kind is torch.Generator:
            return item.clone_state()
        if kind in (weakref.ref, _HeldReference):
            target = item()
            return item if target is None else _HeldReference(self.copy(target))
        if kind is types.SimpleNamespace or _of_python(kind):
            return self._object(item)
        raise NotKept("audit.not_copied", type=kind.__name__)

    def _container(self, item: Any) -> Any:
        if isinstance(item, dict):
            factory = (self.copy(item.default_factory),) if isinstance(item, collections.defaultdict) else ()
            table = self.done[id(item)] = type(item)(*factory)
            table.update((self.copy(key), self.copy(value)) for key, value in item.items())
            return table
        if isinstance(item, (list, collections.deque)):
            made: Any = collections.deque(maxlen=item.maxlen) if isinstance(item, collections.deque) else []
            self.done[id(item)] = made
            made.extend(self.copy(one) for one in item)
            return made
        inner = [self.copy(one) for one in item]
        return type(item)(*inner) if hasattr(item, "_fields") else type(item)(inner)

    def _function(self, item: types.FunctionType) -> types.FunctionType:
        if all(isinstance(one, _FIXED) for one in _held(item)):
            return item
        cells = tuple(types.CellType() for _ in item.__closure__ or ())
        made = types.FunctionType(item.__code__, item.__globals__, item.__name__, None, cells or None)
        self.done[id(item)] = made  # a function may hold itself
        made.__dict__.update(item.__dict__)
        made.__qualname__, made.__module__ = item.__qualname__, item.__module__
        made.__defaults__ = self.copy(item.__defaults__)
        made.__kwdefaults__ = self.copy(item.__kwdefaults__)
        filled = closure(item)
        for name, cell in zip(item.__code__.co_freevars, cells, strict=True):
            if name in filled:
                cell.cell_contents = self.copy(filled[name])
        return made

    def _object(self, item: Any) -> Any:
        if not vars(item):
            return item
        made = self.done[id(item)] = (
            types.SimpleNamespace() if type(item) is types.SimpleNamespace else object.__new__(type(item))
        )
        vars(made).update((name, self.copy(value)) for name, value in vars(item).items())
        return made


class _HeldReference(weakref.ref[Any]):
    """A weak reference to a copy, which nothing else may refer to: it keeps what it refers to."""

    __slots__ = ("held",)
    held: Any

    def __new__(cls, target: Any) -> _HeldReference:
        self = super().__new__(cls, target)
        self.held = target
        return self


def _of_python(kind: type) -> bool:
    classes = kind.__mro__[:-1]
    return all(cls.__flags__ & HEAP_TYPE and not vars(cls).get("__slots__") for cls in classes) and (
        kind.__dictoffset__ != 0 and kind.__itemsize__ == 0 and kind.__basicsize__ <= _Bare.__basicsize__
    )


class _Bare:
    """A class whose objects have a ``__dict__``, and can be referred to weakly."""


def _held(function: types.FunctionType) -> list[Any]:
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *closure(function).values()]


@dataclass(slots=True, eq=False)
class KeptTensor:
    """A tensor as the recorder read it, of which a tensor is made once the program has run.

    Attributes:
        stride: the tensor's own.
        required: True where the tensor that is made is to require grad.
        conjugated, negated: what the tensor's memory holds is to be conjugated, or negated.
        memory: what was read.
    """

    stride: tuple[int, ...]
    required: bool
    conjugated: bool
    negated: bool
    memory: TensorSnapshot | None = None

    def tensor(self) -> Tensor:
        """Return a tensor of its own memory, which takes no more than there are elements, in the same order."""
        assert self.memory is not None
        shape, dtype = self.memory.shape or (), self.memory.dtype
        data: Any = self.memory.data
        ordinary = torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()
        with private.disable_torch_function(), ordinary, torch.no_grad():
            flat = torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)
            small = tuple([1 if step == 0 else size for size, step in zip(shape, self.stride, strict=True)])
            # row-major where the gaps between the elements were not read
            steps = self.memory.strides or [prod([max(1, n) for n in shape[at + 1 :]]) for at in range(len(shape))]
            source = flat.as_strided(small, steps) if data else flat.view(small)
            tensor = torch.empty_strided(small, _dense(small, self.stride), dtype=dtype).copy_(source).expand(shape)
            tensor = tensor.conj() if self.conjugated else tensor
            tensor = torch._neg_view(tensor) if self.negated else tensor
        return tensor.requires_grad_(self.required)


def kept(items: Sequence[Any], required: Callable[[Tensor], bool], room: Callable[[Tensor], None]) -> tuple[Any, ...]:
    """Return copies of arguments, with a KeptTensor for each tensor: read as the recorder reads, without a load.

    A truncated map, closed shared memory or a protected page among the arguments would end the process at a load; a
    functional tensor has no elements at all.

    Args:
        required: True for a tensor whose copy is to require grad.
        room: called with each tensor; raises where it is too large.

    Raises:
        NotKept: for what cannot be read, or copied without running code of its own.
    """
    on_cpu: list[tuple[KeptTensor, Tensor]] = []

    def keep(item: Tensor) -> Any:
        room(item)
        plain = _plain(private.unwrap_for_grad(item))
        needs = required(item) and (plain.is_floating_point() or plain.is_complex())
        if not plain.is_cpu or (memory.copier() is None and not memory.off):
            return _by_kernels(plain, needs)
        one = KeptTensor(tuple(plain.stride()), needs, plain.is_conj(), plain.is_neg())
        on_cpu.append((one, plain))
        return one

    copies: tuple[Any, ...] = copied(items, keep)
    for (one, _), taken in zip(on_cpu, memory_of([plain for _, plain in on_cpu]), strict=True):
        if taken.reason is not None:
            raise NotKept("audit.tensor_not_copied", kind=taken.reason)
        one.memory = taken
    return copies


def _plain(item: Tensor) -> Tensor:
    """Return a strided tensor as one of torch's own class.

    Raises:
        NotKept: for one whose numbers cannot be read and moved.
    """
    kind = _unreadable(item)
    if kind:
        raise NotKept("audit.tensor_not_copied", kind=kind)
    if type(item) in PLAIN_TYPES or private.only_kernels is None:
        return item
    [alias] = private.run_unheard([functools.partial(Tensor.as_subclass, item, Tensor)])
    return alias  # type: ignore[no-any-return]


def _by_kernels(item: Tensor, required: bool) -> Tensor:
    """Return a copy of a tensor on another device, or of a system where memory can be read by loads alone.

    Raises:
        NotKept: where this torch runs no kernel alone.
    """
    if private.only_kernels is None or item.is_conj() or item.is_neg():
        raise NotKept("audit.tensor_not_copied", kind=str(item.device))
    small = tuple([1 if step == 0 else size for size, step in zip(item.shape, item.stride(), strict=True)])
    make = functools.partial(torch.empty_strided, small, _dense(small, item.stride()), dtype=item.dtype)
    whole, made = private.run_unheard(
        [functools.partial(item.as_strided, small, item.stride()), functools.partial(make, device=item.device)]
    )
    [filled] = private.run_unheard([functools.partial(made.copy_, whole)])
    [tensor] = private.run_unheard([functools.partial(filled.expand, tuple(item.shape))])
    return tensor.requires_grad_(required)  # type: ignore[no-any-return]


def _array(item: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copier = memory.copier()
    if copier is None and not memory.off:
        return item.copy()
    spans = [(size - 1) * step for size, step in zip(item.shape, item.strides, strict=True)]
    below, above = sum(min(0, span) for span in spans), sum(max(0, span) for span in spans) + item.itemsize
    first = item.__array_interface__["data"][0]
    data = b"" if not item.size else copier and copier.copy([first + below, above - below], above - below)
    if data is None:
        raise NotKept("audit.not_copied", type="ndarray")
    made: np.ndarray[Any, Any] = np.empty(item.shape, item.dtype)
    if data:
        made = np.ndarray(item.shape, item.dtype, bytearray(data), -below, item.strides)
    return made.copy("K")


def _dense(shape: tuple[int, ...], stride: tuple[int, ...]) -> tuple[int, ...]:
    order = sorted(range(len(shape)), key=lambda d: (stride[d], shape[d] == 1))
    strides, span = [0] * len(shape), 1
    for d in order:
        # a gap between rows is kept as one element: such a tensor stays one that is not contiguous
        gap = 1 if span > 1 and shape[d] > 1 and stride[d] > span else 0
        strides[d] = span + gap
        span = strides[d] * max(1, shape[d])
    return tuple(strides)


def _unreadable(item: Tensor) -> str:
    if type(item) not in PLAIN_TYPES and type(item).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return type(item).__name__
    if private.vmap_level(item) is not None:
        return "torch.vmap"
    if IS_NESTED(item):
        return "nested"
    layout = LAYOUT_OF(item)
    if layout is not torch.strided:
        return str(layout).removeprefix("torch.")
    device = DEVICE_OF(item).type
    return "quantized" if str(DTYPE_OF(item)).startswith("torch.q") else "meta" if device == "meta" else ""
