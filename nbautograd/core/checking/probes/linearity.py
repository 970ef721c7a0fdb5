"""Is backward linear in grad_output, as the product of a vector with a Jacobian must be?"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import backward_lines, phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull, rounding_level
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.assembly import LARGEST_RIGHT, ULPS, nudged
from nbautograd.core.checking.jacobian.forward_values import gradients_of_forward
from nbautograd.core.checking.last_step import left_by_iterations
from nbautograd.core.checking.phrases import about
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import BACKWARD_ROUNDINGS, INEXACT, LINEAR, LOOSEST, OF_SUMS, ROUNDED, SCALED

MEASURED = 3  # points at which the error of a gradient is measured
HALF = float(torch.finfo(torch.float16).eps)
SCALES = (1.0, -1.0, 3.0, 1024.0, 1 / 1024)  # of a grad_output; a power of two rounds nothing


def linearity(
    problem: Problem,
    outputs: Outputs,
    flat: frozenset[int] = frozenset(),
    surrogates: frozenset[tuple[int, int]] = frozenset(),
) -> Iterator[Finding]:
    """Yield findings for every input whose gradient is not linear in grad_output.

    A surrogate that is clipped, as in binarised networks, is a risk: it stands for no derivative that it could miss.

    Args:
        flat: positions of inputs that no output depends on. Terms that cancel leave some rounding there, as in a norm
            over one element; how large they were is not known, so that what is below half the digits is no gradient.
        surrogates: pairs (output, input) of which forward has no derivative.
    """
    # a backward that computes in single precision is linear, only not to all digits
    rel, low = max(LINEAR, gradient_tolerance(outputs, problem.inputs)), rounding_level(outputs, problem.inputs)
    v, zero, answers, other, added = _asked(problem, outputs)
    left = dict[int, float]()
    for k, position in enumerate(problem.differentiable):
        here = {c: g[k] for c, g in answers.items()}
        sizes = [*(_largest(g) / abs(c) for c, g in here.items()), _largest(other[k]), _largest(zero[k])]
        noise = max(low, math.sqrt(torch.finfo(problem.inputs[position].dtype).eps)) if position in flat else low
        if not all(map(math.isfinite, (*sizes, _largest(added[k])))) or max(sizes) <= noise:  # what ``low`` is about
            continue
        code = _code(zero[k], here, other[k], added[k], rel)
        if code and not _rounded(problem, v, k, here):
            # a solver that starts where it ended last keeps the rounding of a gradient that was 10^6 times as large
            later = {c: _dense(problem, outputs, _scaled(v, c))[k] for c in reversed(SCALES)}
            if not _code(zero[k], later, other[k], added[k], rel):
                continue
            left = left or left_by_iterations(problem, outputs)
            if not _code(zero[k], here, other[k], added[k], rel, left[position]):
                continue
            found = phrases.returned(problem, position)
            line = (found.line if found is not None else None) or phrases.method_line(problem)
            params = {"input": problem.input_names[position], "value": phrases.value(problem, position)}
            where = (problem.differentiable_outputs(outputs) or (0,))[0], position
            stairs = {o for o, i in surrogates if i == position and code == "nonlinear_in_grad_output"}
            if stairs:
                _, none, alone, third, sums = _asked(problem, outputs, stairs)
                steady = not _code(none[k], {c: g[k] for c, g in alone.items()}, third[k], sums[k], rel)
            yield Finding(code, "lint" if stairs and steady else "bug", f"causes.{code}", params, where, line)


def _asked(problem: Problem, outputs: Outputs, without: Container[int] = ()) -> tuple[Any, ...]:
    """Return cotangents, none at some outputs, and the gradients for none of them, multiples, others and a sum."""
    drawn = (cotangents(problem, outputs, draws.child(problem.seed, k)) for k in (0, 1))
    v, w = ([None if o in without else t for o, t in enumerate(u)] for u in drawn)
    both = [None if a is None or b is None else a + b for a, b in zip(v, w, strict=True)]
    zero, other, added = (_dense(problem, outputs, u) for u in (_scaled(v, 0.0), w, both))
    return v, zero, {c: _dense(problem, outputs, _scaled(v, c)) for c in SCALES}, other, added


def _scaled(v: Sequence[Tensor | None], c: float) -> list[Tensor | None]:
    return [None if t is None else t * c for t in v]


def _dense(problem: Problem, outputs: Outputs, v: Sequence[Tensor | None]) -> list[Tensor]:
    leaves = (problem.inputs[i].detach() for i in problem.differentiable)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, pull(problem, outputs, v), strict=True)]


def _largest(t: Tensor) -> float:
    return float(t.abs().max()) if t.numel() else 0.0


def _code(
    zero: Tensor, here: Mapping[float, Tensor], other: Tensor, added: Tensor, rel: float, left: float = INEXACT
) -> str:
    # a solver stops at an absolute tolerance, so that small grad_outputs get fewer digits, and what is 0 is not quite 0
    size = max(left, INEXACT) * max(_largest(here[1.0]), _largest(other))
    if _largest(zero) > size:
        if all(agree_relative(g, zero, rel) for g in (*here.values(), other)):
            return "ignores_grad_output"
        moved = here[1.0] - zero
        linear = all(agree_relative(g - zero, c * moved, OF_SUMS * rel) for c, g in here.items())
        return "affine_in_grad_output" if linear else "nonlinear_in_grad_output"
    scales = all(agree_relative(g, c * here[1.0], rel, size * max(1.0, abs(c))) for c, g in here.items())
    return "" if scales and agree_relative(added, here[1.0] + other, rel, size) else "nonlinear_in_grad_output"


def _rounded(problem: Problem, v: Sequence[Tensor | None], k: int, here: Mapping[float, Tensor]) -> bool:
    """Return True if tiny gradients are others where the inputs are a last bit away: then they are rounding."""
    size = max(_largest(here[c]) for c in (1.0, -1.0, 3.0))
    if not 0 < size <= LARGEST_RIGHT:
        return False
    moved = (_dense(problem, problem.call(nudged(problem, ulps)), v)[k] for ulps in ULPS)
    return any(_largest(g - here[1.0]) > size / ROUNDED for g in moved)


def rounded_inside(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Tell of a backward that rounds to half precision where forward does not.

    That is a mistake where a gradient is off by more than differences of the forward leave open, and where gradients
    of the size that they have here vanish or overflow, as those of a grad_output that is a power of two larger or
    smaller show. It is a risk where few digits hold the numbers at hand exactly.
    """
    ends = [t for t in (*outputs, *(problem.inputs[i] for i in problem.differentiable)) if t.is_floating_point()]
    spacing = max((float(torch.finfo(t.dtype).eps) for t in ends), default=1.0)
    v = cotangents(problem, outputs, problem.seed)
    here = pull(problem, outputs, v)
    if not problem.casts.backward >= HALF > max(spacing, problem.casts.forward):
        return
    line = backward_lines.rounding_line(problem) or phrases.method_line(problem)
    large, small = (pull(problem, outputs, _scaled(v, c)) for c in (SCALED, 1 / SCALED))
    lost = list[int]()
    for position, g, more, less in zip(problem.differentiable, here, large, small, strict=True):
        if g is not None and more is not None and less is not None:
            gone = ((g == 0) & (more != 0)) | (~g.isfinite() & less.isfinite())
            lost += [position] if bool(gone.any()) else []
    names = {"input": problem.input_names[min(lost, default=problem.differentiable[0])]}
    sentence = "causes.backward_loses_values" if lost else "causes.backward_loses_precision"
    off = bool(lost) or _off(problem, outputs, v, here, spacing)
    size = _error(problem) if off and not lost else None
    keeps = math.floor(-math.log10(problem.casts.backward / 2))
    measured = Phrase("causes.numbers_keep", digits=keeps) if size is None else Phrase("causes.off_by", percent=size)
    found = about(problem, "backward_loses_precision", line, sentence, **names, measured=measured)
    yield dataclasses.replace(found, kind="bug") if off else found


def _error(problem: Problem) -> str | None:
    """Measure how many per cent of its largest entry a gradient is off by, the most here and nearby."""
    most = 0.0
    for at in itertools.islice(points(problem).of("given", "near"), MEASURED):
        for got, right in zip(at.gradients or (), at.right or (), strict=False):
            if got is not None and right is not None and right.any():
                most = max(most, _largest(got - right) / _largest(right))
    return f"{100 * most:.2g}" if 0 < most < math.inf else None


def _off(
    problem: Problem, outputs: Outputs, v: Sequence[Tensor | None], here: Sequence[Tensor | None], spacing: float
) -> bool:
    """Compare the gradients with autograd of the forward, else with differences of it, as closely as they allow."""
    by_autograd = gradients_of_forward(problem, outputs, v)
    for k, gradient in enumerate(here):
        asked = directional_derivative(problem, outputs.inputs, k, v, problem.seed, exact=by_autograd is None)
        right = gradient if by_autograd is None else by_autograd[k]
        # differences in single precision may tell nothing; what is as near as half precision is no other formula
        trusted = asked.agrees(right) if asked is not None else agree_relative(gradient, right, LOOSEST)
        if by_autograd is None and not trusted:
            return True
        if trusted and not agree_relative(gradient, right, BACKWARD_ROUNDINGS * spacing):
            return True
    return False
