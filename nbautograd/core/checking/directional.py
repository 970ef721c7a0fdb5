"""Directional derivatives of the forward: what backward must agree with, at any point, whatever its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Subject
from nbautograd.core.numerics.constants import ERROR_BARS
from nbautograd.core.numerics.directional import inner_product, random_direction, slope_at_zero


@dataclass(frozen=True)
class DirectionalDerivative:
    """The derivative of <v, f(x)> when one input moves along u, which a right gradient agrees with.

    Attributes:
        which: number of the input among the differentiable ones.
        u: the direction, of the input's shape.
        slope: the answer, by differences.
        error: its estimated error.
        rel: how closely a gradient should agree, relative to the size of what is summed up.
    """

    which: int
    u: Tensor
    slope: float
    error: float
    rel: float

    def agrees(self, gradient: Tensor | None) -> bool:
        """Compare this gradient of <v, f(x)> with the slope; None counts as zero."""
        if gradient is None:
            return abs(self.slope) <= ERROR_BARS * self.error + 1e-12
        parts = torch.view_as_real(gradient) if gradient.is_complex() else gradient
        along = torch.view_as_real(self.u) if self.u.is_complex() else self.u
        if parts.shape != along.shape:
            return False
        terms = (parts.double() * along.double()).reshape(-1)
        size = max(float(terms.abs().sum()), abs(self.slope))
        return bool(torch.isfinite(terms).all()) and (
            abs(float(terms.sum()) - self.slope) <= ERROR_BARS * self.error + self.rel * size
        )


def directional_derivative(
    subject: Subject,
    inputs: Sequence[Any],
    which: int,
    cotangents: Sequence[Tensor | None],
    seed: int,
    lay: Callable[[Tensor], Tensor] | None = None,
) -> DirectionalDerivative | None:
    """Differentiate <v, f> in a random direction; None where differences are not clear (kink, noise, no domain).

    Args:
        subject: what is checked.
        inputs: the point.
        which: number of the input that moves, among the differentiable ones.
        cotangents: one per output, what <v, f(x)> is made with.
        seed: of the direction.
        lay: lays each differentiable input out in memory before the call; an input of one number seen everywhere
            moves as a whole.
    """
    position = subject.differentiable[which]
    x = inputs[position].detach()
    u = random_direction(x, seed)
    u = u if lay is None else lay(u)  # a direction that the layout can follow

    def value(h: float) -> float:
        given = [copy(item) for item in inputs]
        given[position] = (x + h * u).requires_grad_()
        if lay is not None:
            given = [_laid(item, lay) if k in subject.differentiable else item for k, item in enumerate(given)]
        with torch.no_grad():
            return inner_product(subject.evaluate(tuple(given)), cotangents)

    found = slope_at_zero(value, _size(subject, inputs, cotangents), x.dtype)
    return None if found is None else DirectionalDerivative(which, u, found.value, found.error, found.agreement)


def _size(subject: Subject, inputs: Sequence[Any], cotangents: Sequence[Tensor | None]) -> float:
    """The sum over outputs of <|v|, |y|>: what <v, y> is a difference of."""
    with torch.no_grad():
        outputs = subject.evaluate(tuple(copy(item) for item in inputs))
    return sum(float((y.abs() * v.abs()).sum()) for y, v in zip(outputs, cotangents, strict=True) if v is not None)


def _laid(item: Tensor, lay: Callable[[Tensor], Tensor]) -> Tensor:
    return lay(item.detach()).requires_grad_(item.requires_grad)
