"""Stage: one point at which an edited backward is called, and must agree with the forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import user_backward
from nbautograd.core.checking.other_points import expanded, strided
from nbautograd.core.checking.point import Gradients, Once, Point
from nbautograd.core.checking.repair.bounds import BoundsError, UsageMeter, reachable
from nbautograd.core.stumbles import hands_over, is_ours

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
        node: the Function's node in it.
        usage: what the user's own backward takes here.
        original: the gradients it gives; None where it raises.
        raised: what it raises, as text.
    """

    def __init__(self, point: Point, tidy: bool = False) -> None:
        self.point, self.tidy, self.kind = point, tidy, point.kind
        self.original: Gradients | None = None
        self.raised, self._changes = "", False
        self._larger = set[int]()
        self._outside: bool | None = None
        meter = UsageMeter()
        own = _watched(_noted(self.own, self._larger, self._shapes), self._changed)
        try:
            self.original = point.pull(meter.around(own))
        except Exception as error:
            if is_ours(error):
                raise
            self.raised = str(error)
        self.usage = meter.usage

    @property
    def node(self) -> Any:
        """The Function's node."""
        return self.point.node

    @property
    def own(self) -> Callable[..., Any]:
        """The user's own backward."""
        return user_backward(type(self.node)._forward_cls)

    @property
    def price(self) -> float:
        """Return what one call here takes off a budget: one for something small."""
        return 1 + self.point.elements / ELEMENTS + self.usage.calls / CALLS

    def gradients(self, backward: Callable[..., Any]) -> Gradients | str:
        """Return what this backward gives within its bounds; the text of what it raises instead."""
        if self.tidy:
            self.point.renew()
        given = _shaped(backward, {k: shape for k, shape in self._shapes.items() if k not in self._larger})
        whole = given if self._changes and not self.tidy else _watched(given, _refused)
        try:
            return self.point.pull(UsageMeter(self.usage.allowance()).around(whole))
        except Exception as error:
            if is_ours(error):
                raise
            return str(error)

    def _changed(self) -> None:
        self._changes = True

    @cached_property
    def _shapes(self) -> dict[int, torch.Size]:
        """Return the shapes of the arguments that gradients are for; the engine sums a larger one silently."""
        problem = self.point.problem
        handed = problem.arguments
        return {handed[i]: self.point.inputs[i].shape for i in problem.differentiable if i in handed}

    def as_before(self, which: int, gradient: Tensor | None) -> bool:
        """Return True for the gradient that the user's own backward gives; where it raises nothing is known."""
        was = None if self.original is None else self.original[which]
        return (
            self.original is None
            or was is gradient
            or (was is not None and gradient is not None and torch.equal(was, gradient))
        )

    def outside(self, right: Iterable[int]) -> bool:
        """Return True for a far point at which what is right at the inputs given is wrong: it tells nothing of a fix.

        Args:
            right: numbers of the inputs whose gradients are right at the inputs given.
        """
        if not self.kind.far or self.original is None:
            return False
        if self._outside is None:
            self._outside = any(self.point.is_right(k, self.original[k]) is False for k in right)
        return self._outside

    def was_right(self, which: int) -> bool:
        """Return True where the user's own backward is right here for an input."""
        return self.original is not None and self.point.is_right(which, self.original[which]) is True


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


def stage(point: Point, tidy: bool = False) -> Stage | None:
    """Return a stage at this point; None where forward fails, or leaves something on ctx that is not plain."""
    node = point.node
    if node is None or not point.finite or not all(map(reachable, vars(node).values())):
        return None
    return Stage(point, tidy)


Stages = Once[Stage]
