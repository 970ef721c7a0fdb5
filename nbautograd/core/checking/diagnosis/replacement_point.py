"""A call at which variables of backward are replaced: what is right there, and what mends its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import (
    backward_replaced,
    cotangents,
    gradient_tolerance,
    own_node,
    pull,
    tensors_on_ctx,
)
from nbautograd.core.checking.diagnosis.instrumented_backward import InstrumentedBackward, Key
from nbautograd.core.checking.directional import trusted
from nbautograd.core.checking.jacobian.forward_values import by_autograd
from nbautograd.core.checking.problem import pullback
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import SIGNIFICANT
from nbautograd.core.stumbles import users_errors


class ReplacementPoint:
    """One call, its right gradients, and what each expression of forward and its gradient are.

    Args:
        bench: of the Function.
        inputs: of the call.

    Attributes:
        wrong: True where autograd of the forward is right, and backward gives something else.
        rel: relative difference up to which two gradients are the same.
        shapes: of the inputs that are tensors.
    """

    def __init__(self, bench: InstrumentedBackward, inputs: tuple[Any, ...]) -> None:
        self.bench, problem = bench, bench.problem
        self.outputs, self.wrong = problem.call(inputs), False
        self.shapes = [x.shape for x in self.outputs.inputs if isinstance(x, Tensor)]
        self.node = own_node(problem, self.outputs)
        self.v = cotangents(problem, self.outputs, problem.seed + 95)
        bench.seen = {}
        found = by_autograd(problem, self.outputs, bench.forward)
        self.rel = max(SIGNIFICANT, gradient_tolerance(self.outputs, problem.inputs))
        if found is None or self.node is None:
            return
        leaves, outputs = self.forward = found
        self.known = bench.seen
        known = {k: t for k, t in bench.seen.items() if isinstance(t, Tensor)}
        values = {-1 - i: x for i, x in enumerate(leaves) if isinstance(x, Tensor)} | known
        asked = {k: t for k, t in values.items() if t.requires_grad}
        got = dict(zip(asked, pullback(outputs, list(asked.values()), self.v), strict=True))
        self.right = [got.get(-1 - i) for i in problem.differentiable]
        self.candidates: dict[Key, Tensor] = {("value", k): t.detach() for k, t in values.items()}
        self.candidates |= {("gradient", k): g for k, g in got.items() if g is not None}
        if len(outputs) == 1:
            slopes = pullback(outputs, list(asked.values()), [torch.ones_like(outputs[0])])
            self.candidates |= {("derivative", k): d for k, d in zip(asked, slopes, strict=True) if d is not None}
        self.gradients = self.run(None)
        borne_out = trusted(problem, self.outputs, self.v, self.right, bench.which, problem.seed + 96)
        self.wrong = borne_out and not self._right(self.gradients, bench.which)

    def run(self, replaced: tuple[int, Any] | None, v: Sequence[Tensor | None] | None = None) -> Sequence[Any]:
        """Return the gradients that backward gives with one variable replaced."""
        bench = self.bench
        bench.held, bench.replaced = {}, replaced
        assert bench.backward is not None
        try:
            with backward_replaced(self.node, bench.backward):
                return pull(bench.problem, self.outputs, self.v if v is None else v)
        finally:
            bench.replaced = None

    @cached_property
    def values(self) -> list[tuple[int, Any, str]]:
        """The variables of backward that are tensors, and its conditions, as they came: number, value, kind."""
        self.run(None)
        here = dict(self.bench.held)
        self.run(None, cotangents(self.bench.problem, self.outputs, self.bench.problem.seed + 97))
        there = self.bench.held
        found: list[tuple[int, Any, str]] = []
        for number, value in here.items():
            if self.bench.sites[number].condition and not isinstance(value, Tensor):
                found.append((number, bool(value), "value"))
            elif isinstance(value, (int, float)):
                found.append((number, value, "number"))
            elif isinstance(value, Tensor) and value.numel():
                moves = not isinstance(there.get(number), Tensor) or not torch.equal(value, there[number])
                found.append((number, value, "gradient" if moves else "value"))
        return found

    def equals(self, number: int, other: Tensor | None) -> bool:
        """Return True if a variable has the elements of a tensor."""
        value = self.seen(number)
        if not isinstance(value, Tensor) or other is None:
            return False
        laid = _laid_out(other, value)
        return laid is not None and equal(value, laid, self.rel)

    def seen(self, number: int) -> Any:
        """Return a variable, or a condition, as it came."""
        return next((value for k, value, _ in self.values if k == number), None)

    def named_so(self, name: str, value: Any) -> bool:
        """Return True for a number that forward calls so, or is given under this name."""
        own = (x for k, x in self.known.items() if self.bench.labels[k][0] == name)
        given = (
            x for label, x in zip(self.bench.problem.input_names, self.outputs.inputs, strict=False) if label == name
        )
        return isinstance(value, (int, float)) and any(type(x) is type(value) and x == value for x in (*own, *given))

    def pool(self, kind: str, value: Tensor) -> list[tuple[Key, Tensor]]:
        """Return what may belong in the place of a variable: of its kind and number of elements, each tensor once."""
        found: list[tuple[Key, Tensor]] = []
        for key, tensor in self.candidates.items():
            laid = _laid_out(tensor, value) if key[0] == kind or (key[0], kind) == ("derivative", "value") else None
            if laid is not None and not any(torch.equal(laid, other) for _, other in found):
                found.append((key, laid))
        return sorted(found, key=lambda item: (item[1].shape != value.shape, self.bench.expression(item[0])[0] == ""))

    def is_saved(self, tensor: Tensor) -> bool:
        """Return True for a value that ctx holds."""
        held = [t for _, t in tensors_on_ctx(self.bench.problem, self.node)]
        return any(t.shape == tensor.shape and t.dtype == tensor.dtype and torch.equal(t, tensor) for t in held)

    def is_whole(self, tensor: Tensor) -> bool:
        """Return True for what is the right gradient of the input itself."""
        right = self.right[self.bench.which]
        if right is None or right.numel() != tensor.numel() or right.dtype != tensor.dtype:
            return False
        return equal(tensor.reshape(right.shape), right, self.rel)

    def mended(self, number: int, tensor: Any) -> bool:
        """Return True if the gradient is right with this value, and no other is worse than before."""
        with users_errors() as guard:
            got = self.run((number, tensor))
        if guard.failed:
            return False
        which = self.bench.which
        return self._right(got, which) and all(
            self._right(got, k) or agree_relative(got[k], self.gradients[k], self.rel)
            for k in range(len(got))
            if k != which
        )

    @property
    def several(self) -> bool:
        """Return True where the gradients of several inputs are wrong."""
        return sum(not self._right(self.gradients, k) for k in range(len(self.gradients))) > 1

    def alone_wrong(self, number: int) -> bool:
        """Return True for a variable with whose values all that is wrong changes, and nothing that is right."""

        def other(value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.dtype.is_floating_point | value.dtype.is_complex:
                return value
            noise = torch.rand(value.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
            return 0.7 * value + (noise * (float(value.abs().mean()) + 1)).to(value.dtype)

        with users_errors() as guard:
            got = self.run((number, other))
        if guard.failed:
            return False
        for k, (now, was) in enumerate(zip(got, self.gradients, strict=True)):
            if self._right(self.gradients, k) != agree_relative(now, was, 0.0):
                return False
        return True

    def is_returned(self, number: int) -> bool:
        """Return True if whatever value a variable has is the gradient that comes out."""
        value = self.seen(number)
        return isinstance(value, Tensor) and self.returned(number, value)

    def returned(self, number: int, tensor: Tensor) -> bool:
        """Return True if whatever value a variable has is the gradient that comes out."""
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        other = tensor + noise.to(tensor)
        with users_errors() as guard:
            got = self.run((number, other))[self.bench.which]
        if guard.failed:
            return False
        return got is not None and got.numel() == other.numel() and equal(got.reshape(other.shape), other, self.rel)

    def borne_out(self, number: int, key: Key) -> bool:
        """Return True if what mends the gradient elsewhere does so here."""
        laid = self._laid(number, key)
        return laid is not None and self.mended(number, laid)

    def _laid(self, number: int, key: Key) -> Tensor | None:
        tensor = self.candidates.get(key)
        self.run(None)
        value = self.bench.held.get(number)
        return _laid_out(tensor, value) if tensor is not None and isinstance(value, Tensor) else None

    def _right(self, gradients: Sequence[Any], which: int) -> bool:
        return agree_relative(gradients[which], self.right[which], self.rel)


def _laid_out(tensor: Tensor, like: Tensor) -> Tensor | None:
    """Return a tensor in the shape of another, where it has as many elements in the same order, or transposed."""
    if tensor.dtype != like.dtype or tensor.numel() != like.numel():
        return None
    if tensor.dim() == like.dim() > 1 and tensor.shape != like.shape:
        return tensor.mT if tensor.mT.shape == like.shape else None
    return tensor.reshape(like.shape)


def equal(a: Tensor, b: Tensor, rel: float) -> bool:
    """Compare two tensors within a relative difference; of whole numbers and masks exactly."""
    return agree_relative(a.detach(), b, rel) if a.is_floating_point() or a.is_complex() else torch.equal(a, b)
