"""Shapes of inputs: of sizes that differ from point to point, and odd ones for edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator


def normals(*given: Any) -> Callable[[InputGenerator], tuple[Any, ...]]:
    """Random tensors of these shapes: a digit is itself, ``a`` to ``e`` are sizes, others at each point.

    Args:
        given: such as ``"ab1"``, ``"bat"`` for a transposed one, ``""`` without dimensions; no text comes as it is.
    """

    def inputs(draw: InputGenerator) -> tuple[Any, ...]:
        sizes = dict(zip("abcde", draw.sizes(5), strict=True))
        return tuple(one(x, sizes, draw) if isinstance(x, str) else x for x in given)

    def one(shape: str, sizes: dict[str, int], draw: InputGenerator) -> Tensor:
        tensor = draw.normal(*(sizes.get(letter) or int(letter) for letter in shape.rstrip("t")))
        return tensor.t() if shape.endswith("t") else tensor

    return inputs


def points(*given: Any) -> Callable[[InputGenerator], Iterable[tuple[Any, ...]]]:
    """Edge inputs, each as ``normals`` takes it, or its shapes alone as ``"ab,b"``."""
    each = [normals(*(point.split(",") if isinstance(point, str) else point)) for point in given]
    return lambda draw: [inputs(draw) for inputs in each]


def elementwise(*rest: Any) -> Callable[[InputGenerator], Iterable[tuple[Any, ...]]]:
    """Edge inputs of one tensor: without dimensions, empty, transposed, with gaps, repeated by expand, with a zero.

    Args:
        rest: the arguments after the tensor.
    """

    def edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
        rows, columns = draw.sizes(2)
        yield (draw.normal(), *rest)
        yield (draw.normal(0, columns), *rest)
        yield (draw.normal(rows, columns).t(), *rest)
        yield (draw.normal(rows, columns)[:, ::2], *rest)
        yield (draw.normal(columns).expand(rows, columns), *rest)
        yield (torch.cat((draw.normal(columns), torch.zeros(1, dtype=torch.float64))), *rest)

    return edges


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the formula of a linear layer."""
    return torch.nn.functional.linear(input, weight, bias)


linear_inputs = normals("ab", "cb", "c")  # input, weight and bias
linear_edges = points("34,14,1", "14,54,5", "04,54,5")  # with one output, one row, no row
