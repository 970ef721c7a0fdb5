"""Which gradients are meant to be no derivative: straight-through, surrogates, reversals and scales of a gradient.

That is a property of forward, decided before a gradient is judged: where forward is flat but for jumps (`Stairs`), or
hands a tensor on as it is, differences have nothing to say of what its author wants backward to return. What backward
does there is told only as far as two cotangents and a second point show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from nbautograd.core import formats
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.steps.stairs import Stairs
from nbautograd.core.display import Phrase
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import users_errors

MeantReason = Literal["staircase", "scale of stairs", "handed on"]
SHORT = 1e-4  # of a direction, that meets few jumps
SMALL, LARGE = 1e-6, 1e6  # sizes of a grad_output of which a clipped gradient leaves the one and not the other


@dataclass(frozen=True)
class Meant:
    """A pair of output and input for which backward is meant to return something else than the derivative.

    Attributes:
        reason: ``"staircase"`` (flat but for jumps), ``"scale of stairs"`` (sets their height or place) or
            ``"handed on"`` (forward returns a tensor that it was given).
        output, input: names.
        instead: what backward returns, as far as it was confirmed.
    """

    reason: MeantReason
    output: str
    input: str
    instead: Phrase

    @property
    def phrase(self) -> Phrase:
        """Say in one sentence why there is no derivative to compare with, and in another what backward does instead."""
        why = Phrase(f"checking.because_{self.reason.replace(' ', '_')}", output=self.output, input=self.input)
        return Phrase("checking.meant", why=why, instead=self.instead)


def meant_pairs(problem: Problem) -> dict[tuple[int, int], Meant]:
    """Return the pairs (output, input), by position, whose gradient is meant to be no derivative.

    Where forward is flat, backward returns a gradient there or at other inputs; where a tensor is handed on, it returns
    another gradient than the one that comes in.

    Args:
        problem: whose inputs and flags are those of the program.

    Raises:
        Exception: the user's own, from ``forward`` or ``backward``.
    """
    found: dict[tuple[int, int], Meant] = {}
    with problem.session():
        outputs = problem.call()
        wanted = problem.differentiable_outputs(outputs)
        if not wanted:
            return found
        stairs = Stairs(problem, outputs, Forward(problem, outputs, wanted))
        for i, o in enumerate(wanted):
            source = _handed_on(problem, outputs, o)
            for j, position in enumerate(problem.differentiable):
                reason: MeantReason | None = None
                if source is not None:
                    reason = "handed on" if _returns_another(problem, outputs, o, j, source) else None
                elif stairs.flat(i, j):
                    reason = "staircase" if stairs.alive(i, j) else None
                elif stairs.scales(i, j):
                    reason = "scale of stairs"
                if reason is not None and not (stairs.alive_here(i, j) and _agrees(problem, outputs, o, j)):
                    names = problem.output_names[o], problem.input_names[position if source is None else source]
                    here = reason == "handed on" or stairs.alive_here(i, j)
                    instead = _instead(problem, outputs, o, j) if here else Phrase("checking.instead_zero_here")
                    found[o, position] = Meant(reason, *names, instead)
    return found


def _agrees(problem: Problem, outputs: Outputs, o: int, j: int) -> bool:
    """Return True where what backward returns is the derivative between two jumps, along two random directions."""
    for seed in (0, 1):
        v = cotangents(problem, outputs, problem.seed + seed, only=o)
        found = directional_derivative(problem, problem.inputs, j, v, seed, scale=SHORT)
        if found is None or not found.agrees(pull(problem, outputs, v)[j]):
            return False
    return True


def joined(pairs: Mapping[tuple[int, int], Meant]) -> Phrase:
    """Return what is said of all pairs: of the first one, with the other inputs by name."""
    first, *rest = sorted(pairs.values(), key=lambda one: one.reason != "staircase")
    others = dict.fromkeys(f"`{one.input}`" for one in rest if one.input != first.input)
    return Phrase("checking.meant_too", first=first.phrase, inputs=", ".join(others)) if others else first.phrase


def _handed_on(problem: Problem, outputs: Outputs, o: int) -> int | None:
    """Return the position of the tensor that an output equals, here and where all inputs are others."""
    generator = torch.Generator().manual_seed(problem.seed + 17)

    def moved(x: Tensor) -> Tensor:
        return x + torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)

    equal = _equal_inputs(outputs[o], problem.inputs)
    if not equal:
        return None
    others = problem.changed_inputs(moved)
    kept = tuple(x.detach().clone() if isinstance(x, Tensor) else x for x in others)
    with users_errors(), torch.no_grad():
        again = _equal_inputs(problem.evaluate(others)[o], kept)
        return next((k for k in equal if k in again), None)
    return None


def _equal_inputs(output: Tensor, inputs: tuple[Any, ...]) -> list[int]:
    tensors = [(k, x.detach()) for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.shape == output.shape]
    return [k for k, x in tensors if x.dtype == output.dtype and torch.equal(x, output.detach())]


def _returns_another(problem: Problem, outputs: Outputs, o: int, j: int, source: int) -> bool:
    """Return True where backward of a tensor that is handed on returns another gradient than the one that comes in."""
    v = cotangents(problem, outputs, problem.seed, only=o)
    gradient, came = pull(problem, outputs, v)[j], v[o]
    expected = came if problem.differentiable[j] == source else None
    return not agree_relative(gradient, expected, gradient_tolerance(outputs, problem.inputs))


def _instead(problem: Problem, outputs: Outputs, o: int, j: int) -> Phrase:
    """Say what backward returns for one output, as far as two cotangents agree on it, and a second point."""
    near = gradient_tolerance(outputs, problem.inputs)
    v, w = (cotangents(problem, outputs, problem.seed + k, only=o) for k in (1, 2))

    def gradient(c: float = 1.0, u: list[Tensor | None] = v) -> Tensor | None:
        return pull(problem, outputs, [None if t is None else c * t for t in u])[j]

    g, h, came, other = gradient(), gradient(u=w), v[o], w[o]
    assert came is not None
    assert other is not None
    if g is None or h is None or not (bool(g.any()) or bool(h.any())):
        return Phrase("checking.instead_zero")
    if g.shape != came.shape or g.is_complex() != came.is_complex():
        return Phrase("checking.instead_own")
    small, large, larger = (gradient(c) for c in (SMALL, LARGE, LARGE**2))
    small_kept = agree_relative(small, SMALL * came, near) and not agree_relative(large, LARGE * came, near)
    if small_kept and large is not None and agree_relative(large, larger, near):
        return Phrase("checking.instead_clipped", most=formats.number(float(large.abs().max())))
    if not agree_relative(gradient(3.0), 3 * g, near):
        return Phrase("checking.instead_own")
    pairs = [(g, came), (h, other), *_elsewhere(problem, o, j)]
    factors = [(one / v)[one != 0] for one, v in pairs]
    if not torch.equal(g != 0, h != 0) or not agree_relative(factors[0], factors[1], near):
        return Phrase("checking.instead_own")
    factor = factors[0][0]
    if not all(agree_relative(each, factor.expand_as(each), near) for each in factors):
        return Phrase("checking.instead_entrywise")
    if len(pairs) == 2:
        return Phrase("checking.instead_own")
    number = formats.number(float(factor.real))
    if not all(bool((one != 0).all()) for one, _ in pairs):
        return Phrase("checking.instead_window", factor=number)
    if agree_relative(factor, torch.ones_like(factor), near):
        return Phrase("checking.instead_unchanged")
    return Phrase("checking.instead_reversed" if factor.real < 0 else "checking.instead_multiple", factor=number)


def _elsewhere(problem: Problem, o: int, j: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the gradient at other inputs with what came in there; nothing where forward does not take them."""
    with users_errors():
        outputs = problem.call(problem.changed_inputs(lambda x: x * 1.25 + 0.1))
        came = cotangents(problem, outputs, problem.seed + 3, only=o)
        gradient, v = pull(problem, outputs, came)[j], came[o]
        if gradient is not None and v is not None and gradient.shape == v.shape:
            yield gradient, v
