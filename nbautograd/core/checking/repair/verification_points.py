"""Stage: one point at which an edited backward is called, and must agree with the forward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import backward_replaced, cotangents, own_node, pull, user_backward
from nbautograd.core.checking.directional import DirectionalDerivative, directional_derivative
from nbautograd.core.checking.other_points import expanded, strided
from nbautograd.core.checking.problem import Outputs, Subject

# for these the values are right, but something is changed that must stay as it is
TIDY = ("mutates_grad_output", "mutates_saved")
# for these the values are right, but only for gradients that lie in memory as usual
ODD: dict[str, Callable[[Tensor], Tensor]] = {"fails_noncontiguous_grad": expanded, "wrong_noncontiguous_grad": strided}


@dataclass(frozen=True)
class Stage:
    """One point at which an edited backward must agree with the forward.

    Attributes:
        outputs: of a call there, with their graph.
        node: the Function's node in it.
        v: the cotangents.
        directions: what the gradients must agree with.
        tidy: True when grad_outputs and ctx must be left as they were.
    """

    outputs: Outputs
    node: Any
    v: Sequence[Tensor | None]
    directions: tuple[DirectionalDerivative, ...]
    tidy: bool = False

    @property
    def elements(self) -> int:
        """How many elements the tensors that go in and come out have together."""
        return sum(t.numel() for t in (*self.outputs, *self.outputs.inputs) if isinstance(t, Tensor))

    @property
    def original(self) -> Callable[..., Any]:
        """The user's own backward."""
        return user_backward(type(self.node)._forward_cls)

    def _anew(self, subject: Subject) -> tuple[Outputs, Any]:
        """The call made again, since the backward before may have changed what it left."""
        outputs = subject.call(self.outputs.inputs)
        return outputs, own_node(subject, outputs)

    def runs(self, subject: Subject) -> bool:
        """Whether the user's own backward comes to an end here."""
        try:
            pull(subject, self.outputs, self.v)
        except Exception:
            return False
        return True

    def passes(self, subject: Subject, backward: Callable[..., Any]) -> bool:
        """Whether this backward gives gradients that agree in every direction."""
        outputs, node = (self.outputs, self.node) if not self.tidy else self._anew(subject)
        try:
            with backward_replaced(node, _watched(backward) if self.tidy else backward):
                gradients = pull(subject, outputs, self.v)
        except Exception:
            return False
        return all(d.agrees(gradients[d.which]) for d in self.directions)


def _watched(backward: Callable[..., Any]) -> Callable[..., Any]:
    """The same backward; raises when it changed a grad_output or a tensor on ctx in place."""

    def watching(ctx: Any, *grads: Any) -> Any:
        held = [t for t in (*grads, *ctx.saved_tensors, *vars(ctx).values()) if isinstance(t, Tensor)]
        before, names = [t._version for t in held], {k: id(v) for k, v in vars(ctx).items()}
        result = backward(ctx, *grads)
        if [t._version for t in held] != before or {k: id(v) for k, v in vars(ctx).items()} != names:
            raise RuntimeError("changed in place")
        return result

    return watching


def stage(
    subject: Subject,
    inputs: tuple[Any, ...],
    targets: Sequence[int],
    seed: int,
    odd: Callable[[Tensor], Tensor] | None = None,
    tidy: bool = False,
) -> Stage | None:
    """A stage at these inputs; None where the forward fails or its derivative cannot be had clearly."""
    try:
        outputs = subject.call(inputs)
    except Exception:
        return None
    node = own_node(subject, outputs)
    v = [c if c is None or odd is None else odd(c) for c in cotangents(subject, outputs, seed)]
    if node is None or any(isinstance(y, Tensor) and not torch.isfinite(y.detach()).all() for y in outputs):
        return None
    asked: list[DirectionalDerivative] = []
    for k, s in itertools.product(targets, (1, 2)):
        found = directional_derivative(subject, outputs.inputs, k, v, seed + s)
        if found is None:
            return None
        asked.append(found)
    return Stage(outputs, node, v, tuple(asked), tidy)


class Stages:
    """Stages made as they are asked for, each once.

    Args:
        made: where they come from.
    """

    def __init__(self, made: Iterator[Stage]) -> None:
        self._made, self._known = made, list[Stage]()

    def __iter__(self) -> Iterator[Stage]:
        for k in itertools.count():
            if not self.at_least(k + 1):
                return
            yield self._known[k]

    def at_least(self, count: int) -> bool:
        """Whether there are so many."""
        self._known += itertools.islice(self._made, max(0, count - len(self._known)))
        return len(self._known) >= count
