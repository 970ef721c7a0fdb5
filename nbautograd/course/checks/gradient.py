"""The gradient: the one asked for at drawn points; then all that gradcheck finds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.findings import Finding, Phrase
from nbautograd.course.attempt import (
    POINTS,
    Attempt,
    Gradients,
    close,
    copies,
    cotangents,
    forward,
    positions,
    ready,
    vjp,
)
from nbautograd.course.checks import exceptions
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import from_finding

TOLD = 4
# what is no bug to the checker, as torch sums it up or converts it in silence, and is here: it is what is to be learnt
COUNTED = {"grad_shape_reduced", "grad_dtype_cast"}
# how a gradient differs from the one asked for -> the sentence
SAID = {code: f"causes.{code}.what" for code in ("sign", "constant_factor")}

# findings that hold whatever gradient is asked for: of a surrogate the others would say that it is no derivative
WHATEVER_IS_ASKED = COUNTED | {
    *("ignores_grad_output", "nonlinear_in_grad_output", "affine_in_grad_output"),
    *("mutates_grad_output", "mutates_input", "mutates_saved", "grad_buffer_reused"),
    *("shared_state", "nondeterministic_forward", "nondeterministic_backward", "needs_input_grad_wrong"),
}


def gradient(attempt: Attempt) -> Iterator[Failure]:
    """Check the vjp at random points for random cotangents, and say what is wrong with it."""
    for number in range(POINTS):
        inputs = attempt.point(number)
        truth = attempt.reference_run(inputs)
        weights = cotangents(truth.outputs, attempt.seed + number)
        right = attempt.expected_gradients(truth, weights)
        try:
            run = attempt.run(inputs)
            found = vjp(run, weights)
            vjp(run, weights)  # as `retain_graph=True` allows: raises where the first one wrote into what was saved
        except Exception as error:
            yield exceptions.in_backward(attempt, inputs, error)
            return
        if not all(map(attempt.allclose, found, right)):
            yield from findings(attempt, inputs) or _not_the_one_asked_for(attempt, inputs, weights, found, right)
            return
    yield from findings(attempt, attempt.point()) or _mixed_up(attempt)


def findings(attempt: Attempt, inputs: tuple[Any, ...]) -> list[Failure]:
    """Return what gradcheck calls a bug at these inputs, most serious first."""
    found: Sequence[Finding] = attempt.gradcheck(inputs).findings
    if attempt.exercise.vjp is None:
        told = [f for f in found if f.kind == "bug" or f.code in COUNTED]
    else:  # where forward is flat, a gradient that is not linear is a risk alone
        told = [f for f in found if f.code in WHATEVER_IS_ASKED and f.kind != "note"]
    return [from_finding(f) for f in told[:TOLD]]


def _mixed_up(attempt: Attempt) -> Iterator[Failure]:
    """Yield a failure if a call with other arguments, numbers too, changes the gradient of an earlier call."""
    inputs = attempt.point()
    run = forward(attempt.call, copies(inputs))
    weights = cotangents(run.outputs, attempt.seed)
    alone = vjp(run, weights)
    run = forward(attempt.call, copies(inputs))
    forward(attempt.call, copies(attempt.point(1)))
    try:
        same = all(map(attempt.allclose, vjp(run, weights), alone))
    except RuntimeError:  # alone it did not raise: what it met is of another shape
        same = False
    if not same:
        yield Failure("shared_state", "causes.shared_state.what", more=("causes.shared_state.advice",))


def _not_the_one_asked_for(
    attempt: Attempt, inputs: tuple[Any, ...], weights: Sequence[Tensor | None], found: Gradients, right: Gradients
) -> Iterator[Failure]:
    """Yield one failure per input whose gradient is not the declared one, by comparison: differences cannot tell."""
    problem = attempt.problem(inputs)
    own = vjp(attempt.reference_run(inputs), weights)  # what a surrogate is there instead of
    for k, position in enumerate(positions(inputs)):
        if not attempt.allclose(found[k], right[k]):
            code = _code(found[k], right[k], own[k], [g for j, g in enumerate(right) if j != k])
            where = Phrase("findings.look_at_value", value=phrases.value(problem, position))
            params = {"input": problem.input_names[position]}
            sentence = SAID.get(code, "course.asked.wrong_unclassified")
            advice = "course.asked.wrong_unclassified.advice"
            yield Failure(code, sentence, params, (*((where,) if problem.source is not None else ()), advice))


def _code(found: Tensor | None, right: Tensor | None, own: Tensor | None, others: Collection[Tensor | None]) -> str:
    if found is None or not bool(found.any()):
        return "zero_gradient"
    if not bool(torch.isfinite(found).all()):
        return "nonfinite"
    if right is not None and close(found, -right, 1e-6):
        return "sign"
    if any(close(found, g, 1e-6) for g in others if g is not None):
        return "swapped_inputs"
    if _is_multiple(found, right):
        return "constant_factor"
    return "derivative_of_forward" if own is not None and close(found, own, 1e-6) else "wrong_unclassified"


def _is_multiple(found: Tensor, right: Tensor | None) -> bool:
    if right is None or found.shape != right.shape or not bool(right.any()):
        return False
    k = int(right.abs().argmax())
    ratio = float(found.flatten()[k] / right.flatten()[k])
    return ratio != 0 and close(found, ratio * right, 1e-6)


def kinks(attempt: Attempt) -> Iterator[Failure]:
    """Exactly at a kink the declared gradient, or one between the one-sided derivatives."""
    assert attempt.exercise.kinks is not None
    for inputs in map(ready, attempt.exercise.kinks(attempt.draw())):
        try:
            wrong = list(_beside_declared(attempt, inputs) if attempt.exercise.vjp else _not_between(attempt, inputs))
        except Exception as error:
            yield exceptions.in_backward(attempt, inputs, error)
            return
        if wrong:
            yield wrong[0]
            return


def _beside_declared(attempt: Attempt, inputs: tuple[Any, ...]) -> Iterator[Failure]:
    truth = attempt.reference_run(inputs)
    weights = cotangents(truth.outputs, attempt.seed)
    found, right = vjp(attempt.run(inputs), weights), attempt.expected_gradients(truth, weights)
    for position, a, b in zip(positions(inputs), found, right, strict=True):
        if not attempt.allclose(a, b):
            yield Failure("kink_convention", "course.kink_convention", {"input": attempt.names(inputs)[position]})


def _not_between(attempt: Attempt, inputs: tuple[Any, ...]) -> Iterator[Failure]:
    for block in attempt.gradcheck(inputs).blocks.values():
        worst = block.worst
        if block.verdict == "mismatch" or (worst is not None and worst.analytical != worst.analytical):
            yield Failure("kink_wrong", "course.kink_wrong", {"input": block.input_name})
