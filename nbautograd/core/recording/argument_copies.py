"""Copies of arguments that nothing in a program can change: tensors, containers, modules, and code with what it holds.

No code of a program runs while a copy is made. What is one object in several places stays one: a module that is handed
over by its parameters beside it reads the copies of these.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.display import Phrase
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
CODE = (types.BuiltinFunctionType, types.MethodDescriptorType, types.ModuleType, type)
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
_TENSORS = (Tensor, torch.nn.Parameter, torch.nn.Buffer)
_CONTAINERS = (tuple, list, set, frozenset, dict, collections.OrderedDict, collections.defaultdict, collections.deque)
# a copy of a lock is a free one: whoever holds the program's does not hold up a call on copies
_LOCKS: dict[type, Callable[[], Any]] = {type(make()): make for make in (threading.Lock, threading.RLock)}
_KEYS: tuple[type, ...] = (type({}.keys()), type(collections.OrderedDict().keys()))
HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was written in Python, as a rule
MOST = 10_000  # objects of one call


class NotKept(Exception):  # noqa: N818 - a reason, not a mistake
    """Arguments that cannot be copied.

    Attributes:
        phrase: why.
    """

    def __init__(self, message_id: str, **params: Any) -> None:
        super().__init__(message_id)
        self.phrase = Phrase(message_id, **params)


def copied(items: Sequence[Any], copy_tensor: Callable[[Tensor], Tensor], tied: dict[int, Any] | None = None) -> Any:
    """Return copies of arguments, each object once.

    Args:
        items: arguments of one call.
        copy_tensor: called once for each tensor in them, however deep.
        tied: by the id of an object, what is to stand in its place.

    Raises:
        NotKept: for what cannot be copied without running code of its own.

    Example:
        >>> import torch
        >>> from nbautograd.core.recording.argument_copies import copied
        >>> layer = torch.nn.Linear(2, 1, bias=False)
        >>> call, weight = copied((layer.forward, layer.weight), torch.clone)
        >>> call.__self__.weight is weight, weight is layer.weight
        (True, False)
    """
    copier = _Copier(copy_tensor, dict(tied or {}))
    return tuple([copier.copy(item) for item in items])


def tensors_inside(items: Sequence[Any]) -> list[Tensor]:
    """Return the tensors that are out of sight in arguments: in modules, closures, objects.

    Args:
        items: arguments of one call, copies of the program's.
    """
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
    """Copies objects, each of them once.

    Args:
        copy_tensor: called for each tensor.
        done: by id, the copies that there are.
    """

    def __init__(self, copy_tensor: Callable[[Tensor], Tensor], done: dict[int, Any]) -> None:
        self.copy_tensor, self.done = copy_tensor, done
        self.originals: list[Any] = []  # an id is that of its object as long as the object lives

    def copy(self, item: Any) -> Any:
        """Return the copy of one object."""
        if isinstance(item, _FIXED) or type(item) is object or _is_member(item):
            return item
        if id(item) not in self.done:
            if len(self.originals) >= MOST:
                raise NotKept("audit.not_copied", type=type(item).__name__)
            self.originals.append(item)
            try:
                self.done[id(item)] = self._new(item)
            except RecursionError:
                raise NotKept("audit.not_copied", type=type(item).__name__) from None
        return self.done[id(item)]

    def _new(self, item: Any) -> Any:
        kind = type(item)
        if isinstance(item, Tensor):
            return self.copy_tensor(item)
        if kind in _CONTAINERS or (isinstance(item, tuple) and hasattr(item, "_fields")):
            return self._container(item)
        if kind in _KEYS:
            return self.copy(collections.OrderedDict.fromkeys(item)).keys()
        if isinstance(item, (np.ndarray, np.generic)) and item.dtype != object:
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
        """Return a function with copies of what its closure and its defaults hold; itself where they hold nothing."""
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
        """Return an object of the same class with a copy of its ``__dict__``; itself where that is empty."""
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
        """Refer to an object, and hold it."""
        self = super().__new__(cls, target)
        self.held = target
        return self


def _of_python(kind: type) -> bool:
    """Return True for a class whose objects hold nothing but their ``__dict__``."""
    classes = kind.__mro__[:-1]
    return all(cls.__flags__ & HEAP_TYPE and not vars(cls).get("__slots__") for cls in classes) and (
        kind.__dictoffset__ != 0 and kind.__itemsize__ == 0 and kind.__basicsize__ <= _Bare.__basicsize__
    )


class _Bare:
    """A class whose objects have a ``__dict__``, and can be referred to weakly."""


def _held(function: types.FunctionType) -> list[Any]:
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *closure(function).values()]


def copied_tensor(item: Tensor, required: bool) -> Tensor:
    """Return a copy of a tensor, below autograd and the program's modes.

    Args:
        item: the tensor.
        required: True where the copy is to require grad.

    Raises:
        NotKept: for a tensor whose numbers cannot be read and moved.
    """
    item = private.unwrap_for_grad(item)
    kind = _unreadable(item)
    if kind:
        raise NotKept("audit.tensor_not_copied", kind=kind)
    required = required and (item.is_floating_point() or item.is_complex())
    # Only where they change anything: an interrupt while either is entered has it left late, after torch has put back
    # the program's own mode, and gradients would stay off.
    ordinary = torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()
    without_grad = torch.no_grad() if torch.is_grad_enabled() else contextlib.nullcontext()
    with private.disable_torch_function(), ordinary, without_grad:
        if private.only_kernels is None or item.is_conj() or item.is_neg():
            return item.detach().clone().requires_grad_(required)
        with private.only_kernels():
            shape, stride = _unexpanded(item)
            small = item.as_strided(shape, stride)
            made = torch.empty_strided(shape, _dense(small), dtype=item.dtype, device=item.device)
            made.copy_(small)
            made = made if shape == tuple(item.shape) else made.expand(item.shape)
        return made.requires_grad_(required)


def _unexpanded(item: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and strides of a tensor without what ``expand`` repeats."""
    shape = tuple(1 if st == 0 else n for n, st in zip(item.shape, item.stride(), strict=True))
    return shape, tuple(item.stride())


def _dense(item: Tensor) -> tuple[int, ...]:
    """Return strides that take no more room than there are elements, in the order of the tensor's own."""
    order = sorted(range(item.dim()), key=lambda d: (item.stride(d), item.shape[d] == 1))
    if item.is_contiguous():
        return tuple(item.stride())
    strides, span = [0] * item.dim(), 1
    for d in order:
        # a gap between rows is kept as one element: such a tensor stays one that is not contiguous
        gap = 1 if span > 1 and item.stride(d) > span else 0
        strides[d] = span + gap
        span = strides[d] * max(1, item.shape[d])
    return tuple(strides)


def _unreadable(item: Tensor) -> str:
    if type(item) not in _TENSORS and type(item).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return type(item).__name__
    if private.vmap_level(item) is not None:
        return "torch.vmap"
    if item.is_nested:
        return "nested"
    if item.layout is not torch.strided:
        return str(item.layout).removeprefix("torch.")
    return "quantized" if item.is_quantized else "meta" if item.is_meta else ""
