"""Exercises of notebook 13, implicit differentiation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise

STEPS = 150  # of the unrolled formula: 0.8^150 is far below every tolerance


def _roots(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield (torch.full((3,), 1e8, dtype=torch.float64),)
    yield (torch.full((3,), 1e-8, dtype=torch.float64),)
    yield (10 ** draw.uniform(-8.0, 8.0, 6),)
    yield (draw.uniform(0.5, 4.0),)
    yield (draw.uniform(0.5, 4.0, 3, 4).t(),)
    yield (draw.uniform(0.5, 4.0, 4).expand(3, 4),)


def _contraction(draw: InputGenerator, size: int) -> tuple[Tensor, Tensor]:
    matrix = draw.normal(size, size)
    return matrix * (0.8 / torch.linalg.matrix_norm(matrix, 2)), draw.normal(size)


def _at_rest(matrix: Tensor, x: Tensor) -> Tensor:
    """Return the fixed point, unrolled: autograd of it is right once it has converged."""
    y = torch.zeros_like(x)
    for _ in range(STEPS):
        y = torch.tanh(matrix @ y + x)
    return y


def _fixed_points(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield _contraction(draw, 1)
    yield _contraction(draw, 5)
    matrix, x = _contraction(draw, 3)
    yield matrix.t(), x
    yield torch.zeros(3, 3, dtype=torch.float64), x
    yield matrix, 5 + x.abs()  # nearly flat: a difference of values has few digits left


def _regression(draw: InputGenerator, rows: int, columns: int) -> tuple[Tensor, ...]:
    return draw.normal(rows, columns), draw.normal(rows), draw.uniform(0.5, 2.0)


def _ridge(design: Tensor, target: Tensor, strength: Tensor) -> Tensor:
    normal = design.T @ design + strength * torch.eye(design.shape[1], dtype=design.dtype)
    weights: Tensor = torch.linalg.solve(normal, design.T @ target)
    return weights


def _regressions(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield _regression(draw, 2, 4)  # fewer rows than columns: only the strength makes it solvable
    yield _regression(draw, 5, 1)
    yield _regression(draw, 1, 1)
    design, target, strength = _regression(draw, 3, 3)
    yield design.t(), target, strength
    design, target, strength = _regression(draw, 4, 3)
    yield design, 1000 * target, 1e5 * strength  # moved by a little, the result shows nothing of it


EXERCISES = (
    Exercise(
        "newton_root", "Root",
        "value own_function gradient double_backward context edges",
        formula=torch.sqrt, inputs=lambda draw: (draw.uniform(0.5, 4.0, *draw.sizes(2)),), edges=_roots,
        tolerance=1e-9, saved_bytes=lambda a: 8 * a.numel(),
    ),
    Exercise(
        "fixed_point", "FixedPoint", "value own_function gradient context edges",
        formula=_at_rest, inputs=lambda draw: _contraction(draw, *draw.sizes(1)), edges=_fixed_points,
        saved_bytes=lambda matrix, x: 8 * (2 * matrix.numel() + 4 * x.numel()), tolerance=1e-9,
    ),
    Exercise(
        "ridge", "Ridge", "value own_function gradient edges",
        formula=_ridge, inputs=lambda draw: _regression(draw, *draw.sizes(2)), edges=_regressions, tolerance=1e-9,
    ),
)  # fmt: skip
