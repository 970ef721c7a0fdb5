"""All probes beyond values, most serious first; one that fails says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.probes.determinism import gradients_written, state, wrong_at_other_inputs
from nbautograd.core.checking.probes.exceptions import contract_broken, explain, from_forward
from nbautograd.core.checking.probes.forward_mode import batched
from nbautograd.core.checking.probes.linearity import rounded_inside
from nbautograd.core.checking.probes.memory_layout import layout
from nbautograd.core.checking.probes.return_values import differentiable_outputs, retained_tensors, returned_gradients
from nbautograd.core.checking.probes.usage import (
    backward_never_called,
    hidden_inputs,
    inputs_alone,
    inputs_outside,
    outputs_alone,
)
from nbautograd.core.checking.probes.vmap_rule import vmap_rule
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.findings import Finding

Probe = Callable[[], Iterable[Finding]]


def first_run(problem: Problem) -> tuple[Outputs | None, tuple[Finding, ...]]:
    """Call forward and backward once; what torch or backward raises becomes a finding.

    Returns:
        The outputs, or None where the call failed or nothing in it can be differentiated; and what there is to say.

    Raises:
        Exception: the user's own, from ``forward`` or from a callable around it.
    """
    try:
        outputs = problem.call()
    except Exception as error:
        if from_forward(error, problem.cls) or not contract_broken(error):
            raise
        return None, (explain(error, problem),)
    found = tuple(quietly(lambda: backward_never_called(problem, outputs)))
    if found or not problem.differentiable_outputs(outputs):
        return None, found
    try:
        with problem.watched_backward():
            pull(problem, outputs, cotangents(problem, outputs, problem.seed))
    except Exception as error:
        return None, (explain(error, problem),)
    return outputs, ()


def before_values(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Yield what makes every other answer doubtful: state, hidden inputs."""
    yield from quietly(lambda: state(problem))
    yield from quietly(lambda: outputs_alone(problem, outputs))
    yield from quietly(lambda: gradients_written(problem))
    yield from quietly(lambda: hidden_inputs(problem))


def after_values(
    problem: Problem, outputs: Outputs, blocks: Mapping[tuple[int, int], Block], between: Callable[[], None]
) -> Iterator[Finding]:
    """Use and layout, then what is legal but risky; ``between`` is called before each probe."""
    tries: tuple[Probe, ...] = (
        lambda: inputs_alone(problem, outputs),
        lambda: rounded_inside(problem, outputs),
        lambda: layout(problem),
        lambda: wrong_at_other_inputs(problem, blocks),
        lambda: differentiable_outputs(problem, outputs, blocks),
        lambda: returned_gradients(problem, outputs),
        lambda: retained_tensors(problem),
        lambda: inputs_outside(problem),
        lambda: vmap_rule(problem, outputs),
        lambda: batched(problem, outputs),
    )
    for probe in tries:
        between()
        yield from quietly(probe)


def quietly(probe: Probe) -> list[Finding]:
    """Yield the findings of a probe; none when it meets something that it was not made for."""
    found: list[Finding] = []
    try:
        found.extend(probe())
    except Exception:
        return found
    return found
