"""Stage: one point at which an edited backward is called, and must agree with the forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import (
    backward_replaced,
    cotangents,
    own_node,
    pull,
    tensors_on_ctx,
    user_backward,
)
from nbautograd.core.checking.directional import DirectionalDerivative, borne_out, directional_derivative
from nbautograd.core.checking.jacobian.forward_values import gradients_of_forward
from nbautograd.core.checking.other_points import Once, expanded, strided
from nbautograd.core.checking.prepared_inputs import copy
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.repair.bounds import BoundsError, Meter, Usage, reachable
from nbautograd.core.stumbles import hands_over, is_ours, users_errors

# for these the values are right, but something is changed that must stay as it is
TIDY = ("mutates_grad_output", "mutates_saved")
# for these the values are right, but only for gradients that lie in memory as usual
ODD: dict[str, Callable[[Tensor], Tensor]] = {"fails_noncontiguous_grad": expanded, "wrong_noncontiguous_grad": strided}


ELEMENTS = 20_000  # that make a call as dear as the call of something small
CALLS = 100  # of torch, likewise
ENOUGH = 0.1  # how surely a slope has to be known, in what a right gradient may differ from it by
ANOTHER_SHAPE = "another shape"  # of a gradient: the engine may sum it silently


Gradients = tuple[Tensor | None, ...]


@dataclass
class Stage:
    """One point at which an edited backward must agree with the forward.

    Attributes:
        problem: what is checked.
        outputs: of a call there, with their graph.
        node: the Function's node in it.
        v: the cotangents.
        seed: of the directions in which gradients are compared.
        tidy: True when grad_outputs and ctx must be left as they were.
        sized: True when only a size differs from the inputs given.
        ranked: True when inputs have a dimension more, or less, than those given.
        far: True where backward may not have been made for such inputs: sizes of one, values of both signs.
        foreign: True where the Function may not have been written for such a call: of the edits that are wrong there
            only those that spoil what was right are refuted.
        symmetric: numbers of the differentiable inputs that forward reads as symmetric matrices.
        usage: what the user's own backward takes here.
        original: the gradients it gives; None where it raises.
        raised: what it raises, as text.
    """

    problem: Problem
    outputs: Outputs
    node: Any
    v: Sequence[Tensor | None]
    seed: int
    tidy: bool = False
    sized: bool = False
    ranked: bool = False
    far: bool = False
    foreign: bool = False
    symmetric: frozenset[int] = frozenset()
    usage: Usage = field(default_factory=Usage)
    original: Gradients | None = None
    raised: str = ""
    _known: dict[int, DirectionalDerivative | None] = field(default_factory=dict)
    _larger: set[int] = field(default_factory=set)
    _outside: bool | None = None
    _changes: bool = False  # of grad_outputs or ctx, by the user's own backward
    _arguments: tuple[Any, ...] = ()
    _versions: list[tuple[Tensor, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        meter, self._arguments = Meter(), tuple(map(copy, self.outputs.inputs))
        self._versions = self._held()
        own = _watched(_noted(self.own, self._larger, self._shapes), self._changed)
        try:
            with backward_replaced(self.node, meter.around(own)):
                self.original = pull(self.problem, self.outputs, self.v)
        except Exception as error:
            if is_ours(error):
                raise
            self.raised = str(error)
        self.usage = meter.usage
        self._undo()

    @property
    def own(self) -> Callable[..., Any]:
        """The user's own backward."""
        return user_backward(type(self.node)._forward_cls)

    @property
    def elements(self) -> int:
        """Count the elements of the tensors that go in and come out."""
        return sum(t.numel() for t in (*self.outputs, *self.outputs.inputs) if isinstance(t, Tensor))

    @property
    def price(self) -> float:
        """Return what one call here takes off a budget: one for something small."""
        return 1 + self.elements / ELEMENTS + self.usage.calls / CALLS

    def gradients(self, backward: Callable[..., Any]) -> Gradients | str:
        """Return what this backward gives within its bounds; the text of what it raises instead."""
        outputs, node = (self.outputs, self.node) if not self.tidy else self._anew()
        given = _shaped(backward, {k: shape for k, shape in self._shapes.items() if k not in self._larger})
        whole = given if self._changes and not self.tidy else _watched(given, _refused)
        bounded = Meter(self.usage.allowance()).around(whole)
        try:
            with backward_replaced(node, bounded):
                return pull(self.problem, outputs, self.v)
        except Exception as error:
            if is_ours(error):
                raise
            return str(error)
        finally:
            self._undo()

    def _changed(self) -> None:
        self._changes = True

    @cached_property
    def _shapes(self) -> dict[int, torch.Size]:
        """Return the shapes of the arguments that gradients are for; the engine sums a larger one silently."""
        inputs = self.outputs.inputs
        handed = self.problem.arguments
        return {handed[i]: inputs[i].shape for i in self.problem.differentiable if i in handed}

    def as_before(self, which: int, gradient: Tensor | None) -> bool:
        """Return True for the gradient that the user's own backward gives; where it raises nothing is known."""
        was = None if self.original is None else self.original[which]
        return (
            self.original is None
            or was is gradient
            or (was is not None and gradient is not None and torch.equal(was, gradient))
        )

    def right(self, which: int, gradient: Tensor | None) -> bool | None:
        """Compare a gradient with the forward in a direction of this point; None where differences tell nothing.

        One direction moves all elements, and each point has its own: what is wrong anywhere shows at most points.

        Args:
            which: number of the input among the differentiable ones.
            gradient: of that input.
        """
        with users_errors():  # forward may refuse a step from a point that it takes
            if not self._known:
                self._known.update(self._by_autograd())
            if which not in self._known:
                self._known[which] = directional_derivative(
                    self.problem,
                    self.outputs.inputs,
                    which,
                    self.v,
                    self.seed + 1,
                    symmetric=which in self.symmetric,
                    enough=ENOUGH,
                )
        asked = self._known.setdefault(which, None)
        if asked is None:
            return None
        same = asked.agrees(gradient)
        twice = same and gradient is not None and bool(gradient.any()) and asked.agrees(2 * gradient)
        return None if twice else same  # what agrees with twice as much confirms nothing

    def _by_autograd(self) -> dict[int, DirectionalDerivative]:
        """Return the derivatives by autograd of the forward where a difference bears them out; else nothing."""
        if self.elements > ELEMENTS:
            return {}
        found = gradients_of_forward(self.problem, self.outputs, self.v)
        if found is None:
            return {}
        return borne_out(self.problem, self.outputs, self.v, found, self.seed + 1, self.symmetric)

    def outside(self, right: Iterable[int]) -> bool:
        """Return True for a far point at which what is right at the inputs given is wrong: it tells nothing of a fix.

        Args:
            right: numbers of the inputs whose gradients are right at the inputs given.
        """
        if not self.far or self.original is None:
            return False
        if self._outside is None:
            self._outside = any(self.right(k, self.original[k]) is False for k in right)
        return self._outside

    def was_right(self, which: int) -> bool:
        """Return True where the user's own backward is right here for an input."""
        return self.original is not None and self.right(which, self.original[which]) is True

    def _anew(self) -> tuple[Outputs, Any]:
        """Return the call made again, since the backward before may have changed what it left."""
        outputs = self.problem.call(tuple(map(copy, self._arguments)))
        return outputs, own_node(self.problem, outputs)

    def _held(self) -> list[tuple[Tensor, int]]:
        """Return the tensors that a backward may reach, each with its version."""
        items = (*self.outputs, *self.outputs.inputs, *(t for _, t in tensors_on_ctx(self.problem, self.node)))
        return [(t, t._version) for t in items if isinstance(t, Tensor) and not t.is_inference()]

    def _undo(self) -> None:
        """Make the call again where a backward changed a tensor in place: the next one is not to meet it."""
        if any(t._version != version for t, version in self._versions):
            self.outputs, self.node = self._anew()
            self._versions = self._held()


def _others(result: Any, shapes: dict[int, torch.Size]) -> set[int]:
    """Return the arguments for which gradients of another shape were returned."""
    returned = result if isinstance(result, tuple) else (result,)
    there = {k: returned[k] for k in shapes if k < len(returned)}
    return {k for k, g in there.items() if isinstance(g, Tensor) and g.shape != shapes[k]}


def _noted(backward: Callable[..., Any], larger: set[int], shapes: dict[int, torch.Size]) -> Callable[..., Any]:
    """Return the same backward, which notes the arguments for which it leaves it to the engine to sum."""

    @hands_over
    def noting(ctx: Any, *grads: Any) -> Any:
        result = backward(ctx, *grads)
        larger.update(_others(result, shapes))
        return result

    return noting


def _shaped(backward: Callable[..., Any], shapes: dict[int, torch.Size]) -> Callable[..., Any]:
    """Return the same backward; raises when it returns a gradient of another shape than that of its argument."""

    @hands_over
    def shaped(ctx: Any, *grads: Any) -> Any:
        result = backward(ctx, *grads)
        if _others(result, shapes):
            raise BoundsError(ANOTHER_SHAPE)
        return result

    return shaped


def _refused() -> None:
    raise BoundsError("changed in place")


def _watched(backward: Callable[..., Any], changed: Callable[[], None]) -> Callable[..., Any]:
    """Return the same backward; calls ``changed`` when it changed a grad_output or a tensor on ctx in place."""

    @hands_over
    def watching(ctx: Any, *grads: Any) -> Any:
        held = [t for t in (*grads, *ctx.saved_tensors, *vars(ctx).values()) if isinstance(t, Tensor)]
        before, names = [t._version for t in held], {k: id(v) for k, v in vars(ctx).items()}
        result = backward(ctx, *grads)
        if [t._version for t in held] != before or {k: id(v) for k, v in vars(ctx).items()} != names:
            changed()
        return result

    return watching


def stage(
    problem: Problem,
    inputs: tuple[Any, ...],
    seed: int,
    *,
    only: int | None = None,
    odd: Callable[[Tensor], Tensor] | None = None,
    tidy: bool = False,
    sized: bool = False,
    ranked: bool = False,
    far: bool = False,
    foreign: bool = False,
    symmetric: frozenset[int] = frozenset(),
) -> Stage | None:
    """Return a stage at these inputs, with cotangents for all outputs or for one; None where the forward fails."""
    with users_errors() as guard:
        outputs = problem.call(inputs)
    if guard.failed:
        return None
    node = own_node(problem, outputs)
    v = [c if c is None or odd is None else odd(c) for c in cotangents(problem, outputs, seed, only)]
    if node is None or not all(map(reachable, vars(node).values())):
        return None
    if any(isinstance(y, Tensor) and not torch.isfinite(y.detach()).all() for y in outputs):
        return None
    return Stage(problem, outputs, node, v, seed, tidy, sized, ranked, far, foreign, symmetric)


Stages = Once[Stage]
