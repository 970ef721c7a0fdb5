"""Directional derivatives of the forward: what backward must agree with, at any point, whatever its size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Subject

STEPS = (3e-2, 6e-3, 1.2e-3, 2.4e-4, 5e-5)
COARSE = (1.2e-1, 6e-2, 3e-2)


@dataclass(frozen=True)
class DirectionalDerivative:
    """A question that has one right answer: how much <v, f(x)> grows when one input moves along u.

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
        """Whether this gradient of <v, f(x)> gives the same answer; None counts as zero."""
        if gradient is None:
            return abs(self.slope) <= 10 * self.error + 1e-12
        parts = torch.view_as_real(gradient) if gradient.is_complex() else gradient
        along = torch.view_as_real(self.u) if self.u.is_complex() else self.u
        if parts.shape != along.shape:
            return False
        terms = (parts.double() * along.double()).reshape(-1)
        size = max(float(terms.abs().sum()), abs(self.slope))
        return bool(torch.isfinite(terms).all()) and (
            abs(float(terms.sum()) - self.slope) <= 10 * self.error + self.rel * size
        )


def directional_derivative(
    subject: Subject,
    inputs: Sequence[Any],
    which: int,
    cotangents: Sequence[Tensor | None],
    seed: int,
    lay: Callable[[Tensor], Tensor] | None = None,
) -> DirectionalDerivative | None:
    """Ask in a random direction; None when differences give no clear answer (a kink, noise, outside the domain).

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
    generator = torch.Generator().manual_seed(seed)
    size = x.abs().double() if not x.is_complex() else x.abs()
    typical = float(size.mean()) if size.numel() and float(size.mean()) > 0 else 1.0
    u = (
        torch.randn(x.shape, generator=generator, dtype=x.dtype).clamp(-2, 2)
        if not x.is_complex()
        else torch.randn(x.shape, generator=generator, dtype=x.dtype)
    )
    # each element moves by a part of itself: logs, roots and 1/x stay inside their domain
    u = u * torch.where(size > 1e-3 * typical, size, torch.full_like(size, typical)).to(x.dtype)
    u = u if lay is None else lay(u)  # a direction that the layout can follow
    single = torch.finfo(x.dtype).bits < 64
    rel = 5e-3 if single else 1e-7
    digit = float(torch.finfo(x.dtype).eps)

    def value(h: float) -> float:
        given = [copy(item) for item in inputs]
        given[position] = (x + h * u).requires_grad_()
        if lay is not None:
            given = [_laid(item, lay) if k in subject.differentiable else item for k, item in enumerate(given)]
        with torch.no_grad():
            return inner_product(subject.evaluate(tuple(given)), cotangents)

    answers: list[float] = []
    pairs: list[tuple[float, float]] = []
    steps = COARSE if single else STEPS
    size_there = _size(subject, inputs, cotangents)
    for h in steps:
        answers.append(_richardson(value, h))
        # two answers that agree by chance are no surer than the last digits of the values that they are made of
        round_off = 8 * digit * size_there / h
        pairs += [(b, abs(a - b) + round_off) for a, b in [answers[-2:]] if a == a and b == b] if answers[1:] else []
        if pairs and pairs[-1][1] <= 1e-2 * rel * abs(pairs[-1][0]):
            break  # more steps would not tell more than the comparison asks for
    if not pairs or _kinked(value, steps[-1]):
        return None
    slope, error = min(pairs, key=lambda pair: pair[1])
    scale = max(size_there, *(abs(a) for a in answers if a == a))
    return DirectionalDerivative(which, u, slope, error, rel) if error <= 1e3 * rel * scale + 1e-300 else None


def _size(subject: Subject, inputs: Sequence[Any], cotangents: Sequence[Tensor | None]) -> float:
    """The sum over outputs of <|v|, |y|>: what <v, y> is a difference of."""
    with torch.no_grad():
        outputs = subject.evaluate(tuple(copy(item) for item in inputs))
    return sum(float((y.abs() * v.abs()).sum()) for y, v in zip(outputs, cotangents, strict=True) if v is not None)


def _laid(item: Tensor, lay: Callable[[Tensor], Tensor]) -> Tensor:
    return lay(item.detach()).requires_grad_(item.requires_grad)


def _richardson(value: Callable[[float], float], h: float) -> float:
    wide, narrow = (_central(value, k) for k in (h, h / 2))
    return (4 * narrow - wide) / 3


def _central(value: Callable[[float], float], h: float) -> float:
    return (value(h) - value(-h)) / (2 * h)


def _kinked(value: Callable[[float], float], h: float) -> bool:
    """Whether the slopes to both sides differ, as they do at a kink."""
    low, here, high = (value(k) for k in (-h, 0.0, h))
    right, left = (high - here) / h, (here - low) / h
    return abs(right - left) > 2e-2 * max(abs(right), abs(left)) + 1e-9


def inner_product(outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]) -> float:
    """The sum over outputs of <v, y>, complex numbers as pairs of real ones."""
    total = 0.0
    for y, v in zip(outputs, cotangents, strict=True):
        if v is not None:
            a = torch.view_as_real(y.detach().resolve_conj()) if y.is_complex() else y.detach()
            b = torch.view_as_real(v) if v.is_complex() else v
            total += float((a.double() * b.double()).sum())
    return total
