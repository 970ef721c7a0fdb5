"""State that a Function keeps outside ctx between its calls: class attributes, closures and globals of its methods."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.source import METHODS, as_written

LARGEST = 100_000  # elements of tensors, and items of containers, that are copied; larger ones are data, not state
DEPTH = 3  # containers within containers
NUMBERS = (bool, int, float, complex, str, type(None))


@dataclass(frozen=True)
class Place:
    """A name that holds state.

    Attributes:
        value: a copy of what it held.
        read: returns what it holds.
        write: makes it hold something else.
    """

    value: Any
    read: Callable[[], Any]
    write: Callable[[Any], None]


class ClassState:
    """Copies of what a class kept outside ctx when this was made.

    Args:
        cls: a Function class, or None.
    """

    def __init__(self, cls: type | None) -> None:
        self.places = () if cls is None else tuple(p for p in _places(cls) if p.value is not _NO_STATE)

    @contextlib.contextmanager
    def put_back(self, *, empty: bool = False) -> Iterator[None]:
        """Put all names back to their first values, containers emptied if so wanted; undo that afterwards."""
        now = [place.read() for place in self.places]
        try:
            for place in self.places:
                container = isinstance(place.value, (list, dict, set, deque))
                place.write(type(place.value)() if empty and container else _copied(place.value))
            yield
        finally:
            for place, value in zip(self.places, now, strict=True):
                place.write(value)


_NO_STATE = object()


def _places(cls: type) -> Iterator[Place]:
    for base in cls.__mro__:
        if base.__module__.startswith("torch.") or base is object:
            continue
        for name, value in list(vars(base).items()):
            if not name.startswith("__"):
                yield _attribute(base, name, value)
        for method in METHODS:
            function = _function(vars(base).get(method))
            if function is not None:
                yield from _of_function(function)


def _attribute(base: type, name: str, value: Any) -> Place:
    return Place(_copied(value), lambda: vars(base)[name], lambda new: setattr(base, name, new))


def _of_function(function: FunctionType) -> Iterator[Place]:
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            yield _cell(cell)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield _global(function.__globals__, name)


def _cell(cell: CellType) -> Place:
    return Place(
        _copied(cell.cell_contents), lambda: cell.cell_contents, lambda new: setattr(cell, "cell_contents", new)
    )


def _global(known: dict[str, Any], name: str) -> Place:
    return Place(_copied(known[name]), lambda: known[name], lambda new: known.__setitem__(name, new))


def _names(code: CodeType) -> set[str]:
    """Return the names that a method reads or writes outside itself, those of functions within it too."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _function(entry: Any) -> FunctionType | None:
    entry = as_written(entry)
    function = getattr(entry, "__func__", entry)
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function if isinstance(function, FunctionType) else None


def _copied(value: Any, depth: int = DEPTH) -> Any:
    """Copy numbers, tensors and containers of these; return a mark for anything else, which counts as no state."""
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, Tensor):
        small = value.layout is torch.strided and value.numel() <= LARGEST
        return value.detach().clone().requires_grad_(value.requires_grad) if small and value.is_leaf else _NO_STATE
    if isinstance(value, np.ndarray):
        return value.copy() if value.size <= LARGEST else _NO_STATE
    if type(value) in (list, dict, set, deque) and len(value) <= LARGEST:
        return _container(value, depth)
    return _NO_STATE


def _container(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        return {key: _item(item, depth) for key, item in value.items()}
    return type(value)(_item(item, depth) for item in value)


def _item(item: Any, depth: int) -> Any:
    """Copy an item of a container; return it as it is where it is no state."""
    copied = _copied(item, depth - 1) if depth > 1 else _NO_STATE
    return item if copied is _NO_STATE else copied


def names_outside(fn: Any, cls: type | None) -> Iterator[tuple[str, Any]]:
    """Yield the names, with their values, that a callable and a class's methods read outside their arguments."""
    entries = [fn, *(vars(base).get(m) for base in (cls.__mro__ if cls is not None else ()) for m in METHODS)]
    for function in filter(None, map(_function, entries)):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            with contextlib.suppress(ValueError):  # an empty cell
                yield name, cell.cell_contents
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield name, function.__globals__[name]
