"""Confirmation of a constant ratio of wrong to right gradient at other points, and at other sizes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from nbautograd.core.checking import other_points
from nbautograd.core.checking.backward_call import cotangents, own_node, pull, tensors_on_ctx
from nbautograd.core.checking.diagnosis import patterns
from nbautograd.core.checking.diagnosis.evidence import Evidence
from nbautograd.core.checking.diagnosis.hypothesis import Case, Cause, Confirmation, Hypothesis
from nbautograd.core.checking.diagnosis.patterns import Measure
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.numerics.constants import CLEAR, STEADY
from nbautograd.core.stumbles import users_errors

RatioAt = tuple[float, Outputs]


def gradient_ratio(problem: Problem, which: int, output: int, inputs: tuple[Any, ...]) -> RatioAt | None:
    """Divide the gradient of one output along a random direction by the slope there; None where nothing is clear.

    A ratio of formulas is no matter of precision: where single precision leaves the slope unclear, double is asked.
    """
    found = _ratio_at(problem, which, output, inputs)
    single = problem.inputs[problem.differentiable[which]].dtype in (torch.float32, torch.float16, torch.bfloat16)
    return found or (_ratio_at(problem, which, output, other_points.in_double(inputs)) if single else None)


def _ratio_at(problem: Problem, which: int, output: int, inputs: tuple[Any, ...]) -> RatioAt | None:
    with users_errors() as guard:
        outputs = problem.call(inputs)
        v = cotangents(problem, outputs, problem.seed + 61, output)
        gradient = pull(problem, outputs, v)[which]
    if guard.failed:
        return None
    asked = directional_derivative(problem, outputs.inputs, which, v, problem.seed + 62)
    if asked is None or gradient is None or abs(asked.slope) <= CLEAR * asked.error:
        return None
    g, u = (torch.view_as_real(t) if t.is_complex() else t for t in (gradient.resolve_conj(), asked.u))
    return float((g.double() * u.double()).sum()) / asked.slope, outputs


def ratios_at(problem: Problem, where: tuple[int, int], places: Iterable[tuple[Any, ...]]) -> list[RatioAt]:
    """Return the ratios at these inputs for one output and input, as far as they are clear."""
    output, position = where
    which = problem.differentiable.index(position)
    clear = []
    for inputs in places:
        ratio = gradient_ratio(problem, which, output, inputs)
        if ratio is not None:
            clear.append(ratio)
    return clear


def varies(c: float, found: Sequence[RatioAt]) -> bool:
    """Return True if the ratio is another one at one of these places."""
    return any(abs(r - c) > STEADY * abs(c) for r, _ in found)


def _confirmed(hypothesis: Hypothesis, found: Cause, case: Case) -> Cause | None:
    """Return a constant factor with the first name that other inputs and sizes bear out, or as one that varies."""
    problem, e = case.problem, case.evidence
    where, c = (e.block.output, e.block.input), patterns.factor(e.A, e.N, e) or 1.0
    numbers = {key: found.params[key] for key in ("ratio", "inverse")}
    fresh = list(case.fresh())
    fresh = [place for place in fresh if place.other != "spread"]
    here = [patterns.factor(place.evidence.A, place.evidence.N, place.evidence) for place in fresh]
    near = ratios_at(problem, where, (nearby_inputs(problem, problem.seed + k) for k in (64, 65)))
    if not here or None in here or not near:
        return None
    moving = varies(c, near)
    changing = moving or any(abs(r - c) > STEADY * abs(c) for r in here if r is not None)
    argument, others = _argument(problem, where, c)
    near += others
    sized: list[RatioAt] | None = None
    for measure in patterns.constant_names(c, e):
        places = near
        if measure.sized:
            if sized is None:
                seed = problem.seed + 63
                sizes = itertools.chain(other_points.apart(problem, seed), other_points.doubled(problem, seed))
                sized = ratios_at(problem, where, sizes)
            if not varies(c, sized):
                continue  # what no other size bears out is a coincidence
            places = [*near, *sized]
        if _follows(problem, measure, places):
            code = "missing_factor" if moving else "constant_factor"
            return Cause(code, "constant_factor_named", {**numbers, "name": measure.label})
    if (changing or argument) and int(e.wrong.sum()) == 1:
        return None  # any two numbers have a ratio
    if argument and not moving:
        return Cause("constant_factor", "constant_factor_argument", {**numbers, "name": argument})
    moved = [
        _shapes(place.evidence) != _shapes(e)
        for place, r in zip(fresh, here, strict=True)
        if r is not None and place.other != "argument" and abs(r - c) > STEADY * abs(c)
    ]
    by_size = bool(moved) and all(moved) and not moving
    if changing and not by_size:
        return None
    return Cause("constant_factor", "constant_factor_sizes" if by_size else "constant_factor", numbers)


def _shapes(e: Evidence) -> list[tuple[int, ...]]:
    return [tensor.values.shape for tensor in e.tensors if tensor.role == "input"]


def _argument(problem: Problem, where: tuple[int, int], c: float) -> tuple[str, list[RatioAt]]:
    """Return the name of an argument without grad with which the ratio changes, and the ratios at other arguments."""
    name, found, seed = "", list[RatioAt](), problem.seed + 66
    near = functools.partial(other_points.other_data, near=True)
    sources = (other_points.other_arguments, other_points.other_data, near)
    others = itertools.chain.from_iterable(source(problem, seed) for source in sources)
    for changed, other, inputs in others:
        ratios = [r for r in ratios_at(other, where, [inputs]) if abs(r[0] - 1) > STEADY]  # right says nothing
        name = name or (changed if varies(c, ratios) else "")
        found += ratios
    return name, found


MEASURED_RATIO = Confirmation("the ratio at other inputs and sizes", _confirmed)


def _follows(problem: Problem, measure: Measure, found: Sequence[RatioAt]) -> bool:
    """Compare the ratio at all of these places with what the measure comes to there."""
    for ratio, outputs in found:
        named = _named_at(problem, outputs)
        value = measure.take(named[measure.name]) if measure.name in named else measure.value
        if not abs(ratio - value) <= STEADY * abs(value):
            return False
    return True


def _named_at(problem: Problem, outputs: Outputs) -> dict[str, Any]:
    """Return tensors and numbers of a call, by the names that a measure may have: ctx's, the inputs', the outputs'."""
    node = own_node(problem, outputs)
    named: dict[str, Any] = {f"ctx.{name}": value for name, value in vars(node).items()} if node is not None else {}
    named |= tensors_on_ctx(problem, node)
    named |= zip((*problem.input_names, *problem.output_names), (*outputs.inputs, *outputs), strict=False)
    return named
