"""A stand-in ctx: the class's own forward as a plain function of its arguments, without autograd's bookkeeping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from nbautograd.core.checking.subject import Subject, separate_context


class StandIn:
    """A ctx that accepts whatever a forward puts on it and does nothing."""

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep the tensors, as ctx would."""
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing is needed."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Nothing is needed."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Nothing is needed."""

    def set_materialize_grads(self, value: bool) -> None:
        """Nothing is needed."""


def raw_forward(subject: Subject) -> Callable[..., tuple[Any, ...]] | None:
    """The forward as a plain function from the subject's inputs to a tuple of outputs; None where there is none.

    For a Function class this is its ``forward`` with a stand-in ctx; for a callable in whose graph no Function was
    seen it is the callable; a callable around a Function has none, since its ``apply`` cannot be entered.
    """
    if subject.cls is None:
        return None if subject.has_functions else lambda *args: tuple(subject.flat(subject.fn(*args)))
    forward = getattr(subject.cls, "forward", None)
    if not subject.direct or forward is None:
        return None
    separate = separate_context(subject.cls)

    def run(*args: Any) -> tuple[Any, ...]:
        needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        raw = forward(*args) if separate else forward(StandIn(needs), *args)
        return tuple(subject.flat(raw))

    return run
