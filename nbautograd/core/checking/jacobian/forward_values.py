"""Forward: the function's values at many points near the inputs, for finite differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core import pytrees, stumbles
from nbautograd.core.checking import prepared_inputs
from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.problem import Outputs, Problem, pullback, separate_context
from nbautograd.core.checking.progress import Progress
from nbautograd.core.forks import cached
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import (
    Array,
    as_array,
    epsilon,
    from_array,
    real_shape,
    real_size,
    to_array,
    to_real,
)
from nbautograd.core.numerics.compare import agree_within, agree_within_rounding
from nbautograd.core.numerics.constants import ERROR_BARS
from nbautograd.core.stumbles import RAISED, hands_over, is_ours, users_errors
from nbautograd.core.torch_private.casts import CastWatch, spacing
from nbautograd.core.torch_private.ctx import apply_replaced
from nbautograd.core.torch_private.tensors import vmap


class StubContext:
    """A ctx that accepts whatever a forward puts on it and does nothing.

    Attributes:
        needs_input_grad: one bool per argument of forward.
        to_save, dirty_tensors: what was saved and marked, by the names that recording reads from a real ctx.
    """

    # the dict has what the user puts there
    __slots__ = ("__dict__", "__weakref__", "dirty_tensors", "needs_input_grad", "to_save")

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Return what was saved, as ctx gives it to backward."""
        return self.to_save

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep the tensors, as ctx would."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Do nothing."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Keep which tensors are marked."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Do nothing."""

    def set_materialize_grads(self, value: bool) -> None:
        """Do nothing."""


@hands_over
def forward_without_autograd(
    problem: Problem, forward: Callable[..., Any] | None = None
) -> Callable[..., tuple[Any, ...]] | None:
    """Return the forward as a plain function from the problem's inputs to a tuple of outputs; None where there is none.

    For a Function class this is its ``forward`` with a stand-in ctx; for a callable in whose graph no Function was
    seen it is the callable; a callable around one Function class is run with that class's forward in place of its
    ``apply``, in this thread.

    Args:
        forward: takes the place of the class's own; by default that.
    """
    if problem.cls is None:
        return (
            None if problem.has_functions else lambda *args: tuple(pytrees.tensors(problem.fn(*problem.handed(args))))
        )
    cls = problem.cls
    forward = forward or getattr(cls, "forward", None)
    if forward is None:
        return None
    separate = separate_context(cls)

    def alone(*args: Any) -> Any:
        needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        return forward(*args) if separate else forward(StubContext(needs), *args)

    def within(*args: Any) -> tuple[Any, ...]:
        with apply_replaced(cls, alone, transformed=True):
            return tuple(pytrees.tensors(problem.fn(*problem.handed(args))))

    return (lambda *args: tuple(pytrees.tensors(alone(*problem.handed(args))))) if problem.direct else within


def by_autograd(
    problem: Problem, outputs: Outputs, forward: Callable[..., Any] | None = None
) -> tuple[Any, ...] | None:
    """Run a forward with autograd at the inputs of a call; return its leaves and outputs, None where it cannot be.

    Args:
        forward: takes the place of the class's own, which stays as it is.
    """
    run = forward_without_autograd(problem, forward)
    if run is None:
        return None
    leaves = [x.detach().clone() if isinstance(x, Tensor) else x for x in outputs.inputs]
    for i in problem.differentiable:
        leaves[i].requires_grad_()
    problem.numbers.seed(problem.seed)
    with torch.enable_grad():
        return leaves, run(*leaves)


def gradients_of_forward(
    problem: Problem, outputs: Outputs, v: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...] | None:
    """Return the gradients of the differentiable inputs by autograd of the forward; None where it cannot be run so."""
    with users_errors():
        found = by_autograd(problem, outputs)
        return None if found is None else pullback(found[1], [found[0][i] for i in problem.differentiable], v)
    return None


BATCH_ELEMENTS = 2_000_000  # of the points that one call under vmap gets: 16 MB of doubles
KEPT_ELEMENTS = 1_000_000  # of points whose values for all outputs are kept, as each is asked for by itself
CHUNK_ELEMENTS = 4_000_000  # of points and values together
BATCH_ROUNDINGS = 1e3  # spacings that a value may be off by, computed in another order or in higher precision
MOVES = 4  # pairs of opposite ones of all inputs, by a last bit
LOOPED_POINTS = 6  # up to so many points a loop is faster than a batch


class Forward:
    """Values of the differentiable outputs when one input is moved.

    Inputs of lower precision are promoted to float64 where the function accepts that and answers in float64: then
    differences are as sharp as for float64 inputs.

    Attributes:
        promoted: True when the values are computed in float64 though the inputs are not float64.
        eps: spacing of the floating numbers that the values are computed with, the coarsest that they pass through.
        inside: spacing of those that values are rounded to on the way; 0 where they are not.
        points: the input values by position among ``problem.differentiable``, float64, shaped ``real_shape``.
        values: the outputs at the inputs.
        raised: what the function raised at the first point that it did not take; empty when it took all.
    """

    def __init__(
        self, problem: Problem, outputs: Outputs, wanted: tuple[int, ...], progress: Progress | None = None
    ) -> None:
        self.progress = progress or Progress()
        self.raised = ""
        self.problem, self.wanted = problem, wanted
        self.shapes = [real_shape(outputs[i]) for i in wanted]
        # as flagged as the caller's: a forward may ask which of its inputs require grad, and branch
        self.base = tuple(prepared_inputs.copy(item) for item in problem.inputs)
        self.inside = problem.casts.forward  # spacing of the coarsest numbers that values pass through
        self.promoted = self._promote(outputs)
        self.tensors = [self.base[i] for i in problem.differentiable]
        self.eps = max(self.inside, *map(epsilon, self.tensors))
        self.points = [to_array(t) for t in self.tensors]
        self.values = (
            self._one(0, self.points[0])
            if self.promoted
            else [_whole(to_array(outputs[i]), outputs[i]) for i in wanted]
        )
        self._last: dict[int, tuple[Array, list[Array]]] = {}
        self._evaluations = 0
        self._batched: Callable[..., Any] | None = forward_without_autograd(problem)

    @property
    def batched(self) -> bool:
        """True where many points are evaluated at once, as far as is known."""
        return self._batched is not None

    @property
    def left(self) -> int:
        """Number of points and cotangents left of a plain check: two of each per element."""
        whole = 2 * sum(p.size for p in self.points) + 2 * sum(map(math.prod, self.shapes))
        return max(0, whole - self._evaluations)

    @cached
    def noise(self) -> list[Array]:
        """Difference of two calls at the same point, per wanted output; taken when first read."""
        repeated = self._one(0, self.points[0])
        with np.errstate(invalid="ignore"):
            return [np.abs(np.nan_to_num(a - b)) for a, b in zip(self.values, repeated, strict=True)]

    def rounded(self, which: int, points: Array) -> Array:
        """Return the points as the input's dtype can represent them."""
        dtype = self.tensors[which].dtype.to_real()
        return points if dtype is torch.float64 else torch.from_numpy(points).to(dtype).to(torch.float64).numpy()

    def at(self, which: int, points: Array) -> list[Array]:
        """Return the wanted outputs for many values of one input.

        Args:
            which: position among the differentiable inputs.
            points: values of that input, shaped (k, *its real shape).

        Returns:
            For each wanted output an array (k, *its real shape); NaN where the function raised.
        """
        known = self._last.get(which)
        if known is not None and np.array_equal(known[0], points, equal_nan=True):
            return known[1]  # asked for another output before
        each = real_size(self.tensors[which]) + sum(map(math.prod, self.shapes))
        step = max(1, allowed_elements(BATCH_ELEMENTS) // max(1, each))
        chunks = []
        for start in range(0, len(points), step):
            chunks.append(self._chunk(which, points[start : start + step]))  # noqa: PERF401 (one frame less)
        answers = chunks[0] if len(chunks) == 1 else [np.concatenate(column) for column in zip(*chunks, strict=True)]
        if len(self.wanted) > 1 and len(points) * each < allowed_elements(KEPT_ELEMENTS):
            self._last[which] = points.copy(), answers
        return answers

    def _chunk(self, which: int, points: Array) -> list[Array]:
        if self._batched is not None and len(points) > LOOPED_POINTS:
            with users_errors():  # no batching rule for something in the forward
                answers = self._vmapped(which, points)
                if self._agrees(which, points, answers):
                    self.progress.tick(len(points))
                    return answers
            self._batched = None
        each = []
        for point in points:
            each.append(self._one(which, point))
            self._evaluations += 1
            self.progress.tick()
        return [np.stack(column) for column in zip(*each, strict=True)]

    def _agrees(self, which: int, points: Array, answers: list[Array]) -> bool:
        last = self._one(which, points[-1])
        return all(
            agree_within_rounding(b, a[-1], BATCH_ROUNDINGS * self.eps, floor=1.0)
            for a, b in zip(answers, last, strict=True)
        )

    def _vmapped(self, which: int, points: Array) -> list[Array]:
        assert self._batched is not None
        position = self.problem.differentiable[which]
        given, points = self._to_give(points)
        batch = from_array(points, self.tensors[which])
        axes = tuple(0 if i == position else None for i in range(len(given)))
        given[position] = batch.reshape(-1, *self.tensors[which].shape)
        self.problem.meter.count()
        with torch.no_grad():
            found = vmap(self._batched, axes, *given)
        return [_whole(as_array(to_real(found[i])), found[i]) for i in self.wanted]

    def _one(self, which: int, point: Array) -> list[Array]:
        position = self.problem.differentiable[which]
        given, point = self._to_give(point)
        moved, like = from_array(point, self.tensors[which]), self.tensors[which]
        if moved.stride() != like.stride() and like.layout is torch.strided:
            moved = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device).copy_(moved)
        given[position] = moved.requires_grad_()
        try:
            with torch.no_grad():
                found = self.problem.evaluate(tuple(given))
        except RAISED as error:
            if is_ours(error):
                raise
            self.raised = self.raised or f"{type(error).__name__}: {' '.join(stumbles.said(error).split())}"
            return [np.full(shape, np.nan) for shape in self.shapes]
        picked = [found[i] if i < len(found) else None for i in self.wanted]
        return [_value(t, shape) for t, shape in zip(picked, self.shapes, strict=True)]

    def _to_give(self, points: Array) -> tuple[list[Any], Array]:
        if not self.problem.mutates_inputs:
            return list(self.base), points
        return [prepared_inputs.copy(item) for item in self.base], points.copy()

    def _promote(self, outputs: Outputs) -> bool:
        if all(not isinstance(t, Tensor) or _is_double(t) for t in self.base):
            return False
        higher = tuple(map(prepared_inputs.in_double, self.base))
        same = False
        with users_errors():  # also where it takes no inputs a last bit away
            given = tuple(prepared_inputs.copy(item) for item in higher)
            with torch.no_grad(), CastWatch(given) as watch:
                found = self.problem.evaluate(given)
            same = len(found) == len(outputs) and self._same(higher, found, outputs)
        if not same:
            return False
        inside = spacing(watch.behind([found[i] for i in self.wanted]))
        if inside >= max(epsilon(t) for t in self.base if isinstance(t, Tensor) and not _is_double(t)):
            return False  # it rounds inside as if nothing had been promoted
        self.base, self.inside = higher, inside
        return True

    def _same(self, inputs: tuple[Any, ...], high: Sequence[Tensor], low: Sequence[Tensor]) -> bool:
        """Compare the values in float64 with those in lower precision, up to the rounding of these.

        Such a value may be off by some of its own last bits, and by what a last bit of the inputs makes of it: the
        first operation rounds by as much (backward stability; Higham, N. J. (2002), Accuracy and Stability of
        Numerical Algorithms, section 1.5). Of two opposite moves of the inputs the lesser change counts, since the
        other one may cross a jump.
        """
        pairs = [(high[i], low[i]) for i in self.wanted]
        if not all(_is_double(a) and not _is_double(b) and a.shape == b.shape for a, b in pairs):
            return False  # some are not in float64, or are so otherwise as well
        exact, rough = ([to_array(outputs[i]) for i in self.wanted] for outputs in (high, low))
        bounds = [BATCH_ROUNDINGS * epsilon(b) for _, b in pairs]
        if all(map(agree_within_rounding, exact, rough, bounds)):
            return True
        blur = [np.zeros(values.shape) for values in exact]
        for turn in range(MOVES):
            up, down = (self._changes(inputs, exact, turn, sign) for sign in (1.0, -1.0))
            blur = [np.fmax(known, np.fmin(a, b)) for known, a, b in zip(blur, up, down, strict=True)]
        by_entry = zip(exact, rough, blur, bounds, strict=True)
        return all(
            agree_within(a, b, np.maximum(ERROR_BARS * c, bound * np.abs(a))).all() for a, b, c, bound in by_entry
        )

    def _changes(self, inputs: tuple[Any, ...], values: list[Array], turn: int, sign: float) -> list[Array]:
        """Return how far the values move when each number of the inputs moves by a last bit of what it was given in."""
        random, moved = draws.generator(self.problem.seed, "last bits", turn), []
        for given, item in zip(self.base, inputs, strict=True):
            if item is given:
                moved.append(prepared_inputs.copy(item))
                continue
            signs = torch.randint(0, 2, item.shape, generator=random).to(item.device) * 2 - 1
            moved.append((item.detach() * (1 + sign * epsilon(given) * signs)).requires_grad_(item.requires_grad))
        with torch.no_grad():
            found = self.problem.evaluate(tuple(moved))
        return [np.abs(to_array(found[i]) - here) for i, here in zip(self.wanted, values, strict=True)]


class Window:
    """A window on the Jacobian: perturb some elements of one input only, observe some of one output only.

    Args:
        ij: numbers of output and input among the differentiable ones.
        rows, cols: the chosen elements of the output and of the input.
    """

    def __init__(self, forward: Forward, ij: tuple[int, int], rows: Array, cols: Array) -> None:
        self.whole, self.ij, self.rows, self.cols = forward, ij, rows, cols
        i, j = ij
        self.eps, self.promoted, self.inside = forward.eps, forward.promoted, forward.inside
        self.points = {j: forward.points[j].reshape(-1)[cols]}
        self.values = {i: forward.values[i].reshape(-1)[rows]}
        self.noise = {i: forward.noise[i].reshape(-1)[rows]}
        each = forward.points[j].size + forward.values[i].size
        self.together = max(1, allowed_elements(CHUNK_ELEMENTS) // max(1, each))  # whole inputs are long

    @property
    def batched(self) -> bool:
        """True where many points are evaluated at once."""
        return self.whole.batched

    @property
    def left(self) -> int:
        """Number of points left of a plain check."""
        return self.whole.left

    def rounded(self, which: int, points: Array) -> Array:
        """Return the points as the input's dtype can represent them."""
        return self.whole.rounded(which, points)

    def at(self, which: int, points: Array) -> dict[int, Array]:
        """Return the chosen elements of the output for many values of the chosen elements of the input."""
        i, base = self.ij[0], self.whole.points[which]
        values = np.empty((len(points), len(self.rows)))
        full = np.repeat(base.reshape(1, -1), min(self.together, len(points)), axis=0)
        for start in range(0, len(points), self.together):
            part = slice(start, start + self.together)
            full = full[: len(points[part])]
            full[:, self.cols] = points[part]
            found = self.whole.at(which, full.reshape(-1, *base.shape))[i]
            values[part] = found.reshape(len(full), -1)[:, self.rows]
        return {i: values}


Values = Forward | Window  # of a function for finite differences


def _value(tensor: Tensor | None, shape: tuple[int, ...]) -> Array:
    if tensor is None or real_shape(tensor) != shape:
        return np.full(shape, np.nan)
    return _whole(to_array(tensor), tensor)


def _whole(found: Array, tensor: Tensor) -> Array:
    """Return the real numbers of a tensor; of a complex one that is not finite neither part is."""
    if not tensor.is_complex():
        return found
    return np.where(np.isfinite(found).all(-1, keepdims=True), found, found.sum(-1, keepdims=True))


def _is_double(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex()) or tensor.dtype in prepared_inputs.DOUBLE
