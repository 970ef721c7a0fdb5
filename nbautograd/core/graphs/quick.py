"""Quick: thousands of frozen dataclasses, made without the cost of their ``__init__``.

A frozen dataclass sets each field by a call of its own; a graph of 2,000 nodes has 10,000 of them, a third of the time
from loss to picture. What is left out here is found on the class, where a dataclass keeps its defaults.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")

_new = object.__new__
_set = object.__setattr__


def make(cls: type[T], /, **fields: Any) -> T:
    """A frozen dataclass without ``__slots__`` from its fields; equal to what ``cls(**fields)`` gives.

    Example:
        >>> from nbautograd.core.graphs.graph import Edge
        >>> from nbautograd.core.graphs.quick import make
        >>> make(Edge, source=0, target=1, input_nr=0, output_nr=0) == Edge(0, 1, 0, 0)
        True
    """
    value = _new(cls)
    _set(value, "__dict__", fields)
    return value


def of(cls: type[T], fields: dict[str, Any]) -> T:
    """The same from a dictionary, which the value keeps: leave out what has its default, and it stays small.

    Example:
        >>> from nbautograd.core.graphs.graph import Edge
        >>> from nbautograd.core.graphs.quick import of
        >>> of(Edge, {"source": 0, "target": 1, "input_nr": 0, "output_nr": 0}) == Edge(0, 1, 0, 0)
        True
    """
    value = _new(cls)
    _set(value, "__dict__", fields)
    return value
