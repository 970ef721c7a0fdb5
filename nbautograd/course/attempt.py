"""Attempt: an answer, called and differentiated at random points beside what the exercise says is right."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.budget import COUNTS
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.checking.prepared_inputs import callable_of, is_differentiable
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.quiet import seed_all
from nbautograd.core.pytrees import tensors
from nbautograd.core.torch_private.tensors import disable_torch_function
from nbautograd.core.user_source import function_class
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise

POINTS = 3
SINGLE = 1e-4  # how closely float32 agrees after a few sums: its epsilon is 1.2e-7
Gradients = tuple[Tensor | None, ...]


@dataclass(frozen=True)
class Run:
    """One forward.

    Attributes:
        inputs: what was given, leaves requiring grad among them.
        raw: what was returned.
        outputs: the tensors in it, in order.
    """

    inputs: tuple[Any, ...]
    raw: Any
    outputs: tuple[Tensor, ...]

    @property
    def differentiable_outputs(self) -> tuple[int, ...]:
        """Positions of the outputs that can be differentiated."""
        return tuple(k for k, y in enumerate(self.outputs) if y.requires_grad and is_float(y))


class Attempt:
    """An answer being checked.

    Args:
        exercise: what was asked for.
        answer: what the cell defined.
        seed: of the random points; another one gives other points.
        source: the cell's text, where it is known.

    Attributes:
        call: what is called on the inputs.
        cls: the Function class, when the answer is one and is called as it is.

    Raises:
        CallError: when the answer cannot be called.
        Exception: what the exercise's ``apply`` raises on this answer.
    """

    def __init__(self, exercise: Exercise, answer: Any, seed: int = 0, source: str = "") -> None:
        self.exercise, self.answer, self.source = exercise, answer, source
        self.seed = zlib.crc32(f"{exercise.name} {seed}".encode())
        self.fn: Any = answer if exercise.apply is None else exercise.apply(answer)
        self.cls = function_class(self.fn)

    @property
    def call(self) -> Callable[..., Any]:
        """Return the callable that is run on the inputs."""
        return callable_of(self.fn)

    def draw(self, number: int = 0) -> InputGenerator:
        """Return the generator of one point."""
        return InputGenerator(self.seed, number)

    def point(self, number: int = 0) -> tuple[Any, ...]:
        """Return the inputs of one random point, made anew, ready to be differentiated."""
        assert self.exercise.inputs is not None
        return ready(self.exercise.inputs(self.draw(number)))

    def points(self, count: int = POINTS) -> Iterator[tuple[Any, ...]]:
        """Yield the inputs of several random points."""
        return (self.point(number) for number in range(count))

    def gradcheck(self, inputs: tuple[Any, ...]) -> GradcheckReport:
        """Return what ``nbautograd.gradcheck`` says at these inputs; what it finds does not depend on the machine.

        Second derivatives are looked at where the exercise asks for them.
        """
        order = 2 if "double_backward" in self.exercise.ids else 1
        return gradcheck(self.fn, copies(inputs), order=order, seed=self.seed, budget=COUNTS)

    def problem(self, inputs: tuple[Any, ...]) -> Problem:
        """Return the call as the checker takes it apart."""
        return Problem(self.fn, copies(inputs), self.seed)

    def names(self, inputs: tuple[Any, ...]) -> tuple[str, ...]:
        """Return what the answer calls its inputs."""
        return tuple(self.problem(inputs).input_names)

    def run(self, inputs: tuple[Any, ...]) -> Run:
        """Call the answer on copies of these inputs."""
        return forward(self.call, copies(inputs))

    def reference_run(self, inputs: tuple[Any, ...]) -> Run:
        """Call the formula on copies of these inputs."""
        assert self.exercise.formula is not None
        return forward(self.exercise.formula, copies(inputs))

    def expected_gradients(self, truth: Run, cotangents: Sequence[Tensor | None]) -> Gradients:
        """Return the gradients that are asked for: the declared ones, else those of the formula."""
        if self.exercise.vjp is None:
            return vjp(truth, cotangents)
        given = [c if c is not None else torch.zeros_like(y) for c, y in zip(cotangents, truth.outputs, strict=True)]
        bare = [x.detach() if isinstance(x, Tensor) else x for x in truth.inputs]
        with torch.no_grad():
            found = self.exercise.vjp(*bare, *(c for c, y in zip(given, truth.outputs, strict=True) if is_float(y)))
        return found if isinstance(found, tuple) else (found,)

    def allclose(self, a: Tensor | None, b: Tensor | None) -> bool:
        """Compare two tensors as closely as the exercise asks, or their dtype allows; None counts as zero."""
        single = any(x is not None and x.dtype in (torch.float32, torch.complex64) for x in (a, b))
        return close(a, b, max(self.exercise.tolerance, SINGLE if single else 0.0))


def ready(inputs: Iterable[Any]) -> tuple[Any, ...]:
    """Return the inputs with their floating tensors requiring grad, unless some do already."""
    given = tuple(inputs)
    chosen = any(isinstance(x, Tensor) and x.requires_grad for x in given)
    return tuple(_leaf(x, x.requires_grad if chosen else is_float(x)) if isinstance(x, Tensor) else x for x in given)


def positions(inputs: Sequence[Any]) -> tuple[int, ...]:
    """Return positions of the inputs that are differentiated."""
    return tuple(k for k, x in enumerate(inputs) if is_differentiable(x))


def copies(inputs: Sequence[Any], wanted: Iterable[int] | None = None) -> tuple[Any, ...]:
    """Return copies of the inputs, laid out as they are, expanded ones too; ``wanted``: those that require grad."""
    ask = None if wanted is None else set(wanted)
    return tuple(
        _leaf(x, x.requires_grad if ask is None else k in ask) if isinstance(x, Tensor) else x
        for k, x in enumerate(inputs)
    )


def forward(call: Callable[..., Any], inputs: tuple[Any, ...]) -> Run:
    """Call something with the generators seeded; an in-place Function gets clones, as a user would give it."""
    seed_all(0)
    try:
        raw = call(*inputs)
    except RuntimeError as error:
        if "leaf Variable that requires grad" not in str(error):
            raise
        raw = call(*(x.clone() if isinstance(x, Tensor) and x.requires_grad else x for x in inputs))
    return Run(inputs, raw, tuple(tensors(raw)))


def vjp(run: Run, cotangents: Sequence[Tensor | None], create_graph: bool = False) -> Gradients:
    """Return gradients of the inputs that require grad, one each, None where none came."""
    leaves = [run.inputs[k] for k in positions(run.inputs)]
    pairs = [(y, c) for y, c in zip(run.outputs, cotangents, strict=True) if c is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(leaves)
    seed_all(0)
    given, weights = zip(*pairs, strict=True)
    own = [c if c.requires_grad else c.clone() for c in weights]  # a backward may write into what it gets
    return torch.autograd.grad(given, leaves, own, retain_graph=True, create_graph=create_graph, allow_unused=True)


def cotangents(outputs: Sequence[Tensor], seed: int) -> list[Tensor | None]:
    """Random numbers of both signs for every floating output."""
    draw = InputGenerator(seed + 7919)
    return [draw.normal(*y.shape).to(y.dtype) if is_float(y) else None for y in outputs]


def close(a: Tensor | None, b: Tensor | None, tolerance: float) -> bool:
    """Return True if two tensors agree, relative to the largest element; None counts as zero, NaN agrees with NaN."""
    if a is None or b is None:
        other = b if a is None else a
        return other is None or not bool((other.detach().abs() > 0).any())
    if a.shape != b.shape:
        return False
    a, b = plain(a).to(torch.float64), plain(b).to(torch.float64)
    finite = b[torch.isfinite(b)]
    size = float(finite.abs().max()) if finite.numel() else 0.0
    return bool(torch.isclose(a, b, rtol=tolerance, atol=tolerance * max(size, 1e-6), equal_nan=True).all())


def plain(tensor: Tensor) -> Tensor:
    """Return the tensor's numbers without its type, which is the answer's own where that is a subclass."""
    with disable_torch_function():
        return tensor.detach().as_subclass(Tensor)


def is_float(item: Any) -> bool:
    """Return True if this is a tensor of real numbers."""
    return isinstance(item, Tensor) and item.is_floating_point()


def _leaf(item: Tensor, wanted: bool) -> Tensor:
    storage = item.untyped_storage().clone()
    fresh = torch.empty(0, dtype=item.dtype).set_(storage, item.storage_offset(), item.shape, item.stride())
    return fresh.requires_grad_(wanted)
