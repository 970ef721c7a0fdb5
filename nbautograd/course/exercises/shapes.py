"""Shapes of inputs: of sizes that differ from point to point, and odd ones for edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator


def of_sizes(*dimensions: int) -> Callable[[InputGenerator], tuple[Tensor, ...]]:
    """Random tensors of so many dimensions each; the sizes are the same for all, and others at each point."""
    return lambda draw: tuple(draw.normal(*draw.sizes(count)) for count in dimensions)


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


def linear_inputs(draw: InputGenerator) -> tuple[Tensor, Tensor, Tensor]:
    """Input, weight and bias of a linear layer."""
    rows, ins, outs = draw.sizes(3)
    return draw.normal(rows, ins), draw.normal(outs, ins), draw.normal(outs)


def linear_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    """Those with one output, one row, no row."""
    yield draw.normal(3, 4), draw.normal(1, 4), draw.normal(1)
    yield draw.normal(1, 4), draw.normal(5, 4), draw.normal(5)
    yield draw.normal(0, 4), draw.normal(5, 4), draw.normal(5)
