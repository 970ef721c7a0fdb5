"""A gradient beside the one that is asked for, where finite differences cannot say what is wrong: by comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import phrases
from nbautograd.core.checking.probes.linearity import linearity
from nbautograd.core.findings import Phrase
from nbautograd.course.attempt import Attempt, Gradients, close, positions, vjp
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import from_finding


def differences(
    attempt: Attempt, inputs: tuple[Any, ...], weights: Sequence[Tensor | None], found: Gradients, right: Gradients
) -> Iterator[Failure]:
    """Yield one failure per input whose gradient is not the one asked for."""
    told = list(_not_linear(attempt, inputs))
    yield from told
    if told:
        return
    problem = attempt.problem(inputs)
    own = vjp(attempt.reference_run(inputs), weights)  # what a surrogate stands for
    for k, position in enumerate(positions(inputs)):
        if not attempt.allclose(found[k], right[k]):
            others = [g for j, g in enumerate(right) if j != k]
            code = _code(found[k], right[k], own[k], others)
            params = {"input": problem.input_names[position]}
            where = Phrase("findings.look_at_value", value=phrases.value(problem, position))
            yield Failure(code, f"course.asked.{code}", params, (where,) if problem.source is not None else ())


def _not_linear(attempt: Attempt, inputs: tuple[Any, ...]) -> Iterator[Failure]:
    problem = attempt.problem(inputs)
    with problem.session():
        try:
            yield from map(from_finding, linearity(problem, problem.call()))
        except Exception:  # the gradient's check has said what raised
            return


def _code(found: Tensor | None, right: Tensor | None, own: Tensor | None, others: list[Tensor | None]) -> str:
    tests: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("zero_gradient", lambda: found is None or not bool(found.any())),
        ("nonfinite", lambda: not bool(torch.isfinite(found).all()) if found is not None else False),
        ("sign", lambda: right is not None and close(found, -right, 1e-6)),
        ("swapped_inputs", lambda: any(close(found, g, 1e-6) for g in others if g is not None)),
        ("constant_factor", lambda: _ratio(found, right) != ""),
        ("derivative_of_forward", lambda: own is not None and close(found, own, 1e-6)),
    )
    return next((code for code, test in tests if test()), "wrong_unclassified")


def _ratio(found: Tensor | None, right: Tensor | None) -> str:
    """Return the number that every element is too large by, as words; empty when there is none."""
    if found is None or right is None or found.shape != right.shape or not bool(right.any()):
        return ""
    k = int(right.abs().argmax())
    ratio = float(found.flatten()[k] / right.flatten()[k])
    return f"{ratio:.4g}" if ratio and close(found, ratio * right, 1e-6) else ""
