"""Stage: one point at which an edited backward is called, and must agree with the forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import stumbles
from nbautograd.core.checking.backward_call import user_backward
from nbautograd.core.checking.other_points import expanded, strided
from nbautograd.core.checking.point import Gradients, Once, Point
from nbautograd.core.checking.repair.bounds import BoundsError, UsageMeter, reachable
from nbautograd.core.stumbles import RAISED, hands_over, is_ours

# for these the values are right, but something is changed that must stay as it is
TIDY = ("mutates_grad_output", "mutates_saved")
# for these the values are right, but only for gradients that lie in memory as usual
ODD: dict[str, Callable[[Tensor], Tensor]] = {"fails_noncontiguous_grad": expanded, "wrong_noncontiguous_grad": strided}
ELEMENTS = 20_000  # that make a call as dear as the call of something small
CALLS = 100  # of torch, likewise
ANOTHER_SHAPE = "another shape"  # of a gradient: the engine may sum it silently


class Stage:
    """A point at which an edited backward must agree with the forward, and what the user's own takes and gives there.

    Args:
        point: with its node in the graph.
        tidy: True when grad_outputs and ctx must be left as they were.

    Attributes:
        kind: of the point.
        own: the user's own backward.
        price: what one call here takes off a budget: one for something small.
        usage: what the user's own backward takes here.
        original: the gradients it gives; None where it raises.
        raised: what it raises, as text.
    """

    def __init__(self, point: Point, tidy: bool = False) -> None:
        self.point, self.tidy, self.kind = point, tidy, point.kind
        self.own = user_backward(type(point.node)._forward_cls)
        self.original: Gradients | None = None
        self.raised, self._changes, self._larger = "", False, set[int]()
        self._outside: bool | None = None
        meter = UsageMeter()
        try:
            self.original = point.pull(meter.around(self._watched(self.own, noted=True)))
        except RAISED as error:
            if is_ours(error):
                raise
            self.raised = stumbles.said(error)
        self.usage = meter.usage
        self.price = 1 + point.elements / ELEMENTS + self.usage.calls / CALLS

    def gradients(self, backward: Callable[..., Any]) -> Gradients | str:
        """Return what this backward gives within its bounds; the text of what it raises instead."""
        if self.tidy:
            self.point.renew()
        try:
            return self.point.pull(UsageMeter(self.usage.allowance()).around(self._watched(backward)))
        except RAISED as error:
            if is_ours(error):
                raise
            return stumbles.said(error)

    def _watched(self, backward: Callable[..., Any], noted: bool = False) -> Callable[..., Any]:
        """Return the same backward; it raises where it does what the user's own does not, of which note is taken.

        That is to change a grad_output or a tensor on ctx in place, and to leave the sum of a larger gradient to the
        engine.
        """
        problem = self.point.problem
        handed = {i: problem.arguments[i] for i in problem.differentiable if i in problem.arguments}

        @hands_over
        def watching(ctx: Any, *grads: Any) -> Any:
            held = [t for t in (*grads, *ctx.saved_tensors, *vars(ctx).values()) if isinstance(t, Tensor)]
            before, names = [t._version for t in held], {k: id(v) for k, v in vars(ctx).items()}
            result = backward(ctx, *grads)
            changed = [t._version for t in held] != before or {k: id(v) for k, v in vars(ctx).items()} != names
            given = dict(enumerate(result if isinstance(result, tuple) else (result,)))
            pairs = ((k, given.get(k), self.point.inputs[i].shape) for i, k in handed.items())
            larger = {k for k, gradient, shape in pairs if isinstance(gradient, Tensor) and gradient.shape != shape}
            if noted:
                self._larger |= larger
                self._changes |= changed
            elif larger - self._larger:
                raise BoundsError(ANOTHER_SHAPE)
            elif changed and (self.tidy or not self._changes):
                raise BoundsError("changed in place")
            return result

        return watching

    def as_before(self, which: int, gradient: Tensor | None) -> bool:
        """Return True for the gradient that the user's own backward gives; where it raises nothing is known."""
        if self.original is None:
            return True
        was = self.original[which]
        return was is gradient or (was is not None and gradient is not None and torch.equal(was, gradient))

    def outside(self, right: Iterable[int]) -> bool:
        """Return True for a far point where what is right at the inputs given is wrong: it tells nothing of a fix."""
        if not self.kind.far or self.original is None:
            return False
        if self._outside is None:
            self._outside = any(self.point.is_right(k, self.original[k]) is False for k in right)
        return self._outside

    def is_wrong(self, which: int) -> bool:
        """Return True where the user's own backward is wrong here for an input."""
        return self.original is not None and self.point.is_right(which, self.original[which]) is False

    def was_right(self, which: int) -> bool:
        """Return True where the user's own backward is right here for an input."""
        return self.original is not None and self.point.is_right(which, self.original[which]) is True


def stage(point: Point, tidy: bool = False) -> Stage | None:
    """Return a stage at this point; None where forward fails, or leaves something on ctx that is not plain."""
    node = point.node
    if node is None or not point.finite or not all(map(reachable, vars(node).values())):
        return None
    return Stage(point, tidy)


Stages = Once[Stage]
