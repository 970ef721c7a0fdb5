"""One draw: a Function at some inputs, and its reference in float64, in its dtype, and rounded at random.

Golden values are the reference's in float64 on the very inputs of low precision. The yardstick is the reference in the
dtype itself. Samples of rounding are the reference with each of its results rounded at random (Monte Carlo arithmetic),
which shows how far a correct implementation may be off whose operations are ordered, fused or split in another way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from nbautograd.core.checking.prepared_inputs import is_floating, unreadable_kind
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.kernel.raised import RaisedError
from nbautograd.core.numerics.directional import random_direction
from nbautograd.core.numerics.draws import child, generator
from nbautograd.core.stumbles import RAISED, is_ours
from nbautograd.core.torch_private.precision import InFloat32, InFloat64, RandomNumbers, RandomRounding

MOST_BEFORE = 64  # elements of a storage that stand before a copy at least, where more stood before the original
MOVED = 0.25  # how far fresh inputs lie from the given ones, relative to the size of each element


@dataclass(frozen=True)
class Draw:
    """Inputs and grad_outputs at which both are run; of a pair, not of a problem, so that it is no ``Point``.

    Attributes:
        inputs: in the dtypes of the check.
        grad_outputs: one per differentiable output, in that output's dtype.
        seed: of the random generators while both run.
        random: True where the reference draws random numbers.
    """

    inputs: tuple[Any, ...]
    grad_outputs: tuple[Tensor, ...]
    seed: int
    random: bool = False


@dataclass(frozen=True)
class Quantity:
    """An output or a gradient, the thing whose error is measured.

    Attributes:
        kind: ``"output"`` or ``"gradient"``.
        name: of the output, or of the input that it is the gradient of.
        position: among outputs or inputs.
    """

    kind: str
    name: str
    position: int


@dataclass(frozen=True)
class Values:
    """Values of one run of a callable: floating outputs, then gradients; None where no gradient came."""

    tensors: tuple[Tensor | None, ...]
    outputs: int


@dataclass(frozen=True)
class Measured:
    """The values of one draw.

    Attributes:
        draw: where they were computed.
        golden: of the reference in float64.
        yardstick: of the reference in the dtype itself.
        samples: of the reference with random rounding.
        candidate: of the Function.
        numbers: random ones that the reference drew; None where it draws none.
    """

    draw: Draw
    golden: Values
    yardstick: Values
    samples: tuple[Values, ...]
    candidate: Values
    numbers: RandomNumbers | None = None


def coarsest(tensors: Sequence[Any]) -> torch.dtype | None:
    """Return the floating dtype with the fewest digits among these, of complex ones that of their parts; else None."""
    dtypes = [t.dtype.to_real() for t in tensors if is_floating(t)]
    return max(dtypes, key=lambda dtype: float(torch.finfo(dtype).eps), default=None)


class Pair:
    """A Function and its reference, ready to be run at draws.

    Args:
        candidate: the Function that is checked.
        reference: what it should compute.
        dtype: of the check; None takes the coarsest among inputs and outputs of the first draw.
        arrange: lays out the grad_outputs in memory; None leaves them contiguous.
    """

    def __init__(
        self,
        candidate: Problem,
        reference: Problem,
        dtype: torch.dtype | None = None,
        arrange: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.candidate, self.reference, self._dtype, self.arrange = candidate, reference, dtype, arrange
        self._called: list[tuple[Draw, Outputs]] = []  # the last draw, and the reference's outputs there

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the check."""
        return self._dtype or torch.float32

    @property
    def rounding(self) -> torch.dtype:
        """What random rounding rounds to: in float64, where nothing is more exact, float32.

        That is about the tolerance of ``torch.testing.assert_close`` in float64, 1e-7.
        """
        return torch.float32 if self.dtype is torch.float64 else self.dtype

    def draws(
        self,
        count: int,
        seed: int,
        inputs: tuple[Any, ...] | None = None,
        fresh: Callable[[int], tuple[Any, ...]] | None = None,
    ) -> Iterator[Draw]:
        """Yield draws: the first at the given inputs, the others around them, or fresh ones of a seed."""
        base = self.candidate.inputs if inputs is None else inputs
        for k in range(count):
            s = child(seed, k) if k else seed
            yield self.draw(base if k == 0 else fresh(s) if fresh is not None else moved(base, s), s)

    def draw(self, inputs: tuple[Any, ...], seed: int) -> Draw:
        """Return a draw at these inputs, with random grad_outputs in the dtypes of the reference's outputs."""
        wide = any(is_floating(x) and x.dtype.to_real() is torch.float64 for x in inputs)
        with contextlib.nullcontext() if wide else InFloat32():
            outputs = self.reference.call(copied(inputs), seed)
        self._dtype = self._dtype or coarsest([*(inputs[i] for i in self.candidate.differentiable), *outputs])
        numbers = generator(seed, "grad_outputs")
        grads = tuple(
            torch.randn(y.shape, generator=numbers, dtype=torch.cfloat if y.is_complex() else torch.float32).to(
                y.device, y.dtype
            )
            for y in outputs
            if y.requires_grad
        )
        if self.arrange is not None:
            grads = tuple(map(self.arrange, grads))
        draw = Draw(inputs, grads, seed, self.reference.numbers.drawn)
        self._called = [(draw, outputs)]
        return draw

    def measure(self, draw: Draw, samples: int) -> Measured:
        """Run the Function and its reference at a draw."""
        numbers = RandomNumbers() if draw.random else None  # in float64 it would draw others
        known = next((outputs for one, outputs in self._called if one is draw and numbers is None), None)
        self._called.clear()
        yardstick = run(self.reference, draw, numbers, known)
        with sdpa_kernel(SDPBackend.MATH):  # a fused attention of float64 would round in between as its author wrote it
            golden = run(self.reference, in_float64(draw), InFloat64(numbers), own=True)
        return self.sampled(Measured(draw, golden, yardstick, (), self.compute(draw), numbers), samples)

    def sampled(self, measured: Measured, samples: int) -> Measured:
        """Run the reference with random rounding at a draw that was measured."""
        if not samples:
            return measured
        draw, numbers = measured.draw, measured.numbers
        wide = in_float64(draw)
        with sdpa_kernel(SDPBackend.MATH):
            rounded = tuple(
                run(self.reference, wide, RandomRounding(self.rounding, child(draw.seed, "rounding", k), numbers))
                for k in range(samples)
            )
        return replace(measured, samples=rounded)

    def compute(self, draw: Draw) -> Values:
        """Run the Function at a draw; what it raises is told apart from what the reference raises."""
        outputs = None
        try:
            outputs = self.candidate.call(copied(draw.inputs), draw.seed)
            return run(self.candidate, draw, outputs=outputs)
        except RAISED as error:
            if is_ours(error):
                raise
            raise RaisedError(error, outputs is None) from error


def run(
    problem: Problem,
    draw: Draw,
    mode: AbstractContextManager[Any] | None = None,
    outputs: Outputs | None = None,
    own: bool = False,
) -> Values:
    """Run forward and backward of a callable at a draw.

    Args:
        draw: its inputs and grad_outputs.
        mode: what it runs in.
        outputs: of its forward there, where that ran.
        own: True where the draw was made for this run, which may write into it.

    Returns:
        The floating outputs and the gradients, detached.
    """
    copy = tuple if own else copied  # forward and backward may write into what they get
    with mode or contextlib.nullcontext():
        outputs = problem.call(copy(draw.inputs), draw.seed) if outputs is None else outputs
        grads = iter(copy(draw.grad_outputs))
        cotangents = [next(grads, None) if y.requires_grad else None for y in outputs]
        fitting = [
            None if c is None or c.shape != y.shape else c.to(y.dtype) for y, c in zip(outputs, cotangents, strict=True)
        ]
        gradients = problem.vjp(outputs, fitting)
    floating = tuple(_real(y.detach()) for y in outputs if is_floating(y))
    return Values((*floating, *(None if g is None else _real(g.detach()) for g in gradients)), len(floating))


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def copied(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return detached copies in the same memory layout, requiring grad as these do."""
    shared = _shared(inputs)
    return tuple(_copied(x, shared) if readable(x) else x for x in inputs)


def readable(item: Any) -> bool:
    """Return True for a tensor whose entries can be copied and cast; a sparse or nested one is handed on as it is."""
    return isinstance(item, Tensor) and unreadable_kind(item) is None


def in_float64(draw: Draw) -> Draw:
    """Return the same draw in float64: the numbers are those of low precision."""
    return Draw(tuple(map(wide, draw.inputs)), tuple(map(wide, draw.grad_outputs)), draw.seed, draw.random)


def wide(item: Any) -> Any:
    """Return a copy of a floating tensor in float64, of a complex one in complex128; anything else as it is."""
    if not is_floating(item) or not readable(item):
        return item
    copied = item.detach().to(torch.complex128 if item.is_complex() else torch.float64, copy=True)
    return copied.requires_grad_(item.requires_grad)


def moved(inputs: Sequence[Any], seed: int) -> tuple[Any, ...]:
    """Return fresh inputs around these: what requires grad moves by a quarter of its size, in its own dtype."""
    shared = _shared(inputs)
    return tuple(
        _moved(x, child(seed, k), shared) if isinstance(x, Tensor) and x.requires_grad else x
        for k, x in enumerate(inputs)
    )


def _moved(x: Tensor, seed: int, shared: Mapping[int, Tensor]) -> Tensor:
    if not _dense(x):
        return x  # the same memory at several indices
    wide = x.detach().to("cpu", torch.complex128 if x.is_complex() else torch.float64)
    fresh = (wide + MOVED * random_direction(wide, seed)).to(x.device, x.dtype)
    return like(x, fresh, shared)


def like(x: Tensor, values: Tensor, shared: Mapping[int, Tensor] | None = None) -> Tensor:
    """Return values in the memory layout of a tensor, requiring grad as it does; in a part of what several share.

    Gaps hold ones, and so does what lies before it: what reads them is no less wrong, and the same each time.
    """
    before = min(x.storage_offset(), MOST_BEFORE + x.storage_offset() % MOST_BEFORE)
    if not _dense(x) or (x.is_contiguous() and not before):
        out = torch.empty_like(values, memory_format=torch.contiguous_format) if _dense(x) else values.clone()
    elif shared is not None and _storage(x) in shared:
        out = shared[_storage(x)].as_strided(x.shape, x.stride(), x.storage_offset()).detach()
    else:
        size = 1 + before + sum(stride * (n - 1) for stride, n in zip(x.stride(), x.shape, strict=True) if n)
        out = torch.ones(size, dtype=values.dtype, device=x.device).as_strided(x.shape, x.stride(), before).detach()
    return out.copy_(values).requires_grad_(x.requires_grad)


def _copied(x: Tensor, shared: Mapping[int, Tensor]) -> Tensor:
    if not _dense(x):
        return x.detach().requires_grad_(x.requires_grad)
    return like(x, x.detach(), shared)


def _shared(inputs: Sequence[Any]) -> dict[int, Tensor]:
    slices: dict[int, list[Tensor]] = {}
    for x in inputs:
        if readable(x) and _dense(x) and x.requires_grad:
            slices.setdefault(_storage(x), []).append(x)
    memory = {}
    for address, several in slices.items():
        if len({x.dtype for x in several}) != 1 or len(several) == 1:
            continue
        size = several[0].untyped_storage().nbytes() // several[0].element_size()
        if size <= 2 * sum(x.numel() for x in several):
            owners = torch.zeros(size, dtype=torch.int8, device=several[0].device)
            for x in several:
                owners.as_strided(x.shape, x.stride(), x.storage_offset()).add_(1)
            if int(owners.max()) == 1:
                memory[address] = torch.ones(size, dtype=several[0].dtype, device=several[0].device)
    return memory


def _storage(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()


def _dense(x: Tensor) -> bool:
    return x.layout is torch.strided and 0 not in x.stride()
