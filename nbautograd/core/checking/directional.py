"""Directional derivatives of the forward, which backward must agree with: at any point, and inside a constraint."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_within
from nbautograd.core.numerics.constants import BACKWARD_ROUNDINGS, BACKWARD_ROUNDINGS_OF_HALF, ERROR_BARS, HALF
from nbautograd.core.numerics.directional import (
    AGREEMENT,
    ROUNDINGS,
    STEPS,
    inner_product,
    random_direction,
    slope_at_zero,
)
from nbautograd.core.stumbles import users_errors

DOUBLE = float(torch.finfo(torch.float64).eps)
BORNE_OUT = 1e-6  # relative to the terms: how well a difference at the finest step agrees with a right derivative
BEND = 1e-3  # relative difference of the slopes to both sides there that a kink may have left
NOTHING = 1e-12  # a slope this small is none: backward that returns None agrees with it


@dataclass(frozen=True)
class DirectionalDerivative:
    """The derivative of <v, f(x)> when one input moves along u, which a right gradient agrees with.

    Attributes:
        which: number of the input among the differentiable ones; -1 for tensors that are no inputs.
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
            return bool(agree_within(0.0, self.slope, ERROR_BARS * self.error + NOTHING))
        terms = self._terms(gradient)
        if terms is None:
            return False
        size = max(float(terms.abs().sum()), abs(self.slope))
        return bool(torch.isfinite(terms).all()) and (
            bool(agree_within(float(terms.sum()), self.slope, ERROR_BARS * self.error + self.rel * size))
        )

    def off_by(self, gradient: Tensor | None) -> float:
        """Return what a gradient differs by along the direction; NaN for another shape."""
        terms = self.u.new_zeros(1) if gradient is None else self._terms(gradient)
        return math.nan if terms is None else float(terms.sum()) - self.slope

    def _terms(self, gradient: Tensor) -> Tensor | None:
        components = torch.view_as_real(gradient) if gradient.is_complex() else gradient
        along = torch.view_as_real(self.u) if self.u.is_complex() else self.u
        return (components.double() * along.double()).reshape(-1) if components.shape == along.shape else None


def directional_derivative(
    problem: Problem,
    inputs: Sequence[Any],
    which: int,
    cotangents: Sequence[Tensor | None],
    seed: int,
    lay: Callable[[Tensor], Tensor] | None = None,
    *,
    exact: bool = False,
    scale: float = 1.0,
    symmetric: bool = False,
    enough: float = 1e-2,
) -> DirectionalDerivative | None:
    """Differentiate <v, f> in a random direction; None where differences are not clear (kink, noise, no domain).

    Args:
        inputs: the point.
        which: number of the input that moves, among the differentiable ones.
        cotangents: one per output, what <v, f(x)> is made with.
        seed: of the direction.
        lay: lays each differentiable input out in memory before the call; an input of one number seen everywhere
            moves as a whole.
        exact: True to allow a gradient the rounding of differences alone, and not that of coarse numbers in backward.
        scale: of the direction; a short one passes fewer kinks.
        symmetric: True for a symmetric direction, Hermitian in complex numbers.
        enough: the error at which no finer step is taken, in what a right gradient may differ by.
    """
    position = problem.differentiable[which]
    x = inputs[position].detach()
    u = scale * _direction(x, seed, symmetric)
    u = u if lay is None else lay(u)  # a direction that the layout can follow

    value = _along(problem, inputs, {position: u}, cotangents, lay)
    found = slope_at_zero(value, _size(problem, inputs, cotangents), x.dtype, enough)
    if found is None:
        return None
    rel = found.agreement if exact else max(found.agreement, _rounding(problem))
    return DirectionalDerivative(which, u, found.value, found.error, rel)


def derivative_of_reached(
    problem: Problem, gradients: Mapping[Tensor, Tensor], cotangents: Sequence[Tensor | None], seed: int, scale: float
) -> DirectionalDerivative | None:
    """Differentiate <v, f> as tensors move that the function reaches besides its inputs, flat and joined to one.

    They move along what are said to be their gradients, where no terms cancel: in single precision a sum of many that
    do agrees with any. They hold other memory meanwhile. Theirs is not written to: a graph of the program's own may
    have saved it, another process may share it, and it may be read-only.
    """
    held = [x.data for x in gradients]
    drawn = [scale * random_direction(x, seed) for x in held]
    directions = [torch.where(g == 0, r, r.abs() * g.sgn()) for r, g in zip(drawn, gradients.values(), strict=True)]

    def value(h: float) -> float:
        for x, was, u in zip(gradients, held, directions, strict=True):
            x.data = (was + h * u).to(was.dtype)
        with users_errors(), torch.no_grad():  # it may refuse other ones
            return inner_product(problem.evaluate(problem.fresh()), cotangents)
        return math.nan

    try:
        coarsest = min((x.dtype for x in held), key=lambda dtype: torch.finfo(dtype).bits)
        found = slope_at_zero(value, _size(problem, problem.inputs, cotangents), coarsest)
    finally:
        for x, was in zip(gradients, held, strict=True):
            x.data = was
    if found is None:
        return None
    u = torch.cat([u.reshape(-1) for u in directions])
    return DirectionalDerivative(-1, u, found.value, found.error, max(found.agreement, _rounding(problem)))


def borne_out(
    problem: Problem,
    outputs: Outputs,
    cotangents: Sequence[Tensor | None],
    gradients: Sequence[Tensor | None],
    seed: int,
    symmetric: Container[int] = (),
) -> dict[int, DirectionalDerivative]:
    """Return the derivatives that gradients of <v, f> give along the directions that ``directional_derivative`` takes.

    One difference at the finest step, along all these directions at once, has to agree with their sum: it bears the
    gradients of all inputs out for two runs, where each input needs a dozen if nothing is known of its derivative.
    Where the slopes cancel, what bends looks like a kink beside their sum: another direction is tried.

    Args:
        cotangents: one per output.
        gradients: one per differentiable input, of a witness that is independent of backward.
        symmetric: numbers of the inputs that move symmetrically.

    Returns:
        By the input's number; nothing where the difference does not agree or sees a kink, and below double precision.
    """
    floats = [t for t in (*outputs, *outputs.inputs) if isinstance(t, Tensor) and t.is_floating_point()]
    if any(t.dtype is not torch.float64 for t in floats) or problem.casts.coarsest > DOUBLE:
        return {}
    leaves = [outputs.inputs[i].detach() for i in problem.differentiable]
    size = sum(
        float((y.detach().abs() * v.abs()).sum()) for y, v in zip(outputs, cotangents, strict=True) if v is not None
    )
    step, here, roundings = STEPS[-1], inner_product(outputs, cotangents), ROUNDINGS * DOUBLE * size
    rel, blur = max(AGREEMENT, _rounding(problem)), roundings / step
    # what terms that cancel may leave; a difference at the step that serves most functions would be as unsure of it
    error = roundings / STEPS[1]
    for turn in (seed, draws.child(seed, "other")):
        directions = [_direction(x, turn, k in symmetric) for k, x in enumerate(leaves)]
        slopes = [inner_product([u], [g]) for u, g in zip(directions, gradients, strict=True)]
        terms = [0.0 if g is None else float((u * g).abs().sum()) for u, g in zip(directions, gradients, strict=True)]
        moved = dict(zip(problem.differentiable, directions, strict=True))
        value = _along(problem, outputs.inputs, moved, cotangents)
        right, left = (value(step) - here) / step, (here - value(-step)) / step
        if not agree_within((right + left) / 2, sum(slopes), BORNE_OUT * sum(terms) + blur):
            break
        if abs(right - left) <= BEND * max(abs(right), abs(left)) + blur:
            return {
                k: DirectionalDerivative(k, u, slope, error, rel)
                for k, (u, slope) in enumerate(zip(directions, slopes, strict=True))
            }
    return {}


def _along(
    problem: Problem,
    inputs: Sequence[Any],
    directions: Mapping[int, Tensor],
    cotangents: Sequence[Tensor | None],
    lay: Callable[[Tensor], Tensor] | None = None,
) -> Callable[[float], float]:

    def value(h: float) -> float:
        given = [copy(item) for item in inputs]
        for i, u in directions.items():
            given[i] = (inputs[i].detach() + h * u).requires_grad_()
        if lay is not None:
            given = [*problem.changed_inputs(lay, inputs=given)]
        with torch.no_grad():
            return inner_product(problem.evaluate(tuple(given)), cotangents)

    return value


def _direction(x: Tensor, seed: int, symmetric: bool) -> Tensor:
    u = random_direction(x, seed)
    return (u + u.mH) / 2 if symmetric else u


def _rounding(problem: Problem) -> float:
    """Return how coarse each term of <g, u> is for what backward computes with."""
    coarse = problem.casts.backward
    return (BACKWARD_ROUNDINGS if coarse < HALF else BACKWARD_ROUNDINGS_OF_HALF) * coarse


def _size(problem: Problem, inputs: Sequence[Any], cotangents: Sequence[Tensor | None]) -> float:
    with torch.no_grad():
        outputs = problem.evaluate(tuple(copy(item) for item in inputs))
    return sum(float((y.abs() * v.abs()).sum()) for y, v in zip(outputs, cotangents, strict=True) if v is not None)


DIRECTIONS = 4  # of each kind, each with a cotangent of its own
SHORTENED = 1e-4  # of an element: how far a direction without a constraint moves it

Project = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class DerivativeInside:
    """Derivatives along directions that a forward takes which refuses a change of a single entry.

    Attributes:
        kind: of the directions: ``"smaller"`` (any, by small steps), ``"symmetric"`` or ``"zero_sum"``.
        agrees: True where backward agrees along all of them.
        slope, by_backward: the derivative along the first one that differs, else along the first.
    """

    kind: str
    agrees: bool
    slope: float
    by_backward: float


def derivative_inside(problem: Problem, outputs: Outputs, output: int, which: int) -> DerivativeInside | None:
    """Compare backward with differences along directions inside the domain of forward.

    A constraint between the entries of an input (a symmetric matrix, probabilities that sum to one) refuses the step
    of a central difference along one of them. Its tangent directions are taken from what is common, one kind after
    another, until forward takes all of a kind.

    Args:
        problem: what is checked; a session of it must be open.
        output: position of the output.
        which: number of the input among the differentiable ones.

    Returns:
        None where forward takes no kind of direction, or where backward agrees along some only.
    """
    x = problem.inputs[problem.differentiable[which]].detach()
    for kind, project in _projections(x):
        seeds = (draws.child(problem.seed, k) for k in range(DIRECTIONS))
        pairs = [_compared_along(problem, outputs, (output, which), project, seed) for seed in seeds]
        found = [pair for pair in pairs if pair is not None]
        if len(found) < DIRECTIONS:
            continue
        agreed = [derivative.agrees(gradient) for derivative, gradient in found]
        derivative, gradient = found[0 if all(agreed) else agreed.index(False)]
        by_backward = 0.0 if gradient is None else inner_product([gradient], [derivative.u])
        compared = DerivativeInside(kind, all(agreed), derivative.slope, by_backward)
        return compared if all(agreed) or sum(agreed) < DIRECTIONS // 2 else None
    return None


def _projections(x: Tensor) -> Iterator[tuple[str, Project]]:
    """Yield kinds of directions that stay inside what the values of this tensor suggest."""
    yield "smaller", lambda u: SHORTENED * u
    if x.dim() >= 2 and x.shape[-1] == x.shape[-2] and torch.equal(x, x.mT):
        yield "symmetric", lambda u: (u + u.mT) / 2
    yield "zero_sum", lambda u: u - u.mean()
    for dim in range(x.dim() if x.dim() > 1 else 0):
        yield "zero_sum", lambda u, dim=dim: u - u.mean(dim, keepdim=True)  # type: ignore[misc]


def _compared_along(
    problem: Problem, outputs: Outputs, where: tuple[int, int], project: Project, seed: int
) -> tuple[DirectionalDerivative, Tensor | None] | None:
    """Return the derivative along one projected direction, and the gradient that it is compared with."""
    output, which = where
    generator = draws.generator(seed, "inside")
    y, position = outputs[output], problem.differentiable[which]
    v: list[Tensor | None] = [None] * len(outputs)
    v[output] = torch.randn(y.shape, generator=generator, dtype=y.dtype)
    x = problem.inputs[position].detach()
    u = project(random_direction(x, seed))

    along = _along(problem, problem.inputs, {position: u}, v)

    def value(h: float) -> float:
        with users_errors():
            return along(h)
        return math.nan

    found = slope_at_zero(value, _size(problem, problem.inputs, v), x.dtype)
    if found is None:
        return None
    gradient = problem.vjp(outputs, v)[which]
    return DirectionalDerivative(which, u, found.value, found.error, found.agreement), gradient
