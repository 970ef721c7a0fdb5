"""All probes beyond values, most serious first; one that the user's code ends says nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.exceptions import contract_broken, explain, from_forward
from nbautograd.core.checking.probes.determinism import gradients_written, never_written, state, wrong_at_other_inputs
from nbautograd.core.checking.probes.linearity import linearity, rounded_inside
from nbautograd.core.checking.probes.usage import (
    backward_never_called,
    differentiable_outputs,
    hidden_inputs,
    inputs_outside,
    one_call,
)
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.relations import batched, inputs_alone, layout, outputs_alone, over_reverse, vmap_rule
from nbautograd.core.findings import Finding
from nbautograd.core.stumbles import RAISED, any_errors, is_ours

Probe = Callable[..., Iterable[Finding]]

PROBES: dict[str, Probe] = {
    probe.__name__: probe
    for probe in (
        backward_never_called, never_written, linearity, state, outputs_alone, gradients_written, hidden_inputs,
        inputs_alone, rounded_inside, layout, wrong_at_other_inputs, differentiable_outputs, one_call,
        inputs_outside, vmap_rule, batched, over_reverse,
    )
}  # fmt: skip


def probed(name: str, *given: Any) -> list[Finding]:
    """Return what a probe finds; none from where it ends by an error on, of the user's code or of its own."""
    found: list[Finding] = []
    with any_errors(name, decides=True):
        found.extend(PROBES[name](*given))
    return found


def first_run(problem: Problem) -> tuple[Outputs | None, tuple[Finding, ...]]:
    """Call forward and backward once; what torch or backward raises becomes a finding.

    Returns:
        The outputs, or None where the call failed or nothing in it can be differentiated; and what there is to say.

    Raises:
        Exception: the user's own, from ``forward`` or from a callable around it.
    """
    try:
        outputs = problem.call()
    except RAISED as error:
        if is_ours(error) or from_forward(error, problem.cls) or not contract_broken(error):
            raise
        return None, (explain(error, problem),)
    found = tuple(probed("backward_never_called", problem, outputs))
    if found or not problem.differentiable_outputs(outputs):
        return None, found
    counted = [y for y in outputs if not y.is_inference()]
    versions = [y._version for y in counted]
    try:
        with problem.watched_backward():
            pull(problem, outputs, cotangents(problem, outputs, problem.seed))
    except RAISED as error:
        if is_ours(error):
            raise
        return None, (explain(error, problem),)
    return outputs if versions == [y._version for y in counted] else problem.call(), ()


def before_values(problem: Problem, outputs: Outputs, noisy: bool) -> Iterator[Finding]:
    """Yield what makes every other answer doubtful: state, hidden inputs; ``noisy`` where backward may draw numbers."""
    yield from probed("state", problem, noisy)
    yield from probed("outputs_alone", problem, outputs)
    yield from probed("gradients_written", problem)
    yield from probed("hidden_inputs", problem)


def after_values(
    problem: Problem, outputs: Outputs, blocks: Mapping[tuple[int, int], Block], between: Callable[[], None]
) -> Iterator[Finding]:
    """Use and layout, then what is legal but risky; ``between`` is called before each probe."""
    tries: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("inputs_alone", (problem, outputs)),
        ("rounded_inside", (problem, outputs)),
        ("layout", (problem,)),
        ("wrong_at_other_inputs", (problem, blocks)),
        ("differentiable_outputs", (problem, outputs, blocks)),
        ("one_call", (problem, outputs)),
        ("inputs_outside", (problem,)),
        ("vmap_rule", (problem, outputs)),
        ("batched", (problem, outputs)),
    )
    for name, given in tries:
        between()
        yield from probed(name, *given)
