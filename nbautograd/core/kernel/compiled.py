"""torch.compile as a witness: the same call compiled, where the Function itself agrees with its reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.prepared_inputs import callable_of
from nbautograd.core.checking.problem import Problem
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.check import FRESH, candidate_regions, confirmed, finding
from nbautograd.core.kernel.golden import Draw, Measured, Pair, Values, coarsest, copied
from nbautograd.core.kernel.raised import one_line
from nbautograd.core.kernel.sweep import size_cases
from nbautograd.core.kernel.trial import Region, Track, Trial
from nbautograd.core.numerics.draws import child
from nbautograd.core.stumbles import hands_over, record
from nbautograd.core.torch_private.tensors import uncounted_by_dynamo

BACKENDS = ("eager", "aot_eager", "inductor")
WAYS = ("backward", "func_grad", "twice", "discarded", "dynamic")
DRAWS = 2  # of grad_outputs; where the compiled one differs, as many fresh ones


@dataclass(frozen=True)
class Compiled:
    """A way to compile a Function, and what came of it.

    Attributes:
        backend: of torch.compile.
        way: the name of a ``Way``.
        track: the output or gradient that is wrong though the Function's is right, else the worst; None where there
            was nothing to compare.
        finding: what is wrong with it, confirmed at fresh draws.
        error: what torch said where it could not be compiled, or the Function takes no torch.func.grad.
    """

    backend: str
    way: str
    track: Track | None = None
    finding: Finding | None = None
    error: str = ""


class Way(Pair):
    """A Function as it is compiled, with an ordinary backward, and its reference.

    Args:
        fn: the Function as the caller gave it: an operation counts as what torch.compile sees.
        reference: what it should compute.
        inputs: of both.
        dtype: of the check.
    """

    name = "backward"
    dynamic: bool | None = None  # shapes: None leaves them to torch

    def __init__(
        self, fn: Any, reference: Any, inputs: tuple[Any, ...], dtype: torch.dtype | None, seed: int = 0
    ) -> None:
        self.function = callable_of(fn)
        self._compiled: Callable[..., Any] | None = None
        candidate, eager = Problem(self._call, inputs, seed), Problem(reference, inputs, seed)
        outputs = candidate.call()  # what is learnt of it is learnt uncompiled
        given = dtype or coarsest([*(inputs[i] for i in candidate.differentiable), *outputs])
        super().__init__(candidate, eager, given or torch.float32)
        candidate.input_names = self._names(fn, inputs)
        self.flows = tuple(k for k, y in enumerate(outputs) if y.requires_grad)

    def _names(self, fn: Any, inputs: tuple[Any, ...]) -> tuple[str, ...]:
        return Problem(fn, inputs).input_names

    @hands_over
    def compiled_by(self, backend: Any) -> None:
        """Compile anew with a backend; None runs it as it is."""
        program = None if backend is None else _anew(self.program())
        self._compiled = program and torch.compile(program, backend=backend, dynamic=self.dynamic)

    def program(self) -> Callable[..., Any]:
        """Return what is compiled."""
        return self.function

    @hands_over
    def _call(self, *args: Any) -> Any:
        return (self._compiled or self.function)(*args)


class Dynamic(Way):
    """Shapes that are symbols: what is compiled runs at another size first."""

    name, dynamic = "dynamic", True

    def __init__(
        self, fn: Any, reference: Any, inputs: tuple[Any, ...], other: tuple[Any, ...], **options: Any
    ) -> None:
        self.other = other
        super().__init__(fn, reference, inputs, **options)

    def compiled_by(self, backend: Any) -> None:
        """Compile anew, and run it at the other size."""
        super().compiled_by(backend)
        if backend is not None:
            self.compute(self.draw(self.other, 0))


class Discarded(Way):
    """What an in-place Function returns is discarded, the input that it changed is used (issue 184113 of pytorch)."""

    name = "discarded"

    def __init__(self, fn: Any, reference: Any, inputs: tuple[Any, ...], position: int, **options: Any) -> None:
        call = callable_of(fn)

        def changed(*args: Any) -> Any:
            call(*args)
            return args[position]

        super().__init__(changed, reference, inputs, **options)
        self.candidate.input_names = self._names(fn, inputs)


class Twice(Way):
    """One tensor as two arguments."""

    name = "twice"

    def __init__(self, fn: Any, reference: Any, inputs: tuple[Any, ...], pair: tuple[int, int], **options: Any) -> None:
        self.slots = pair
        fewer = tuple(x for k, x in enumerate(inputs) if k != pair[1])
        super().__init__(fn, lambda *args: reference(*self._doubled(args)), fewer, **options)

    def _doubled(self, args: Sequence[Any]) -> tuple[Any, ...]:
        first, second = self.slots
        return (*args[:second], args[first], *args[second:])

    def _names(self, fn: Any, inputs: tuple[Any, ...]) -> tuple[str, ...]:
        names = super()._names(fn, self._doubled(inputs))
        return (*names[: self.slots[1]], *names[self.slots[1] + 1 :])

    def _call(self, *args: Any) -> Any:
        return super()._call(*self._doubled(args))


class FuncGrad(Way):
    """``torch.func.grad`` inside of what is compiled."""

    name = "func_grad"

    def program(self) -> Callable[..., Any]:
        """Return the function of inputs and grad_outputs that has outputs and gradients."""
        function, flows, which = self.function, self.flows, self.candidate.differentiable

        @hands_over
        def loss(args: tuple[Tensor, ...], others: tuple[Any, ...], flowing: tuple[Tensor, ...]) -> Any:
            given = list(others)
            for k, x in zip(which, args, strict=True):
                given[k] = x
            raw = function(*given)
            outputs = list(raw) if isinstance(raw, (list, tuple)) else [raw]
            total = sum((outputs[k] * g).sum() for k, g in zip(flows, flowing, strict=True))
            return total, [y for y in outputs if isinstance(y, Tensor) and y.is_floating_point()]

        return torch.func.grad(loss, has_aux=True)

    def compute(self, draw: Draw) -> Values:
        """Run it at a draw."""
        which = self.candidate.differentiable
        given = [x.detach() if isinstance(x, Tensor) else x for x in copied(draw.inputs)]
        others = tuple(None if k in which else x for k, x in enumerate(given))
        self.candidate.numbers.seed(draw.seed)
        call = self._compiled or self.program()
        gradients, outputs = call(tuple(given[k] for k in which), others, draw.grad_outputs)
        return Values((*(y.detach() for y in outputs), *(g.detach() for g in gradients)), len(outputs))


def compiled(
    fn: Any,
    reference: Any,
    inputs: tuple[Any, ...],
    backends: Sequence[Any] = BACKENDS,
    dtype: torch.dtype | None = None,
    seed: int = 0,
    ways: Sequence[str] = WAYS,
) -> Iterator[Compiled]:
    """Compare the compiled Function with its reference, given that the eager one passes.

    Args:
        fn, reference: as the caller gave them.
        inputs: arguments of both.
        backends: of torch.compile, by name or callable.
        dtype: of the check.
        ways: those that are tried, of those that there are for this Function.
    """
    reference = callable_of(reference)
    for name, make in _makers(fn, reference, inputs, {"dtype": dtype, "seed": seed}):
        if name not in ways:
            continue
        try:
            way = make()
            with way.candidate.session(), way.reference.session(), uncounted_by_dynamo():
                yield from list(_by_each_backend(way, backends, seed))
        except Exception as error:
            record(error, f"compiled {name}")
            yield Compiled("", name, error=one_line(error))


def _makers(
    fn: Any, reference: Any, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Iterator[tuple[str, Callable[[], Way]]]:
    """Yield the ways that there are for a Function at these inputs."""
    at = (fn, reference, inputs)
    yield Way.name, lambda: Way(*at, **options)
    yield FuncGrad.name, lambda: FuncGrad(*at, **options)
    pair = _alike(inputs)
    if pair is not None:
        yield Twice.name, lambda: Twice(*at, pair, **options)
    eager = Problem(reference, inputs, options["seed"])
    with eager.session():
        eager.call()
        other = next((case.inputs for case in size_cases(eager, options["seed"]) if min_size(case.inputs) > 1), None)
    call = callable_of(fn)
    given = [x.clone() if isinstance(x, Tensor) else x for x in copied(inputs)]
    output = call(*given)
    position = next((k for k, x in enumerate(given) if isinstance(x, Tensor) and x is output and x._version), None)
    if position is not None:
        yield Discarded.name, lambda: Discarded(*at, position, **options)
    if other is not None:
        yield Dynamic.name, lambda: Dynamic(*at, other=other, **options)


def min_size(inputs: Sequence[Any]) -> int:
    """Return the smallest size of a dimension among tensors: torch makes no symbol of 0 and 1."""
    return min((n for x in inputs if isinstance(x, Tensor) for n in x.shape), default=0)


def _alike(inputs: Sequence[Any]) -> tuple[int, int] | None:
    """Return the positions of two inputs for which one tensor may stand."""
    known: dict[tuple[Any, ...], int] = {}
    for k, x in enumerate(inputs):
        if isinstance(x, Tensor) and x.requires_grad:
            first = known.setdefault((x.shape, x.dtype, x.device), k)
            if first != k:
                return first, k
    return None


def _by_each_backend(way: Way, backends: Sequence[Any], seed: int) -> Iterator[Compiled]:
    measured, fresh = (_measured(way, s) for s in (child(seed, "compiled"), child(seed, "compiled", FRESH)))
    alone = Trial(way).of(measured)
    if any(track.broken or track.exceeded() for track in alone.tracks):
        return  # then it is not torch.compile that changes it
    for backend in backends:
        named = str(getattr(backend, "__name__", backend))
        try:
            way.compiled_by(backend)
            trial = _judged(way, measured)
            suspects = [
                k
                for k, track in enumerate(trial.tracks)
                if (track.broken or bool(track.exceeded() and track.error > alone.tracks[k].error))
            ]
            again = (
                _judged(way, fresh, {k: candidate_regions(trial.tracks[k]) for k in suspects}) if suspects else trial
            )
        except Exception as error:
            record(error, f"compiled {way.name}")
            yield Compiled(named, way.name, error=one_line(error))
            continue
        wrong = [k for k in suspects if confirmed(trial.tracks[k], again.tracks[k])]
        if wrong:
            track = trial.tracks[wrong[0]]
            cause = finding(track, candidate_regions(track), again.tracks[wrong[0]])
            yield Compiled(named, way.name, track, cause)
        else:
            yield Compiled(named, way.name, max(trial.tracks, key=lambda track: track.ratio, default=None))


def _measured(way: Way, seed: int) -> list[Measured]:
    way.compiled_by(None)
    return [way.measure(draw, 2) for draw in way.draws(DRAWS, seed)]


def _judged(way: Way, measured: Sequence[Measured], regions: dict[int, list[Region]] | None = None) -> Trial:
    return Trial(way, regions=regions).of(replace(one, candidate=way.compute(one.draw)) for one in measured)


def _anew(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of code of its own: torch.compile keeps what it compiled with the code, eight times at most."""

    def call(*args: Any) -> Any:
        return function(*args)

    return FunctionType(call.__code__.replace(), call.__globals__, "call", None, call.__closure__)
