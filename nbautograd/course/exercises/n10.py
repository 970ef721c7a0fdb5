"""Exercises of notebook 10, modules and old code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise
from nbautograd.course.exercises.layers import layer

# migrate_linear


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.nn.functional.linear(input, weight, bias)


def _linear_inputs(draw: Draw) -> tuple[Any, ...]:
    rows, ins, outs = draw.sizes(3)
    return draw.normal(rows, ins), draw.normal(outs, ins), draw.normal(outs)


def _linear_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    """One output, one row, no row."""
    yield draw.normal(3, 4), draw.normal(1, 4), draw.normal(1)
    yield draw.normal(1, 4), draw.normal(5, 4), draw.normal(5)
    yield draw.normal(0, 4), draw.normal(5, 4), draw.normal(5)


EXERCISES = (
    Exercise("linear_module", "Linear", "custom", own=layer, points=2),
    Exercise(
        "migrate_linear",
        "LinearFunction",
        "own_function value gradient linear edges optional subsets",
        _linear,
        _linear_inputs,
        _linear_edges,
        tolerance=1e-10,
    ),
    Exercise("repair_module", "Repaired", "custom", own=layer, points=2),
)
