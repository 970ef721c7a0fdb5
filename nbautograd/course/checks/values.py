"""Checks of values: forward, the same and the gradient at odd shapes, with an optional argument left out or None."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from nbautograd.core.findings import Phrase
from nbautograd.core.formats import number
from nbautograd.core.values import sizes_text
from nbautograd.course.attempt import Attempt, Run, copies, cotangents, positions, ready, vjp
from nbautograd.course.checks import exceptions
from nbautograd.course.exercise import Failure

Inputs = tuple[Any, ...]


def value(attempt: Attempt) -> Iterator[Failure]:
    """Value, shape, dtype and number of outputs at random points."""
    for inputs in attempt.points():
        found = _value_at(attempt, inputs)
        if found is not None:
            yield found
            return


def edges(attempt: Attempt) -> Iterator[Failure]:
    """Forward and gradient at the exercise's odd inputs, and with each optional argument left out and given as None."""
    if attempt.exercise.edges is not None:
        yield from _everywhere(attempt, map(ready, attempt.exercise.edges(attempt.draw())), "edge")
    assert attempt.exercise.formula is not None
    inputs = attempt.point()
    for k, parameter in enumerate(_parameters(attempt.exercise.formula)[: len(inputs)]):
        if parameter.default is None:
            yield from _everywhere(attempt, [inputs[:k]], "omitted", name=parameter.name)
            yield from _everywhere(attempt, [(*inputs[:k], None, *inputs[k + 1 :])], "none", name=parameter.name)


def _parameters(formula: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(formula).parameters.values())
    except ValueError:  # `torch.mul` has none
        return []


def _everywhere(attempt: Attempt, points: Iterable[Inputs], kind: str, **params: Any) -> Iterator[Failure]:
    """Yield one failure, for the first of these points where something is wrong."""
    for inputs in points:
        found = _value_at(attempt, inputs)
        if found is None:
            found = _gradient_at(attempt, inputs)
        if found is not None:
            raised = "raised" in found.code or found.code.startswith("exception")
            what = "gradient" if found.code == "gradient" else "raised" if raised else "value"
            # what was raised in its own words, or else the sentence about it
            sentence = found.sentence
            said = Phrase(sentence, **found.params) if isinstance(sentence, str) else sentence
            names = {"said": said, **found.params, "shapes": _shapes(inputs), **params}
            more = (found.sentence, *found.more) if what == "gradient" else found.more
            yield Failure(f"{kind}_{what}", f"course.{'omitted' if kind == 'none' else kind}_{what}", names, more)
            return


def _value_at(attempt: Attempt, inputs: Inputs) -> Failure | None:
    truth = attempt.reference_run(inputs)
    try:
        run = attempt.run(inputs)
    except Exception as error:
        return exceptions.in_forward(attempt, inputs, error)
    return _returned(run) or _compared(attempt, run, truth)


def _returned(run: Run) -> Failure | None:
    if run.raw is None:
        return Failure("forward_none", "course.forward_no_tensor", {"type": "None"})
    items = run.raw if isinstance(run.raw, (tuple, list)) else (run.raw,)
    odd = [item for item in items if not isinstance(item, Tensor)]
    if odd and not run.outputs:
        return Failure("forward_no_tensor", "course.forward_no_tensor", {"type": type(odd[0]).__name__})
    return None


def _compared(attempt: Attempt, run: Run, truth: Run) -> Failure | None:
    if len(run.outputs) != len(truth.outputs):
        counts = {"got": len(run.outputs), "expected": len(truth.outputs)}
        return Failure("forward_count", "course.forward_count", counts)
    for k, (found, right) in enumerate(zip(run.outputs, truth.outputs, strict=True)):
        which = {"which": k + 1, "count": len(truth.outputs)}
        if found.shape != right.shape:
            shapes = {"got": tuple(found.shape), "expected": tuple(right.shape)}
            return Failure("forward_shape", "course.forward_shape", {**which, **shapes})
        if found.dtype != right.dtype:
            dtypes = {"got": str(found.dtype)[6:], "expected": str(right.dtype)[6:]}
            return Failure("forward_dtype", "course.forward_dtype", {**which, **dtypes})
        if not attempt.allclose(found, right):
            return Failure("forward_value", "course.forward_value", {**which, **_worst(found, right)})
    return None


def _worst(found: Tensor, right: Tensor) -> dict[str, Any]:
    """Return how many elements differ, and the one that differs most: what there is, and what should be."""
    found, right = found.detach().double().flatten(), right.detach().double().flatten()
    apart = (found - right).abs().nan_to_num(nan=float("inf")).masked_fill(found == right, 0)
    largest = float(right.abs().nan_to_num(posinf=0).max())
    wrong = int((apart > 1e-6 * max(1e-6, largest)).sum())
    most = int(apart.argmax())
    pair = found[most].item(), right[most].item()
    digits = next((n for n in (4, 8) if len({f"{x:.{n}g}" for x in pair}) == 2), 17)  # as many as tell them apart
    example = dict(zip(("got", "expected"), (number(x, digits) for x in pair), strict=True))
    return {"wrong": wrong, "entries": found.numel(), **example}


def _gradient_at(attempt: Attempt, inputs: Inputs) -> Failure | None:
    truth = attempt.reference_run(inputs)
    weights = cotangents(truth.outputs, attempt.seed)
    right = attempt.expected_gradients(truth, weights)
    try:
        run = attempt.run(copies(inputs))
        found = vjp(run, weights)
    except Exception as error:
        return exceptions.in_backward(attempt, inputs, error)
    if all(map(attempt.allclose, found, right)) and len(found) == len(positions(inputs)):
        return None
    return Failure("gradient", "course.gradient_differs")


def _shapes(inputs: Inputs) -> str:
    """Return such as ``0×3, 3×4``."""
    return ", ".join(sizes_text(x.shape) if isinstance(x, Tensor) else repr(x) for x in inputs)
