"""Point: one call of what is checked, and all that is known there of its gradients, each computed when first asked for.

Hypotheses, shares, edits and relations ask the same points, so that a call, autograd of the forward or a difference is
made once whoever asks for it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import (
    backward_replaced,
    cotangents,
    gradient_tolerance,
    on_a_graph,
    own_node,
    pull,
    tensors_on_ctx,
)
from nbautograd.core.checking.directional import DirectionalDerivative, borne_out, directional_derivative
from nbautograd.core.checking.jacobian.forward_values import by_autograd
from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Outputs, Problem, pullback
from nbautograd.core.forks import cached
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.numerics.constants import SIGNIFICANT
from nbautograd.core.stumbles import users_errors

Gradients = tuple[Tensor | None, ...]
Item = TypeVar("Item")
BORNE_OUT_ELEMENTS = 20_000  # in and out; above, one difference sums up so many terms that rounding hides a wrong one
SURE = 0.1  # how surely a slope has to be known, in what a right gradient may differ from it by


@dataclass(frozen=True)
class PointKind:
    """What tells the points of a kind from the inputs given, and what a wrong gradient there proves.

    Attributes:
        name: of the kind.
        sized: True when only a size differs.
        ranked: True when inputs have a dimension more, or less.
        far: True where backward may not have been made for such inputs: sizes of one, values of both signs.
        foreign: True where the Function may not have been written for such a call: of the edits that are wrong there
            only those that spoil what was right are refuted.
    """

    name: str
    sized: bool = False
    ranked: bool = False
    far: bool = False
    foreign: bool = False


GIVEN = PointKind("given")


class Once(Generic[Item]):
    """Items made as they are asked for, each once, to be gone through more than once."""

    def __init__(self, source: Iterator[Item]) -> None:
        self._source, self._known = source, list[Item]()

    def __iter__(self) -> Iterator[Item]:
        for k in itertools.count():
            if k == len(self._known):
                item = next(self._source, None)
                if item is None:
                    return
                self._known.append(item)
            yield self._known[k]


class Point:
    """One call of a problem, with cotangents of its own.

    Args:
        problem: what is called; another than the one checked where an argument inside a callable is another.
        inputs: of the call.
        kind: what is another there than at the inputs given.
        seed: of the cotangents and of the directions in which gradients are compared.
        symmetric: numbers of the differentiable inputs that forward reads as symmetric matrices.
        base: the point whose call this one shares, for other cotangents.
        arrange: makes the cotangents of the ones drawn.
    """

    def __init__(
        self,
        problem: Problem,
        inputs: tuple[Any, ...],
        kind: PointKind = GIVEN,
        seed: int = 0,
        symmetric: frozenset[int] = frozenset(),
        *,
        base: Point | None = None,
        arrange: Callable[[int, Tensor], Tensor | None] | None = None,
    ) -> None:
        self.problem, self.inputs, self.kind = problem, inputs, kind
        self.seed, self.symmetric = seed, symmetric
        self._base, self._arrange = base or self, arrange
        self._derivatives: dict[int, DirectionalDerivative | None] = {}
        self._versions: list[tuple[Tensor, int]] = []
        self._through: dict[int, Point] = {}

    @property
    def outputs(self) -> Outputs | None:
        """The outputs, with their graph; None where forward raises."""
        return self._base._called

    @cached
    def _called(self) -> Outputs | None:
        with users_errors() as guard:
            outputs = self.problem.call(tuple(map(copy, self.inputs)))  # backward may write into what it gets
        return None if guard.failed else outputs

    @property
    def works(self) -> bool:
        """True where forward takes these inputs, and something in it can be differentiated."""
        return self.outputs is not None and any(y.requires_grad for y in self.outputs)

    @property
    def finite(self) -> bool:
        """True where forward takes these inputs, and all that comes out is finite."""
        return self.outputs is not None and all(bool(torch.isfinite(y.detach()).all()) for y in self.outputs)

    @property
    def node(self) -> Any:
        """The Function's node in the graph; None where there is none, or more than one."""
        return None if self.outputs is None else own_node(self.problem, self.outputs)

    @property
    def elements(self) -> int:
        """Count the elements of the tensors that go in and come out."""
        return sum(t.numel() for t in (*(self.outputs or ()), *self.inputs) if isinstance(t, Tensor))

    @cached
    def v(self) -> list[Tensor | None]:
        """The cotangents."""
        if self.outputs is None:
            return []
        drawn = cotangents(self.problem, self.outputs, self.seed)
        arrange = self._arrange
        return drawn if arrange is None else [None if c is None else arrange(k, c) for k, c in enumerate(drawn)]

    def arranged(self, arrange: Callable[[int, Tensor], Tensor | None]) -> Point:
        """Return the same call with other cotangents."""
        return Point(self.problem, self.inputs, self.kind, self.seed, self.symmetric, base=self._base, arrange=arrange)

    def redrawn(self) -> Point:
        """Return the same call with other random cotangents, arranged alike."""
        seed, base = draws.child(self.seed, "redrawn"), self._base
        return Point(self.problem, self.inputs, self.kind, seed, self.symmetric, base=base, arrange=self._arrange)

    def through(self, output: int) -> Point:
        """Return the same call with a cotangent at one output only: itself where no other output can take one."""
        if self.outputs is None or self.problem.differentiable_outputs(self.outputs) == (output,):
            return self
        if output not in self._through:
            self._through[output] = self.arranged(lambda k, c: c if k == output else None)
        return self._through[output]

    @cached
    def rel(self) -> float:
        """Relative difference up to which two gradients are the same."""
        assert self.outputs is not None
        return max(SIGNIFICANT, gradient_tolerance(self.outputs, self.problem.inputs))

    def pull(self, backward: Callable[..., Any] | None = None) -> Gradients:
        """Return what a backward gives, by default the user's own; the call is made anew if that changed a tensor.

        The user's own that raises is asked at a call made anew: it may free what it reads, and so run once for each.

        Raises:
            Exception: what the backward raises.
        """
        assert self.outputs is not None
        base, problem = self._base, self.problem
        base._versions = base._versions or base._reached()

        def run(call: Outputs) -> Gradients:
            put = backward_replaced(own_node(problem, call), backward) if backward else contextlib.nullcontext()
            with put:
                return pull(problem, call, self.v, anew=False)

        try:
            return on_a_graph(problem, self.outputs, run, again=backward is None)
        finally:
            if any(t._version != version for t, version in base._versions):
                base.renew()  # the next backward is not to meet what this one left

    @cached
    def gradients(self) -> Gradients | None:
        """What the user's own backward gives; None where it raises, or forward did."""
        if self.outputs is None:
            return None
        with users_errors() as guard:
            found = self.pull()
        return None if guard.failed else found

    def renew(self) -> None:
        """Make the call again on copies of its inputs."""
        base = self._base
        base._called = self.problem.call(tuple(map(copy, base.inputs)))
        base._versions = base._reached()

    def _reached(self) -> list[tuple[Tensor, int]]:
        assert self.outputs is not None
        items = (*self.outputs, *self.outputs.inputs, *(t for _, t in tensors_on_ctx(self.problem, self.node)))
        return [(t, t._version) for t in items if isinstance(t, Tensor) and not t.is_inference()]

    @cached
    def _forward_run(self) -> tuple[Any, ...] | None:
        with users_errors():
            return None if self.outputs is None else by_autograd(self.problem, self.outputs)
        return None

    def gradients_of(self, found: tuple[Any, ...] | None) -> Gradients | None:
        """Return the gradients by autograd of a forward: of its leaves for its outputs."""
        if found is None:
            return None
        with users_errors():
            return pullback(found[1], [found[0][i] for i in self.problem.differentiable], self.v)
        return None

    @cached
    def right(self) -> Gradients | None:
        """The gradients by autograd of the forward; None where it cannot be run so. See ``trusts``."""
        return self.gradients_of(self._base._forward_run)

    def derivative(self, which: int) -> DirectionalDerivative | None:
        """Return the derivative in a direction of this point, in which all elements move; None where it is not clear.

        By autograd of the forward where one difference bears it out, else by differences.
        """
        if self.outputs is None:
            return None
        with users_errors():  # forward may refuse a step from a point that it takes
            if not self._derivatives and self.elements <= BORNE_OUT_ELEMENTS and self.right is not None:
                found = borne_out(self.problem, self.outputs, self.v, self.right, self.seed, self.symmetric)
                self._derivatives.update(found)
            if which not in self._derivatives:
                self._derivatives[which] = directional_derivative(
                    self.problem, self.outputs.inputs, which, self.v, self.seed,
                    symmetric=which in self.symmetric, enough=SURE,
                )  # fmt: skip
        return self._derivatives.setdefault(which, None)

    def is_right(self, which: int, gradient: Tensor | None) -> bool | None:
        """Compare a gradient with the forward in a direction of this point; None where differences tell nothing.

        Each point has its own direction: what is wrong anywhere shows at most points.
        """
        asked = self.derivative(which)
        if asked is None:
            return None
        same = asked.agrees(gradient)
        twice = same and gradient is not None and bool(gradient.any()) and asked.agrees(2 * gradient)
        return None if twice else same  # what agrees with twice as much confirms nothing

    def trusts(self, which: int) -> bool:
        """Return True where differences bear out autograd of the forward for an input."""
        asked = None if self.right is None else self.derivative(which)
        return asked is not None and self.right is not None and asked.agrees(self.right[which])

    def wrong(self, which: int) -> bool:
        """Return True where autograd of the forward is right, and the user's own backward gives something else."""
        if self.gradients is None or not self.trusts(which) or self.right is None or self.right[which] is None:
            return False
        return not agree_relative(self.gradients[which], self.right[which], self.rel)


@dataclass
class PointSource:
    """Makes the points of one kind.

    Attributes:
        problem: what is checked.
        kind: of the points.
        seed: of their values.
        symmetric: numbers of the differentiable inputs that forward reads as symmetric matrices.
        fair: makes inputs fair arguments: bounds in their order, symmetric what is read so.
    """

    problem: Problem
    kind: PointKind
    seed: int
    symmetric: frozenset[int] = frozenset()
    fair: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple
    _count: Iterator[int] = field(default_factory=itertools.count)

    def point(self, inputs: Iterable[Any], problem: Problem | None = None, kind: PointKind | None = None) -> Point:
        """Return a point at these inputs, whether forward takes them or not."""
        given, seed = self.fair(tuple(inputs)), draws.child(self.seed, next(self._count))
        return Point(problem or self.problem, given, kind or self.kind, seed, self.symmetric)

    def working(
        self, inputs: Iterable[Any], problem: Problem | None = None, kind: PointKind | None = None
    ) -> Point | None:
        """Return a point at these inputs; None where forward does not take them."""
        made = self.point(inputs, problem, kind)
        return made if made.works else None
