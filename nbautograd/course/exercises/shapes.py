"""Odd shapes that an elementwise Function must take: the edge inputs of many exercises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nbautograd.course.draw import Draw


def elementwise(*rest: Any) -> Callable[[Draw], Iterable[tuple[Any, ...]]]:
    """Edge inputs of one tensor: without dimensions, empty, transposed, with gaps, repeated by expand.

    Args:
        rest: the arguments after the tensor.

    Example:
        >>> from nbautograd.course.draw import Draw
        >>> from nbautograd.course.exercises.shapes import elementwise
        >>> [tuple(x.shape) for x, constant in elementwise(2.5)(Draw(0))]
        [(), (0, 3), (4, 3), (3, 2), (3, 4)]
    """

    def edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
        yield (draw.normal(), *rest)
        yield (draw.normal(0, 3), *rest)
        yield (draw.normal(3, 4).t(), *rest)
        yield (draw.normal(3, 4)[:, ::2], *rest)
        yield (draw.normal(4).expand(3, 4), *rest)

    return edges
