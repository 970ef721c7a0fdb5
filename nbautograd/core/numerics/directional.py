"""Derivative of a function along a direction, by central differences and Richardson's extrapolation.

Richardson, L. F. (1911). The approximate arithmetical solution by finite differences of physical problems involving
differential equations. Philosophical Transactions of the Royal Society A 210, 307-357.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.constants import SMALL_IN_ROW

Number = TypeVar("Number", float, Array)

# Steps, relative to the direction: five times finer each, from where truncation rules to where round-off does.
STEPS = (3e-2, 6e-3, 1.2e-3, 2.4e-4, 5e-5)
STEPS_OF_SINGLE = (1.2e-1, 6e-2, 3e-2)  # with 7 digits finer steps see only round-off

# Relative to the size of what is summed up: how closely a gradient should agree with the slope.
AGREEMENT, AGREEMENT_OF_SINGLE = 1e-7, 5e-3

# Relative difference of the slopes to both sides, extrapolated to no step at all, that only a kink leaves. Several
# kinks at one point may nearly cancel; in single precision rounding leaves about a hundredth.
KINK, KINK_OF_SINGLE = 1e-3, 2e-2
ROUNDINGS = 8  # last digits of the values that one extrapolated difference may be off by
FLAT = 1e-9  # absolute: slopes to both sides that differ by less are those of a constant
TINIEST = 1e-300  # absolute, so that an error of 0 is clear where nothing moves
UNCLEAR = 1e3  # an error larger than so many agreements, relative to the slope, gives no answer


class Slope(NamedTuple):
    """A derivative along a direction.

    Attributes:
        value: the derivative.
        error: its estimated error.
        agreement: how closely a gradient should agree with it, relative to the size of what is summed up.
    """

    value: float
    error: float
    agreement: float


def slope_at_zero(
    value: Callable[[float], float], size: float, dtype: torch.dtype, enough: float = 1e-2
) -> Slope | None:
    """Estimate the derivative of a number of one variable at 0.

    Central differences c(h) = [f(h) - f(-h)] / 2h err by O(h^2); (4 c(h/2) - c(h)) / 3 errs by O(h^4). The difference
    of two extrapolations is the error estimate of the finer one, with the round-off of their values added.

    Args:
        value: the function; NaN where it is not defined.
        size: sum of the sizes of what the value is a sum of, for its round-off.
        dtype: in which the function computes.
        enough: the error at which no finer step is taken, in units of how closely a gradient should agree.

    Returns:
        The estimate with the smallest error; None at a kink, outside the domain, or where noise rules.
    """
    single = torch.finfo(dtype).bits < 64
    steps, agreement = (STEPS_OF_SINGLE, AGREEMENT_OF_SINGLE) if single else (STEPS, AGREEMENT)
    sides: tuple[tuple[float, float], ...] = ()
    answers: list[float] = []
    estimates: list[tuple[float, float]] = []
    for h in steps:
        sides = tuple((value(k), value(-k)) for k in (h, h / 2))
        wide, narrow = ((up - down) / (2 * k) for (up, down), k in zip(sides, (h, h / 2), strict=True))
        answers.append(richardson(wide, narrow, 2.0**2))
        if len(answers) > 1:
            coarse, fine = answers[-2:]
            # two answers that agree by chance are no surer than the last digits of the values that they are made of
            round_off = ROUNDINGS * float(torch.finfo(dtype).eps) * size / h
            if coarse == coarse and fine == fine:
                estimates.append((fine, abs(coarse - fine) + round_off))
        if estimates and estimates[-1][1] <= enough * agreement * abs(estimates[-1][0]):
            break  # more steps would not tell more than the comparison asks for
    if not estimates or _is_kink(sides, value(0.0), h, KINK_OF_SINGLE if single else KINK):
        return None
    slope, error = min(estimates, key=lambda estimate: estimate[1])
    scale = max(size, *(abs(a) for a in answers if a == a))
    return Slope(slope, error, agreement) if error <= UNCLEAR * agreement * scale + TINIEST else None


def random_direction(x: Tensor, seed: int) -> Tensor:
    """Draw a direction that moves each element by a part of itself: logs, roots, 1/x stay inside their domain."""
    generator = draws.generator(seed, "direction")
    size = x.abs() if x.is_complex() else x.abs().double()
    mean = float(size.mean()) if size.numel() else 0.0
    typical = mean if mean > 0 else 1.0
    u = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    u = u if x.is_complex() else u.clamp(-2, 2)
    return u * torch.where(size > SMALL_IN_ROW * typical, size, torch.full_like(size, typical)).to(x.dtype)


def inner_product(outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]) -> float:
    """Sum <v, y> over the outputs, complex numbers as pairs of real ones; None counts as zeros."""
    total = 0.0
    for y, v in zip(outputs, cotangents, strict=True):
        if v is not None:
            a = torch.view_as_real(y.detach().resolve_conj()) if y.is_complex() else y.detach()
            b = torch.view_as_real(v) if v.is_complex() else v
            total += float((a.double() * b.double()).sum())
    return total


def richardson(coarse: Number, fine: Number, order: float) -> Number:
    """Return Richardson's extrapolation of two differences, of which the fine one errs less by the factor ``order``.

    With steps h and h / r they are c = d + a h**p + ... and f = d + a (h / r)**p + ..., so that
    f + (f - c) / (r**p - 1) is free of the leading error; ``order`` is r**p (Richardson 1911).
    """
    result: Number = fine + (fine - coarse) / (order - 1)
    return result


def _is_kink(sides: Sequence[tuple[float, float]], here: float, h: float, least: float) -> bool:
    """Compare the slopes to both sides, which differ at a kink; elsewhere by h f'', which extrapolation takes away.

    Args:
        sides: the values a step to each side, and half a step.
        here: the value in the middle.
        h: the step.
        least: the relative difference that counts.
    """
    wide, narrow = ((up - 2 * here + down) / k for (up, down), k in zip(sides, (h, h / 2), strict=True))
    slope = max(abs(sides[1][0] - here), abs(here - sides[1][1])) / (h / 2)
    return abs(richardson(wide, narrow, 2.0)) > least * slope + FLAT
