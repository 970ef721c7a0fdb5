"""Checked: which gradients of a Function's class its latest check found wrong, for whoever draws the class later.

A verdict belongs to one class object, to the methods that it had and to the functions of their module that these name:
one that was defined anew, or was given another backward or helper since, has none. Code objects are kept, which hold no
tensor, unlike the functions that close over some.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from nbautograd.core.display import Phrase
from nbautograd.core.user_source import defining_classes, named_functions, unwrap

Written = tuple[Any, ...]

_wrong: weakref.WeakKeyDictionary[type, tuple[Written, dict[int, Phrase]]] = weakref.WeakKeyDictionary()


def note_check(cls: type, gradients: Mapping[int, Phrase | None]) -> None:
    """Note what a check said of some arguments' gradients: a sentence of what is wrong, or None; the last one counts.

    Args:
        cls: the class that was checked.
        gradients: by position among forward's arguments; what an earlier check said of others stays.
    """
    said = {**wrong_gradients(cls), **gradients}
    _wrong[cls] = _written(cls), {k: wrong for k, wrong in said.items() if wrong is not None}


def wrong_gradients(cls: type) -> Mapping[int, Phrase]:
    """Return by position among forward's arguments what the latest check of each said is wrong with its gradient."""
    written, said = _wrong.get(cls, ((), {}))
    return said if written == _written(cls) else {}


def _written(cls: type) -> Written:
    methods = [(name, unwrap(vars(base)[name])) for name, base in defining_classes(cls).items()]
    functions = [method for _, method in methods if isinstance(method, FunctionType)]
    helpers = [pair for function in functions for pair in named_functions(function).items()]
    return tuple([(name, getattr(function, "__code__", None)) for name, function in (*methods, *helpers)])
