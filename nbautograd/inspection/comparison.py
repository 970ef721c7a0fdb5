"""Comparison: a Function beside its reference, such as a custom product beside native ``*``."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.checking.backward_call import cotangents
from nbautograd.core.checking.prepared_inputs import unreadable_kind
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.progress import watched
from nbautograd.core.display import Displayable
from nbautograd.core.graphs.build import graph
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.kernel.check import check
from nbautograd.core.kernel.golden import coarsest
from nbautograd.core.values import Value, describe

Gradients = tuple[torch.Tensor | None, ...]
REPEATS = 7


@dataclass(frozen=True, repr=False)
class Comparison(Displayable):
    """A Function beside its reference, such as the blog post's ``f`` beside native ``*``.

    Attributes:
        names: of the Function and of the reference.
        outputs: pairs of outputs (Function's, reference's).
        gradients: pairs of gradients of the inputs that require grad, for the same random cotangent.
        input_names: names of those inputs.
        output_differences, gradient_differences: largest absolute difference per pair; ``inf`` where shapes differ
            or one side has no gradient.
        graphs: the two backward graphs.
        saved_bytes: bytes kept for backward by each, each storage once, inputs included.
        seconds: median wall time of forward and backward together, of each, measured in turn.
        agree: True when outputs and gradients agree: within torch's default tolerance for their dtype, in float16 and
            bfloat16 but for rounding, as ``gradcheck`` with a reference measures it.
        output_errors, gradient_errors: Function's less reference's, element by element, per pair; None where they
            cannot be subtracted.
        outputs_agree, gradients_agree: which pairs agree so.
    """

    names: tuple[str, str]
    outputs: tuple[tuple[Value, Value], ...] = ()
    gradients: tuple[tuple[Value, Value], ...] = ()
    input_names: tuple[str, ...] = ()
    output_differences: tuple[float, ...] = ()
    gradient_differences: tuple[float, ...] = ()
    graphs: tuple[AutogradGraph, AutogradGraph] | None = None
    saved_bytes: tuple[int, int] = (0, 0)
    seconds: tuple[float, float] = (0.0, 0.0)
    agree: bool = True
    output_errors: tuple[Value | None, ...] = ()
    gradient_errors: tuple[Value | None, ...] = ()
    outputs_agree: tuple[bool, ...] = ()
    gradients_agree: tuple[bool, ...] = ()

    def __repr__(self) -> str:
        return f"<Comparison {self.names[0]} and {self.names[1]}: {'agree' if self.agree else 'differ'}>"


def compare(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: tuple[Any, ...],
    *,
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Put a Function beside a reference: outputs, gradients, graphs, saved bytes and time.

    Args:
        fn: a Function class, its ``apply``, or any callable.
        reference: any callable that takes the same inputs.
        inputs: the arguments of both; copies are used, so nobody's ``.grad`` changes.
        names: what to call the two; by default their own names.

    Returns:
        The comparison; gradients are taken for one random cotangent, the same for both.

    Raises:
        CallError: when ``fn`` or ``reference`` cannot be called.
        InputError: when no input can be differentiated.

    Example:
        >>> import torch, nbautograd
        >>> x = torch.ones(3, requires_grad=True)
        >>> nbautograd.compare(torch.square, lambda x: x * x, (x,)).agree
        True
    """
    problems = Problem(fn, inputs, assume_grad=True), Problem(reference, inputs, assume_grad=True)
    with watched(), problems[0].session(), problems[1].session():
        sides = _Side(problems[0], problems[0].input_names), _Side(problems[1], problems[0].input_names)
        more = max(sides, key=lambda side: len(side.differentiable))
        weights = [c for c in cotangents(more.problem, more.outputs, more.problem.seed) if c is not None]
        for side in sides:
            side.differentiate(weights)
        seconds = _time(sides, weights)
        agreeing = _agreeing(sides)
    return _compared(names or (problems[0].name, problems[1].name), sides, seconds, agreeing)


def _agreeing(sides: tuple[_Side, _Side]) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    """Return which outputs and which gradients agree."""
    first, second = sides
    outputs = list(map(_close, first.outputs, second.outputs))
    gradients = tuple(map(_close, first.gradients, second.gradients))
    floating = [k for k, y in enumerate(first.outputs) if y.is_floating_point()]
    alike = [(y.shape, y.dtype) for y in first.outputs] == [(y.shape, y.dtype) for y in second.outputs]
    dtype = coarsest([*first.problem.inputs, *first.outputs])
    if dtype not in (torch.float16, torch.bfloat16) or not alike or any(g is None for g in first.gradients):
        return tuple(outputs), gradients
    wrong = check(first.problem, second.problem, seed=first.problem.seed).wrong
    for position, k in enumerate(floating):
        outputs[k] = position not in wrong
    return tuple(outputs), tuple(len(floating) + k not in wrong for k in range(len(gradients)))


def _compared(
    names: tuple[str, str],
    sides: tuple[_Side, _Side],
    seconds: tuple[float, float],
    agreeing: tuple[tuple[bool, ...], tuple[bool, ...]],
) -> Comparison:
    first, second = sides
    kept = tuple(first.problem.input_names[i] for i in first.problem.differentiable)
    output_names = first.problem.output_names
    outputs_agree, gradients_agree = agreeing
    as_many = len(first.outputs) == len(second.outputs) and len(first.gradients) == len(second.gradients)
    return Comparison(
        names=names,
        outputs=_pairs(first.outputs, second.outputs, output_names),
        gradients=_pairs(first.gradients, second.gradients, kept),
        input_names=kept,
        output_differences=_differences(first.outputs, second.outputs),
        gradient_differences=_differences(first.gradients, second.gradients),
        output_errors=_errors(first.outputs, second.outputs, output_names),
        gradient_errors=_errors(first.gradients, second.gradients, kept),
        graphs=(first.graph, second.graph),
        saved_bytes=(first.saved_bytes, second.saved_bytes),
        seconds=seconds,
        agree=as_many and all((*outputs_agree, *gradients_agree)),
        outputs_agree=outputs_agree,
        gradients_agree=gradients_agree,
    )


class _Side:
    """One of the two callables; lives only while ``compare`` runs.

    Args:
        problem: what is called.
        names: of the inputs in both graphs.
    """

    def __init__(self, problem: Problem, names: tuple[str, ...]) -> None:
        self.problem = problem
        with _saved_storages() as saved:  # a call of its own: saved tensors that went through a hook cannot be shown
            problem.call()
        self.saved_bytes = sum(saved.values())
        self.outputs: Outputs = problem.call()
        labels = dict(zip(names, self.outputs.inputs, strict=False))
        labels.update(zip(problem.output_names, self.outputs, strict=False))
        self.graph = graph(list(self.outputs), names=labels)
        self.differentiable = [self.outputs[i] for i in problem.differentiable_outputs(self.outputs)]
        self.gradients: Gradients = ()

    def differentiate(self, weights: list[torch.Tensor]) -> None:
        """Take the gradients for these cotangents, one per differentiable output."""
        self.gradients = self.problem.vjp(self.outputs, self._spread(self.outputs, weights))

    def once(self, weights: list[torch.Tensor]) -> float:
        """Return the seconds of one forward and one backward."""
        given = self.problem.fresh()
        leaves = [given[i] for i in self.problem.differentiable]
        start = time.perf_counter()
        outputs = self.problem.evaluate(given)
        pairs = [(y, c) for y, c in zip(outputs, self._spread(outputs, weights), strict=True) if c is not None]
        if pairs:
            torch.autograd.grad([y for y, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True)
        return time.perf_counter() - start

    def _spread(self, outputs: Sequence[torch.Tensor], weights: list[torch.Tensor]) -> list[torch.Tensor | None]:
        """Return the cotangents by output; one of its own where this side's output has another shape or dtype."""
        spread = cotangents(self.problem, outputs, self.problem.seed)
        for i, weight in zip(self.problem.differentiable_outputs(outputs), weights, strict=False):
            if weight.shape == outputs[i].shape and weight.dtype == outputs[i].dtype:
                spread[i] = weight
        return spread


def _time(sides: tuple[_Side, _Side], weights: list[torch.Tensor]) -> tuple[float, float]:
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        for side, taken in zip(sides, seconds, strict=True):
            taken.append(side.once(weights))
    return statistics.median(seconds[0]), statistics.median(seconds[1])


@contextlib.contextmanager
def _saved_storages() -> Iterator[dict[int, int]]:
    """Count the bytes of each storage that autograd saves meanwhile, by its address."""
    seen: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if unreadable_kind(tensor) is None:  # the others have several storages, or none
            storage = tensor.untyped_storage()
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # the tensor itself could hold its own node: a cycle that nothing collects

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield seen


def _pairs(ours: Gradients | Outputs, theirs: Gradients | Outputs, names: Any) -> tuple[tuple[Value, Value], ...]:
    return tuple((describe(n, a), describe(n, b)) for n, a, b in zip(names, ours, theirs, strict=False))


def _errors(ours: Gradients | Outputs, theirs: Gradients | Outputs, names: Any) -> tuple[Value | None, ...]:
    return tuple(_error(n, a, b) for n, a, b in zip(names, ours, theirs, strict=False))


def _error(name: str, a: torch.Tensor | None, b: torch.Tensor | None) -> Value | None:
    if a is None or b is None or a.shape != b.shape or a.dtype == torch.bool:
        return None
    return describe(name, a.detach() - b.detach())


def _differences(ours: Gradients | Outputs, theirs: Gradients | Outputs) -> tuple[float, ...]:
    return tuple(_difference(a, b) for a, b in zip(ours, theirs, strict=False))


def _difference(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else float("inf")
    if a.shape != b.shape:
        return float("inf")
    if a.numel() == 0:
        return 0.0
    if a.is_floating_point() or a.is_complex():
        return float((a.detach() - b.detach()).abs().max())
    return float((a != b).any())


def _close(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    try:
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True)
    except AssertionError:
        return False
    return True
