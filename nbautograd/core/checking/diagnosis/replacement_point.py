"""A call at which variables of backward are replaced: what is right there, and what mends its gradients."""

from __future__ import annotations

import functools
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

SOLVED = 64  # elements of a condition up to which it is solved where to turn it over
SPARE = 2  # elements of gradients at each place beyond those of a variable that is solved for
ARRIVING = 3  # cotangents for which the same numbers have to mend the gradients
NEWTON, NEAR = 4, 1e-4  # steps of Newton's method, and the differences they are found by

Arrival = tuple[Sequence[Tensor | None], Sequence[Tensor | None]]  # for the outputs, and the gradients that are right


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

    def turned_over(self, number: int) -> tuple[int, int, set[bool]] | None:
        """Turn a condition over where it mends the gradient; return at how many elements, of how many, and its values.

        The values are those that it has then where they matter: what is computed on these ways is right. A gradient is
        linear in each element of a mask: the change of each is tried, and which of them add up to the right gradients
        is solved for. There must be no other way to make them up, and whatever arrives must be served.
        """
        self.run(None)
        value = self.bench.held.get(number)
        if not isinstance(value, Tensor):
            mends = value is not None and self.mended(number, not value) and self.holds(number, not value)
            nothing = self.gradients[self.bench.which] is None  # comes on the way that is taken
            return (1, 1, {not value} | ({bool(value)} if nothing else set())) if mends else None
        if value.numel() > SOLVED:
            return None
        wrong = [k for k in range(len(self.gradients)) if not self._right(self.gradients, k)]
        base = self._flat(self.gradients, wrong)
        rest = (self._flat(self.right, wrong) - base)[:, None]
        columns = []
        for k in range(value.numel()):
            changed = value.clone().reshape(-1)
            changed[k] = ~changed[k]
            columns.append(self._flat(self.run((number, changed.reshape(value.shape))), wrong) - base)
        matrix = torch.stack(columns, 1)
        moves = (matrix != 0).any(0)
        if not bool(matrix.isfinite().all()) or int(torch.linalg.matrix_rank(matrix)) < int(moves.sum()):
            return None
        steps = torch.linalg.lstsq(matrix, rest, driver="gelsd").solution[:, 0]
        other = value ^ (steps > 0.5).reshape(value.shape)
        mends = self.mended(number, other) and self.holds(number, other)
        taken = {bool(way) for way in other.reshape(-1)[moves].unique()}
        return (int((other != value).sum()), value.numel(), taken) if mends else None

    def held(self, number: int) -> Tensor | None:
        """Return the value of a variable, where it is a tensor of few numbers."""
        value = self.seen(number)
        if not isinstance(value, Tensor) or not value.dtype.is_floating_point | value.dtype.is_complex:
            return None
        return value.detach() if 0 < value.numel() <= SOLVED else None

    def fixed(self, number: int) -> bool:
        """Return True for a variable that does not vary with what arrives."""
        return any(k == number and kind == "value" for k, _, kind in self.values)

    @cached_property
    def arriving(self) -> list[Arrival]:
        """Cotangents for the outputs, each with the right gradients: as many as tell more, and one beyond."""
        problem, (leaves, outputs) = self.bench.problem, self.forward
        most = min(ARRIVING, sum(y.numel() for y in outputs))
        vs = [self.v, *(cotangents(problem, self.outputs, problem.seed + k) for k in range(98, 98 + most))]
        own = [leaves[i] for i in problem.differentiable]
        return [(v, pullback(outputs, own, v)) for v in vs]

    def mends(self, number: int, change: Tensor, arriving: Sequence[Arrival]) -> bool:
        """Return True if with a variable changed so all gradients are right for all of this."""
        replaced = number, functools.partial(self._changed, number, change)
        got = ((self.run(replaced, v), right) for v, right in arriving)
        return all(
            agree_relative(a, b, self.rel) for gradients, right in got for a, b in zip(gradients, right, strict=True)
        )

    def _changed(self, number: int, change: Tensor, value: Tensor) -> Tensor:
        """Return a variable with a number added to each element, or, where it varies with what arrives, times one."""
        by = change.reshape(value.shape).to(value.real.dtype)
        return value + by if self.fixed(number) else value * (1 + by)

    def mending(self, number: int, arriving: Sequence[Arrival], spare: int = SPARE) -> Tensor | None:
        """Return the change of a variable that mends all gradients of more elements than it has; None without any.

        Args:
            number: of the variable.
            arriving: for which the same change has to.
            spare: how many more elements there have to be.
        """
        value, every = self.held(number), range(len(self.gradients))
        if value is None or (value.is_complex() and self.fixed(number)):
            return None
        size = (float(value.abs().max()) or 1.0) if self.fixed(number) else 1.0
        solved = arriving[: max(1, len(arriving) - 1)]
        rights = torch.cat([self._flat(right, every) for _, right in solved])

        def got(change: Tensor) -> Tensor:
            self.bench.runs -= len(solved)
            replaced = number, functools.partial(self._changed, number, change)
            return torch.cat([self._flat(self.run(replaced, v), every) for v, _ in solved])

        change: Tensor = torch.zeros(value.numel(), dtype=torch.float64)
        with users_errors():
            base = got(change)
            wrong = (base - rights).abs() > self.rel * rights.abs().max()
            if bool((got(change + 0.3 * size) == base)[wrong].any()):
                return None  # something that is wrong does not depend on it
            for _ in range(NEWTON):
                if self.bench.runs < len(change) * len(solved):
                    return None
                unit = NEAR * size * torch.eye(len(change), dtype=torch.float64)
                matrix = torch.stack([(got(change + e) - base) / (NEAR * size) for e in unit], 1)
                alive = (matrix != 0).any(0)
                if int((matrix != 0).any(1).sum()) - int(alive.sum()) < spare or not bool(matrix.isfinite().all()):
                    return None  # some numbers always fit
                before, rest = base, (rights - base)[:, None]
                change = change + torch.linalg.lstsq(matrix, rest, driver="gelsd").solution[:, 0]
                base = got(change)
                if not float((rights - base).norm()) < float((rights - before).norm()) / 2:
                    return None
                if self.mends(number, change, arriving):
                    return change
        return None

    def holds(self, number: int, value: Any) -> bool:
        """Return True if the gradient is right with this value whatever arrives for the outputs."""
        problem, (leaves, outputs) = self.bench.problem, self.forward
        for seed in (98, 99):
            v = cotangents(problem, self.outputs, problem.seed + seed)
            right = pullback(outputs, [leaves[self.bench.position]], v)[0]
            if not agree_relative(self.run((number, value), v)[self.bench.which], right, self.rel):
                return False
        return True

    def _flat(self, gradients: Sequence[Any], which: Sequence[int]) -> Tensor:
        """Return the gradients of these inputs as one row of real numbers; None as zeros."""
        leaves = self.bench.problem.differentiable
        likes = [self.outputs.inputs[leaves[k]] for k in which]
        parts = [
            torch.zeros_like(x) if gradients[k] is None else gradients[k] for k, x in zip(which, likes, strict=True)
        ]
        return torch.cat([(torch.view_as_real(t) if t.is_complex() else t).reshape(-1).double() for t in parts])

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

    def fits(self, number: int, spare: int = 0) -> bool:
        """Return True for a variable of which some values mend the gradients, perhaps others for whatever arrives."""
        return all(self.mending(number, [arrival], spare) is not None for arrival in self.arriving[:2])

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
