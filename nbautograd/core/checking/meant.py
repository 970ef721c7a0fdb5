"""Which gradients are meant to be no derivative: straight-through, surrogates, reversals and scales of a gradient.

That is a property of forward, decided before a gradient is judged: where forward is flat but for jumps (`Stairs`), or
hands a tensor on as it is, differences have nothing to say of what its author wants backward to return. What backward
does there is told only as far as two cotangents and a second point show it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from nbautograd.core import formats
from nbautograd.core.checking.backward_call import gradient_tolerance
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.steps.stairs import Stairs
from nbautograd.core.display import Phrase
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import users_errors
from nbautograd.core.torch_private.collectives import collectives_noted, processes

MeantReason = Literal["staircase", "scale of stairs", "handed on", "handed on alone"]
SHORT = 1e-4  # of a direction, that meets few jumps
# sizes of a grad_output, far from any bound that somebody clips at, of which a clip leaves the one alone
UNCLIPPED, CLIPPED = 1e-6, 1e6
# by how much inputs are moved: beyond what somebody clamps at, as float16's largest number, 65,504
FAR = (1.0, 1e3, 1e6, math.inf)
DRAWS = 16  # of random numbers, in which two samples that are kept nine times of ten are once in thirty all kept


@dataclass(frozen=True)
class Meant:
    """A pair of output and input for which backward is meant to return something else than the derivative.

    Attributes:
        reason: ``"staircase"`` (flat but for jumps), ``"scale of stairs"`` (sets their height or place),
            ``"handed on"`` (forward returns a tensor that it was given) or ``"handed on alone"`` (it does so in a group
            of one process, and may not in a larger one).
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

    Raises:
        Exception: the user's own, from ``forward`` or ``backward``.
    """
    found: dict[tuple[int, int], Meant] = {}
    with problem.session():
        outputs = problem.call()
        wanted = problem.differentiable_outputs(outputs)
        at, near = (points(problem).first(kind) for kind in ("given", "near"))
        if not wanted or at is None:
            return found
        stairs = Stairs(problem, outputs, Forward(problem, outputs, wanted))
        sources = [_handed_on(problem, outputs, o) for o in wanted]
        handed: MeantReason = "handed on alone" if processes() == 1 else "handed on"
        for i, (o, source) in enumerate(zip(wanted, sources, strict=True)):
            if None in sources:  # of what computes something else too the gradients are those of a computation
                source = None
            for j, position in enumerate(problem.differentiable):
                reason: MeantReason | None = None
                if source is not None:
                    reason = handed if _returns_another(at, j, source, o) else None
                elif stairs.flat(i, j):
                    reason = "staircase" if stairs.alive(i, j) else None
                elif stairs.scales(i, j):
                    reason = "scale of stairs"
                if reason is not None and not (stairs.alive_here(i, j) and _is_the_slope(at, o, j)):
                    names = problem.output_names[o], problem.input_names[position if source is None else source]
                    here = source is not None or stairs.alive_here(i, j)
                    instead = _instead(at, near, o, j) if here else Phrase("checking.instead_zero_here")
                    found[o, position] = Meant(reason, *names, instead)
    return found


def _is_the_slope(at: Point, o: int, j: int) -> bool:
    """Return True where backward returns the slope between two jumps, and that is not 0, along two random directions.

    What agrees with 0 as well is no evidence: a surrogate far from its window, or differences in float32.
    """
    for turn, one in enumerate((at.through(o), at.through(o).redrawn())):
        found = directional_derivative(at.problem, at.problem.inputs, j, one.v, turn, scale=SHORT)
        if found is None or found.agrees(None) or not found.agrees(one.pull()[j]):
            return False
    return True


def joined(pairs: Mapping[tuple[int, int], Meant]) -> Phrase:
    """Return one sentence for several pairs: that of the first, with the other inputs by name."""
    first, *rest = sorted(pairs.values(), key=lambda one: one.reason != "staircase")
    others = dict.fromkeys(f"`{one.input}`" for one in rest if one.input != first.input)
    return Phrase("checking.meant_too", first=first.phrase, inputs=", ".join(others)) if others else first.phrase


def handed_on(problem: Problem, outputs: Outputs) -> dict[tuple[int, int], int]:
    """Return the positions of tensors that outputs equal, by the pairs of which that leaves the gradient to its author.

    They are those of the tensor itself; of a forward that computes nothing all, as the gradient may be one that was
    computed elsewhere and is put in for another input.
    """
    found = {o: _handed_on(problem, outputs, o) for o in problem.differentiable_outputs(outputs)}
    every = None not in found.values()
    pairs = {(o, i): source for o, source in found.items() for i in problem.differentiable}
    return {(o, i): source for (o, i), source in pairs.items() if source is not None and (every or source == i)}


def _handed_on(problem: Problem, outputs: Outputs, o: int) -> int | None:
    """Return the position of the tensor that an output equals, whatever inputs, flags and random numbers are.

    A clamp, a dropout that is not training or drops nothing in a draw, or a collective among one process hands on what
    it gets here alone.
    """
    generator = draws.generator(problem.seed, "handed on")

    def moved(x: Tensor, far: float) -> Tensor:  # also what is zero, of which a multiple would be zero again
        return x + far * torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)

    equal, called = _equal_inputs(outputs[o], problem.inputs), list[str]()
    with users_errors() as guard, torch.no_grad(), collectives_noted(called):
        redrawn = DRAWS if problem.numbers.drawn else 0
        for turn, far in enumerate([*FAR, *[1.0] * redrawn] if equal else ()):
            others = problem.changed_inputs(functools.partial(moved, far=far))
            kept = tuple(x.detach().clone() if isinstance(x, Tensor) else x for x in others)
            again = _equal_inputs(problem.evaluate(others, turn)[o], kept)
            equal = [k for k in equal if k in again]
    if guard.failed or called:
        return None
    for at in points(problem).of("argument", "data") if equal else ():
        again = _equal_inputs((at.outputs or ())[o], at.inputs)
        equal = [k for k in equal if k in again]
    return next(iter(equal), None)


def _equal_inputs(output: Tensor, inputs: tuple[Any, ...]) -> list[int]:
    tensors = [(k, x.detach()) for k, x in enumerate(inputs) if isinstance(x, Tensor) and x.shape == output.shape]
    return [k for k, x in tensors if x.dtype == output.dtype and torch.equal(x, output.detach())]


def _returns_another(at: Point, j: int, source: int, o: int) -> bool:
    """Return True where backward of a tensor that is handed on returns another gradient than the one that comes in."""
    one, problem = at.through(o), at.problem
    expected = one.v[o] if problem.differentiable[j] == source else None
    return not agree_relative(one.pull()[j], expected, gradient_tolerance(at.outputs or (), problem.inputs))


def _instead(at: Point, near: Point | None, o: int, j: int) -> Phrase:
    """Say what backward returns for one output, as far as two cotangents agree on it, and a second point."""
    one, two, outputs = at.through(o), at.through(o).redrawn(), at.outputs or ()
    close = gradient_tolerance(outputs, at.problem.inputs)

    def gradient(c: float = 1.0) -> Tensor | None:
        return one.arranged(lambda k, v: c * v if k == o else None).pull()[j]

    g, h, came, other = gradient(), two.pull()[j], one.v[o], two.v[o]
    assert came is not None
    assert other is not None
    if g is None or h is None or not (bool(g.any()) or bool(h.any())):
        return Phrase("checking.instead_zero")
    if not bool(g.isfinite().all()):
        return Phrase("checking.instead_nan")
    if g.shape != came.shape or g.is_complex() != came.is_complex():
        return Phrase("checking.instead_own")
    small, large, larger = (gradient(c) for c in (UNCLIPPED, CLIPPED, CLIPPED**2))
    small_kept = agree_relative(small, UNCLIPPED * came, close) and not agree_relative(large, CLIPPED * came, close)
    if small_kept and large is not None and agree_relative(large, larger, close):
        return Phrase("checking.instead_clipped", most=formats.number(float(large.abs().max())))
    if not agree_relative(gradient(3.0), 3 * g, close):
        return Phrase("checking.instead_own")
    pairs = [(g, came), (h, other), *_elsewhere(near, o, j)]
    factors = [(one / v)[one != 0] for one, v in pairs]
    if not torch.equal(g != 0, h != 0) or not agree_relative(factors[0], factors[1], close):
        return Phrase("checking.instead_own")
    factor = factors[0][0]
    if not all(agree_relative(each, factor.expand_as(each), close) for each in factors):
        return Phrase("checking.instead_entrywise")
    if len(pairs) == 2:
        return Phrase("checking.instead_own")
    number = formats.number(float(factor.real))
    if not all(bool((one != 0).all()) for one, _ in pairs):
        return Phrase("checking.instead_window", factor=number)
    if agree_relative(factor, torch.ones_like(factor), close):
        return Phrase("checking.instead_unchanged")
    return Phrase("checking.instead_multiple", factor=number)


def _elsewhere(near: Point | None, o: int, j: int) -> Iterator[tuple[Tensor, Tensor]]:
    one = None if near is None or near.outputs is None else near.through(o)
    if one is not None and one.gradients is not None:
        gradient, v = one.gradients[j], one.v[o]
        if gradient is not None and v is not None and gradient.shape == v.shape:
            yield gradient, v
