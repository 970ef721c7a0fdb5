"""Is backward linear in grad_output, as the product of a vector with a Jacobian must be?"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from nbautograd.core.checking import backward_lines, phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, pull, rounding_level
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.jacobian.backward_rounding import LARGEST_RIGHT, ULPS, nudged
from nbautograd.core.checking.jacobian.forward_values import gradients_of_forward
from nbautograd.core.checking.phrases import about
from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import BACKWARD_ROUNDINGS, INEXACT, LINEAR, LOOSEST, OF_SUMS, ROUNDED, SCALED

MEASURED = 3  # points at which the error of a gradient is measured
HALF = float(torch.finfo(torch.float16).eps)


def linearity(problem: Problem, outputs: Outputs, flat: frozenset[int] = frozenset()) -> Iterator[Finding]:
    """Yield findings for every input whose gradient is not linear in grad_output.

    Args:
        problem: what is checked.
        outputs: of a call.
        flat: positions of inputs that no output depends on. Terms that cancel leave some rounding there, as in a norm
            over one element; how large they were is not known, so that what is below half the digits is no gradient.
    """
    # a backward that computes in single precision is linear, only not to all digits
    rel, low = max(LINEAR, gradient_tolerance(outputs, problem.inputs)), rounding_level(outputs, problem.inputs)
    v, w = (cotangents(problem, outputs, problem.seed + k) for k in (0, 1))
    at_zero = pull(problem, outputs, _scaled(v, 0.0))
    answers = {c: pull(problem, outputs, _scaled(v, c)) for c in (1.0, -1.0, 3.0, 1024.0, 1 / 1024)}
    other, both = pull(problem, outputs, w), pull(problem, outputs, _added(v, w))
    for k, position in enumerate(problem.differentiable):
        here = {c: g[k] for c, g in answers.items()}
        per_cotangent = [_times(g, 1 / c) for c, g in here.items()]  # of the size that ``low`` is about
        noise = max(low, math.sqrt(torch.finfo(problem.inputs[position].dtype).eps)) if position in flat else low
        if not _finite([*here.values(), other[k], both[k], at_zero[k]]) or _only_noise(
            [*per_cotangent, other[k], at_zero[k]], noise
        ):
            continue
        code = _code(at_zero[k], here, other[k], both[k], rel)
        if code is not None and not _rounded(problem, v, k, here):
            # a solver that starts where it ended last keeps the rounding of a gradient that was 10^6 times as large
            later = {c: pull(problem, outputs, _scaled(v, c))[k] for c in reversed(answers)}
            if _code(at_zero[k], later, other[k], both[k], rel) is None:
                continue
            found = phrases.returned(problem, position)
            line = (found.line if found is not None else None) or phrases.method_line(problem)
            params = {"input": problem.input_names[position], "value": phrases.value(problem, position)}
            message = f"causes.{code}" if code != "nonlinear_in_grad_output" else f"causes.{_manner(here, rel)}"
            where = (problem.differentiable_outputs(outputs) or (0,))[0], position
            yield Finding(code, "bug", message, params, where, line)


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
    off = bool(lost) or _off(problem, outputs, v, spacing)
    size = _error(problem) if off and not lost else None
    keeps = math.floor(-math.log10(problem.casts.backward / 2))
    measured = Phrase("causes.numbers_keep", digits=keeps) if size is None else Phrase("causes.off_by", percent=size)
    found = about(problem, "backward_loses_precision", line, sentence, **names, measured=measured)
    yield dataclasses.replace(found, kind="bug") if off else found


def _error(problem: Problem) -> str | None:
    """Measure how many per cent of its largest entry a gradient is off by, the most here and nearby."""
    most = 0.0
    for at in itertools.islice(points(problem).of("given", "near"), MEASURED):
        if at.gradients is None or at.right is None:
            return None
        pairs = zip(at.gradients, at.right, strict=True)
        most = max(most, *(_largest(_sub(a, b)) / (_largest(b) or math.inf) for a, b in pairs))
    return f"{100 * most:.2g}" if 0 < most < math.inf else None


def _off(problem: Problem, outputs: Outputs, v: Sequence[Tensor | None], spacing: float) -> bool:
    """Compare the gradients with autograd of the forward, else with differences of it, as closely as they allow."""
    here, rel = pull(problem, outputs, v), BACKWARD_ROUNDINGS * spacing
    by_autograd = gradients_of_forward(problem, outputs, v)
    for k, gradient in enumerate(here):
        asked = directional_derivative(problem, outputs.inputs, k, v, problem.seed, exact=by_autograd is None)
        if by_autograd is None:
            if asked is not None and not asked.agrees(gradient):
                return True
            continue
        # differences in single precision may tell nothing; what is as near as half precision is no other formula
        right = by_autograd[k]
        trusted = asked.agrees(right) if asked is not None else agree_relative(gradient, right, LOOSEST)
        if trusted and not agree_relative(gradient, right, rel):
            return True
    return False


def _code(
    zero: Tensor | None, here: dict[float, Tensor | None], other: Tensor | None, both: Tensor | None, rel: float
) -> str | None:
    # a solver stops at an absolute tolerance, so that small grad_outputs get fewer digits, and what is 0 is not quite 0
    size = INEXACT * max(_largest(here[1.0]), _largest(other))
    if not agree_relative(zero, None, rel, size):
        if all(agree_relative(g, zero, rel) for g in (*here.values(), other)):
            return "ignores_grad_output"
        linear = all(
            agree_relative(_sub(g, zero), _times(_sub(here[1.0], zero), c), OF_SUMS * rel) for c, g in here.items()
        )
        return "affine_in_grad_output" if linear else "nonlinear_in_grad_output"
    scales = all(agree_relative(g, _times(here[1.0], c), rel, size * max(1.0, abs(c))) for c, g in here.items())
    added = agree_relative(both, _sub(here[1.0], _times(other, -1.0)), rel, size)
    return None if scales and added else "nonlinear_in_grad_output"


def _manner(here: dict[float, Tensor | None], rel: float) -> str:
    """Choose the sentence: positive scales go through but signs do not, size is lost, or something else."""
    v = here[1.0]
    if agree_relative(here[-1.0], v, rel):
        return "sign_lost"
    if all(agree_relative(here[c], v, rel) for c in (3.0, 1024.0)):
        return "size_lost"
    if all(agree_relative(here[c], _times(v, c), rel) for c in (3.0, 1024.0, 1 / 1024)):
        return "negative_lost"
    return "clipped" if _largest(here[1024.0]) < 4 * _largest(here[3.0]) else "nonlinear_in_grad_output"


def _largest(t: Tensor | None) -> float:
    return 0.0 if t is None or t.numel() == 0 else float(t.abs().max())


def _rounded(problem: Problem, v: Sequence[Tensor | None], k: int, here: dict[float, Tensor | None]) -> bool:
    """Return True if tiny gradients are others where the inputs are a last bit away: then they are rounding."""
    size = max(_largest(here[c]) for c in (1.0, -1.0, 3.0))
    if not 0 < size <= LARGEST_RIGHT:
        return False
    moved = (pull(problem, problem.call(nudged(problem, ulps)), v)[k] for ulps in ULPS)
    return any(_largest(_sub(g, here[1.0])) > size / ROUNDED for g in moved)


def _only_noise(gradients: Sequence[Tensor | None], low: float) -> bool:
    """Return True if all these gradients are rounding."""
    return max(map(_largest, gradients)) <= low


def _scaled(v: Sequence[Tensor | None], c: float) -> list[Tensor | None]:
    return [None if t is None else t * c for t in v]


def _added(v: Sequence[Tensor | None], w: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if a is None or b is None else a + b for a, b in zip(v, w, strict=True)]


def _times(t: Tensor | None, c: float) -> Tensor | None:
    return None if t is None else t * c


def _sub(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return a if b is None else -b
    return a - b


def _finite(gradients: Sequence[Tensor | None]) -> bool:
    return all(g is None or bool(torch.isfinite(g).all()) for g in gradients)
