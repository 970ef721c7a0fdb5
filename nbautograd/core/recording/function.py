"""InstrumentedFunction: what recording knows of a Function class without keeping it alive."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

from nbautograd.core.recording.snapshot import SUMMARY
from nbautograd.core.torch_private import ctx as private
from nbautograd.core.user_source import (
    FunctionSource,
    Methods,
    codes_in,
    defining_class,
    methods_of,
    read_methods,
    unwrap,
)

_numbers = itertools.count()
_WRITES_PAST_THE_VERSION = frozenset({"data", "numpy", "asarray", "from_dlpack", "data_ptr", "__array_interface__"})


class InstrumentedFunction:
    """A Function class that is recorded, known by its name and the code of its methods.

    Args:
        cls: the class; held weakly.
        level: how much is kept of its calls, one of ``snapshot.LEVELS``' numbers.

    Attributes:
        number: tells it apart from others of the same name.
        name: the class's name.
        methods: where the methods were written.
        sets_up: True when ctx is filled by setup_context and forward gets none.
        backward_class: gives the hidden class of ctx.
        compiled: True once torch.compile was seen to read a method: then it runs without us.
    """

    def __init__(self, cls: type, level: int = SUMMARY) -> None:
        self.number = next(_numbers)
        self.name = cls.__name__
        self.level = level
        self.methods: Methods = methods_of(cls)
        self.sets_up = "setup_context" in self.methods.codes
        self.compiled = False
        self._cls = weakref.ref(cls)
        self.backward_class: Callable[[], type | None] = weakref.ref(private.backward_class(cls) or cls)

    @property
    def cls(self) -> type | None:
        """The class, None once it is gone."""
        return self._cls()

    @cached_property
    def source(self) -> FunctionSource | None:
        """The text of the class, read when somebody first looks at a call."""
        return read_methods(self.methods)

    @cached_property
    def _names(self) -> dict[str, frozenset[str]]:
        return {
            method: frozenset([name for one in codes_in(code) for name in (*one.co_names, *one.co_freevars)])
            for method, code in self.methods.codes.items()
        }

    def names(self, method: str) -> frozenset[str]:
        """Return every name in a method's code, attributes and those of inner functions included."""
        return self._names.get(method) or self._names.get("vjp" if method == "backward" else method, frozenset())

    def may_write_unseen(self, method: str) -> bool:
        """Return True when a method names a way to write into a tensor that its version does not tell."""
        return bool(_WRITES_PAST_THE_VERSION & self.names(method))

    def may_write_in_place(self, method: str) -> bool:
        """Return True when a method names an operation that writes into its tensor, such as ``mul_``."""
        in_place = any(name.endswith("_") and not name.endswith("__") for name in self.names(method))
        return in_place or self.may_write_unseen(method)

    @cached_property
    def keeps_state(self) -> bool:
        """True when a method names the class, so that it may keep something on it."""
        return any(self.name in names or "__class__" in names for names in self._names.values())

    def function(self, method: str) -> FunctionType | None:
        """Return the user's plain function behind a method, None when it is none."""
        owner = None if self.cls is None else defining_class(self.cls, method)
        function = None if owner is None else unwrap(vars(owner)[method])
        return function if isinstance(function, FunctionType) else None


def value_around(function: FunctionType, name: str) -> Any:
    """Return what a name stands for around a function, a closure's cell or a global; None when nothing does."""
    if function.__closure__ is not None and name in function.__code__.co_freevars:
        cell = function.__closure__[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # not filled yet
            return None
    return function.__globals__.get(name)
