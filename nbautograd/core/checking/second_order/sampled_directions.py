"""A large function at few directions: numbers in, numbers out, to be checked like a small one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.problem import Subject

DIRECTIONS = 4  # per input
TOGETHER = 8  # elements that one direction moves; more would meet a kink too easily


def restrict_to_directions(
    subject: Subject, seed: int, directions: int = DIRECTIONS, together: int | None = TOGETHER
) -> Subject | None:
    """The same function of a few numbers per input, each of which moves a few elements.

    Args:
        subject: a function whose Jacobians would be too large to hold.
        seed: of the choice of elements, and of the weights that the outputs are read with.
        directions: how many of them per input.
        together: how many elements one of them moves; all of them when None.

    Returns:
        A subject whose blocks have so many rows and columns; None for complex tensors.
    """
    outputs = subject.call()
    moved = [subject.inputs[i].detach() for i in subject.differentiable]
    if any(t.is_complex() for t in (*outputs, *moved)):
        return None
    generator = torch.Generator().manual_seed(seed)
    places = [_places(x, generator, directions, together or x.numel()) for x in moved]
    weights = [torch.randn(directions, y.numel(), generator=generator, dtype=torch.float64).to(y) for y in outputs]

    def few(*numbers: Tensor) -> tuple[Tensor, ...]:
        given: list[Any] = list(subject.fresh())
        for k, i in enumerate(subject.differentiable):
            given[i] = _moved(moved[k], numbers[k], places[k])
        found: Sequence[Tensor] = tuple(subject.flat(subject.fn(*given)))
        return tuple(w @ y.reshape(-1) for w, y in zip(weights, found, strict=True))

    start = tuple(x.new_zeros(directions).requires_grad_() for x in moved)
    small = Subject(few, start, subject.seed)
    small.has_functions = subject.has_functions
    small.input_names = tuple(subject.input_names[i] for i in subject.differentiable)
    small.output_names = subject.output_names
    return small


Places = tuple[Tensor, Tensor]


def _places(x: Tensor, generator: torch.Generator, directions: int, together: int) -> Places:
    """Which elements move, and how far each for one unit: as much as it is large."""
    count = min(together, max(1, x.numel() // directions))
    index = torch.randint(max(1, x.numel()), (directions, count), generator=generator)
    if count == x.numel():
        index = torch.arange(count).reshape(1, count)
    size = x.reshape(-1)[index.reshape(-1)].abs() if x.numel() else x.new_zeros(index.numel())
    sign = torch.randint(2, (index.numel(),), generator=generator) * 2 - 1
    return index, sign.to(x) * torch.where(size > 0, size, torch.ones_like(size)) / math.sqrt(count)


def _moved(x: Tensor, numbers: Tensor, places: Places) -> Tensor:
    index, far = places
    if not x.numel():
        return x + 0 * numbers.sum()
    by = numbers.repeat_interleave(index.shape[1]) * far
    return x.reshape(-1).index_add(0, index.reshape(-1), by).reshape(x.shape)
