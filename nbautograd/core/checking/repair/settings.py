"""Settings: numbers outside a Function that its forward reads. A fix has to be right where they are others, too."""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor

from nbautograd.core.checking.outside_state import calling, names_bound, names_of
from nbautograd.core.checking.repair.factors import written
from nbautograd.core.user_source import closure, codes_in

MOST = 12  # settings that are made others, those that the code names first
DEPTH = 4  # objects and containers within others
LARGEST = 100  # items of a container: one that holds more is data
LIBRARIES = frozenset(("torch", "numpy", "scipy", *sys.stdlib_module_names))  # whose numbers are constants
DESCRIPTORS = (GetSetDescriptorType, MemberDescriptorType)
NUMBERS = {int, float, *(np.dtype(code).type for code in np.typecodes["AllInteger"] + np.typecodes["Float"])}

Write = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Setting:
    """A number outside a Function.

    Attributes:
        name: of a variable or an attribute, the key or index of an item.
        value: the number, or a tensor of one element.
        write: gives what has this name another value.
    """

    name: Any
    value: Any
    write: Write

    @property
    def others(self) -> tuple[Any, ...]:
        """Numbers that it may be elsewhere, the likeliest to be taken first."""
        if isinstance(self.value, (int, np.integer)):
            return tuple(n for n in (self.value + 1, self.value - 1, 2 * self.value) if n)
        return (1.25 * self.value, 0.75 * self.value) if self.value else (self.value + 0.5,)

    @contextlib.contextmanager
    def changed(self, value: Any) -> Iterator[None]:
        """Make it another number for the time of a block."""
        self.write(self.name, value)
        try:
            yield
        finally:
            self.write(self.name, self.value)


def settings(cls: type) -> list[Setting]:
    """Return the settings that forward, and the functions that it calls, may read; what the Function counts is none."""
    methods = [inspect.unwrap(getattr(cls, name)) for name in ("forward", "setup_context", "backward")]
    forward, every = (calling(one for one in some if isinstance(one, FunctionType)) for some in (methods[:2], methods))
    counted = frozenset().union(*(names_bound(one.__code__) for one in every))
    seen, words = set[int](), set[Any]()
    found = [*_inside(dict(enumerate(cls.__mro__)), partial(setattr, cls), DEPTH, seen)]
    for function in (one for one in forward if not _of_a_library(one)):
        words |= {word for code in codes_in(function.__code__) for word in (*code.co_names, *code.co_consts)}
        defaults = {"__defaults__": function.__defaults__, "__kwdefaults__": function.__kwdefaults__}
        found += _inside(defaults, partial(setattr, function), DEPTH, seen)
        variables = function.__globals__
        named = {name: variables[name] for name in names_of(function.__code__) if name in variables}
        found += _inside(named, variables.__setitem__, DEPTH, seen)
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        fill = partial(lambda cells, name, new: setattr(cells[name], "cell_contents", new), cells)
        found += _inside(closure(function), fill, DEPTH, seen)
    return sorted((s for s in found if s.name not in counted), key=lambda s: s.name not in words)[:MOST]


def _inside(items: Mapping[Any, Any], write: Write, depth: int, seen: set[int]) -> Iterator[Setting]:
    for name, value in list(items.items()):
        kind = type(value)
        if kind in NUMBERS or (issubclass(kind, Tensor) and value.numel() == 1):
            if _is_setting(name, value):
                yield Setting(name, value, write)
        elif depth and id(value) not in seen and not _of_a_library(value):
            seen.add(id(value))
            for parts, put in _parts(value, partial(write, name)):
                yield from _inside(parts, put, depth - 1, seen)


def _parts(value: Any, write: Callable[[Any], None]) -> Iterator[tuple[Mapping[Any, Any], Write]]:
    """Yield what an object holds, and what puts others there; its class, which may do anything, is not asked."""
    kind: Any = next((one for one in (type, dict, list, tuple) if issubclass(type(value), one)), object)
    if kind in (dict, list, tuple) and kind.__len__(value) <= LARGEST:
        items = dict.copy(value) if kind is dict else dict(enumerate(kind.__iter__(value)))
        yield items, partial(_replace, write, value) if kind is tuple else partial(kind.__setitem__, value)
    put = partial(type.__setattr__ if kind is type else object.__setattr__, value)  # that of a frozen object refuses
    for entries in map(vars, type(value).__mro__):
        for name, entry in entries.items():
            if isinstance(entry, DESCRIPTORS) and (name == "__dict__" or "__slots__" in entries):
                with contextlib.suppress(AttributeError):  # an empty slot
                    part = entry.__get__(value)
                    if part is not value:
                        yield (part if name == "__dict__" else {name: part}), put


def _replace(write: Callable[[Any], None], value: tuple[Any, ...], index: int, new: Any) -> None:
    items = (*value[:index], new, *value[index + 1 :])
    write(type(value)(*items) if hasattr(value, "_fields") else items)


def _is_setting(name: Any, value: Any) -> bool:
    """Return False for a root of pi, for what Python itself has written, and for a tensor that is learned."""
    if isinstance(value, Tensor):
        return value.is_floating_point() and not value.requires_grad
    named = not isinstance(name, str) or not name.startswith("__")
    return named and math.isfinite(value) and not {"*", "p"} & {*(written(float(value)) or "")}


def _of_a_library(value: Any) -> bool:
    name = "__name__" if issubclass(type(value), ModuleType) else "__module__"
    known = issubclass(type(value), (ModuleType, type, FunctionType))
    return known and str(getattr(value, name)).split(".")[0] in LIBRARIES
