"""Comparison: a Function beside its reference, such as a custom product beside native ``*``."""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.display import Displayable
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.walk import graph
from nbautograd.core.recording.log import paused
from nbautograd.core.source import function_class, read_source
from nbautograd.core.values import Value, describe
from nbautograd.errors import CallError, InputError

Outputs = tuple[torch.Tensor, ...]
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
        agree: True when outputs and gradients agree within torch's default tolerance for their dtype.
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

    def __repr__(self) -> str:
        return f"<Comparison {self.names[0]} and {self.names[1]}: {'agree' if self.agree else 'differ'}>"


def compare(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    inputs: tuple[Any, ...],
    *,
    names: tuple[str, str] | None = None,
    input_names: tuple[str, ...] | None = None,
) -> Comparison:
    """Put a Function beside a reference: outputs, gradients, graphs, saved bytes and time.

    Args:
        fn: a Function class, its ``apply``, or any callable.
        reference: any callable that takes the same inputs.
        inputs: the arguments of both; copies are used, so nobody's ``.grad`` changes.
        names: what to call the two; by default their own names.
        input_names: what to call the inputs; by default the names of forward's arguments.

    Returns:
        The comparison; gradients are taken for one random cotangent, the same for both.

    Raises:
        CallError: when ``fn`` or ``reference`` cannot be called.
        InputError: when no input requires grad.

    Example:
        >>> import torch, nbautograd
        >>> x = torch.ones(3, requires_grad=True)
        >>> nbautograd.compare(torch.square, lambda x: x * x, (x,)).agree
        True
    """
    for given in (fn, reference):
        if not callable(given):
            raise CallError("inspection.not_callable", what=type(given).__name__)
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    if not any(isinstance(x, torch.Tensor) and x.requires_grad for x in arguments):
        raise InputError("inspection.no_grad_input")
    return _Pair(as_callable(fn), as_callable(reference), arguments).compare(
        names or (callable_name(fn), callable_name(reference)), input_names or argument_names(fn, len(arguments))
    )


class _Pair:
    """The two callables and the inputs of one comparison; lives only while ``compare`` runs."""

    def __init__(self, fn: Callable[..., Any], reference: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        self.callables = (fn, reference)
        self.inputs = inputs
        self.cotangents: list[torch.Tensor] = []

    def compare(self, names: tuple[str, str], input_names: tuple[str, ...]) -> Comparison:
        with paused(), quiet():
            (ours, our_grads, our_bytes), (theirs, their_grads, their_bytes) = (self._run(f) for f in self.callables)
            graphs = (self._graph(ours, input_names), self._graph(theirs, input_names))
            seconds = self._time()
        kept = tuple(input_names[i] for i in differentiable(self.inputs))
        outputs = _pairs(ours, theirs, [f"output {i}" for i in range(len(ours))])
        gradients = _pairs(our_grads, their_grads, [f"grad {name}" for name in kept])
        same = len(ours) == len(theirs)
        return Comparison(
            names=names,
            outputs=outputs,
            gradients=gradients,
            input_names=kept,
            output_differences=tuple(_difference(a, b) for a, b in zip(ours, theirs, strict=False)),
            gradient_differences=tuple(_difference(a, b) for a, b in zip(our_grads, their_grads, strict=True)),
            graphs=graphs,
            saved_bytes=(our_bytes, their_bytes),
            seconds=seconds,
            agree=same and all(_close(a, b) for a, b in zip((*ours, *our_grads), (*theirs, *their_grads), strict=True)),
        )

    def _run(self, fn: Callable[..., Any]) -> tuple[Outputs, list[torch.Tensor | None], int]:
        self.copies = copies(self.inputs)
        with _saved_storages() as saved:
            outputs = as_outputs(fn(*self.copies))
        wanted = [self.copies[i] for i in differentiable(self.copies)]
        return outputs, self._gradients(outputs, wanted), sum(saved.values())

    def _gradients(self, outputs: Outputs, wanted: list[torch.Tensor]) -> list[torch.Tensor | None]:
        roots = [y for y in outputs if y.requires_grad]
        if not roots:
            return [None] * len(wanted)
        # the reference may return fewer outputs; each output gets the same cotangent on both sides
        for y in roots[len(self.cotangents) :]:
            self.cotangents.append(torch.randn_like(y))
        cotangents = [
            c if c.shape == y.shape else torch.randn_like(y) for y, c in zip(roots, self.cotangents, strict=False)
        ]
        return list(torch.autograd.grad(roots, wanted, cotangents, retain_graph=True, allow_unused=True))

    def _graph(self, outputs: Outputs, input_names: tuple[str, ...]) -> AutogradGraph:
        return graph(list(outputs), names=dict(zip(input_names, self.copies, strict=True)))

    def _time(self) -> tuple[float, float]:
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(REPEATS):
            for fn, taken in zip(self.callables, seconds, strict=True):
                start = time.perf_counter()
                self._run(fn)
                taken.append(time.perf_counter() - start)
        return statistics.median(seconds[0]), statistics.median(seconds[1])


def as_callable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What to call: ``apply`` for a Function class, else the callable itself."""
    if isinstance(fn, type) and issubclass(fn, torch.autograd.Function):
        applied: Callable[..., Any] = fn.apply
        return applied
    return fn


def callable_name(fn: Callable[..., Any]) -> str:
    """The Function's class name for a class or its ``apply``, else the callable's own name."""
    cls = function_class(fn)
    if cls is not None:
        return cls.__name__
    return str(getattr(fn, "__name__", type(fn).__name__))


def argument_names(fn: Callable[..., Any], count: int) -> tuple[str, ...]:
    """Names of the first ``count`` arguments, from forward's source where it can be read."""
    cls = function_class(fn)
    source = None if cls is None else read_source(cls)
    known = () if source is None else tuple(n for n in source.inputs if not n.startswith("*"))
    return tuple(known[i] if i < len(known) else f"input {i}" for i in range(count))


def as_outputs(result: Any) -> Outputs:
    """The tensors that a call returned, in order."""
    if isinstance(result, torch.Tensor):
        return (result,)
    if isinstance(result, (tuple, list)):
        return tuple(y for y in result if isinstance(y, torch.Tensor))
    return ()


def differentiable(inputs: tuple[Any, ...]) -> list[int]:
    """Positions of the tensors that require grad."""
    return [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]


def copies(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Detached copies of the tensors, strides and ``requires_grad`` kept, so that no ``.grad`` of the user's changes."""
    return tuple(
        x.detach().clone(memory_format=torch.preserve_format).requires_grad_(x.requires_grad)
        if isinstance(x, torch.Tensor)
        else x
        for x in inputs
    )


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Run without printing and leave the random state as it was."""
    text = io.StringIO()
    with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(text):
        yield text


@contextlib.contextmanager
def _saved_storages() -> Iterator[dict[int, int]]:
    """Bytes of each storage that autograd saves meanwhile, by its address."""
    seen: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # the tensor itself could hold its own node: a cycle that nothing collects

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield seen


def _pairs(ours: Any, theirs: Any, names: list[str]) -> tuple[tuple[Value, Value], ...]:
    return tuple((describe(n, a), describe(n, b)) for n, a, b in zip(names, ours, theirs, strict=False))


def _difference(a: torch.Tensor | None, b: torch.Tensor | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else float("inf")
    if a.shape != b.shape:
        return float("inf")
    if a.numel() == 0:
        return 0.0
    return (
        float((a.detach() - b.detach()).abs().max())
        if a.is_floating_point() or a.is_complex()
        else float((a != b).any())
    )


def _close(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    try:
        torch.testing.assert_close(a.detach(), b.detach(), equal_nan=True)
    except AssertionError:
        return False
    return True
