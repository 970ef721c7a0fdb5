"""A stand-in ctx: the class's own forward as a plain function of its arguments, without autograd's bookkeeping."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor

from nbautograd.core.checking.problem import Subject, separate_context


class StubContext:
    """A ctx that accepts whatever a forward puts on it and does nothing.

    Attributes:
        needs_input_grad: one bool per argument of forward.
        to_save, dirty_tensors: what was saved and marked, by the names that recording reads from a real ctx.
    """

    __slots__ = ("__dict__", "dirty_tensors", "needs_input_grad", "to_save")  # the dict has what the user puts there

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad
        self.to_save: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, as ctx gives it to backward."""
        return self.to_save

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep the tensors, as ctx would."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Nothing is needed."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Keep which tensors are marked."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Nothing is needed."""

    def set_materialize_grads(self, value: bool) -> None:
        """Nothing is needed."""


def forward_without_autograd(subject: Subject) -> Callable[..., tuple[Any, ...]] | None:
    """The forward as a plain function from the subject's inputs to a tuple of outputs; None where there is none.

    For a Function class this is its ``forward`` with a stand-in ctx; for a callable in whose graph no Function was
    seen it is the callable; a callable around one Function class is run with that class's ``apply`` replaced for the
    time by its forward, which does not reach an ``apply`` that was kept elsewhere (``f = MyFunction.apply``).
    """
    if subject.cls is None:
        return None if subject.has_functions else lambda *args: tuple(subject.flat(subject.fn(*args)))
    cls = subject.cls
    forward = getattr(cls, "forward", None)
    if forward is None:
        return None
    separate = separate_context(cls)

    def alone(*args: Any) -> Any:
        needs = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        return forward(*args) if separate else forward(StubContext(needs), *args)

    def within(*args: Any) -> tuple[Any, ...]:
        with _apply_replaced(cls, alone):
            return tuple(subject.flat(subject.fn(*args)))

    return (lambda *args: tuple(subject.flat(alone(*args)))) if subject.direct else within


@contextlib.contextmanager
def _apply_replaced(cls: type, run: Callable[..., Any]) -> Iterator[None]:
    """For the time, ``cls.apply`` is ``run``."""
    own = vars(cls).get("apply")
    cls.apply = staticmethod(run)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        if own is None:
            del cls.apply  # type: ignore[attr-defined]
        else:
            cls.apply = own  # type: ignore[attr-defined]
