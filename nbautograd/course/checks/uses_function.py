"""The call goes through the student's own Function, and its backward is written, not asked of autograd."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.user_source import function_class
from nbautograd.course.attempt import Attempt, copies, cotangents, forward, vjp
from nbautograd.course.exercise import Failure


def uses_own_function(attempt: Attempt) -> Iterator[Failure]:
    """A Function of the student's is in the graph, and its backward computes by itself."""
    outputs = attempt.run(attempt.point()).outputs
    in_graph = functions_of(outputs)
    asked = function_class(attempt.answer)
    if asked is None and isinstance(attempt.answer, type) and not issubclass(attempt.answer, torch.nn.Module):
        yield Failure("no_function_class", "course.no_function_class", {"name": attempt.exercise.answer})
    elif asked is not None and not any(y.requires_grad for y in outputs):
        return  # no gradient at all: the gradient's own check says so
    elif not in_graph or (asked is not None and asked not in in_graph):
        yield Failure("not_through_function", "course.not_through_function", {"name": attempt.exercise.answer})
    else:
        yield from _native(attempt, in_graph)


def _native(attempt: Attempt, classes: set[Any]) -> Iterator[Failure]:
    """Derivatives that torch computes while forward or backward of these classes run, in whatever way asked for."""
    calls = DerivativeCalls({cls.backward.__code__.co_filename for cls in classes if hasattr(cls.backward, "__code__")})
    with contextlib.ExitStack() as stack, contextlib.suppress(Exception):  # what raises is the gradient's to tell
        for cls in classes:
            for method in ("forward", "backward"):
                stack.enter_context(_within(cls, method, calls))
        run = forward(attempt.call, copies(attempt.point()))
        vjp(run, cotangents(run.outputs, attempt.seed))
    for name, line in calls.made[:1]:
        yield Failure("native_autograd", "course.native_autograd", {"name": name, "line": line})


@contextlib.contextmanager
def _within(cls: Any, method: str, mode: TorchFunctionMode) -> Iterator[None]:
    """Run a method of a class inside a mode for a while; backward runs outside of the modes of its caller."""
    own, call = cls.__dict__.get(method), getattr(cls, method)

    def inside(*args: Any) -> Any:
        with mode:
            return call(*args)

    setattr(cls, method, staticmethod(inside))
    try:
        yield
    finally:
        delattr(cls, method) if own is None else setattr(cls, method, own)


class DerivativeCalls(TorchFunctionMode):
    """Note the calls by which torch is asked for a derivative, each with its line in one of these files.

    Every way leads through one of four: gradients switched on inside a forward or backward, the engine, a dual number,
    a ready-made backward of torch. That of a convolution is allowed: it is another convolution, and has no other name.
    """

    def __init__(self, files: set[str]) -> None:
        super().__init__()
        self.files = files
        self.made: list[tuple[str, int]] = []

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note one call and make it."""
        name = getattr(func, "__name__", "").partition(".")[0]
        ready_made = name.endswith("_backward") and name != "convolution_backward"
        if (
            name in ("grad", "backward", "_make_dual")
            or ready_made
            or (name == "_set_grad_enabled" and args == (True,))
        ):
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_code.co_filename not in self.files:
                frame = frame.f_back
            self.made.append((WRITTEN.get(name, name), frame.f_lineno))
        return func(*args, **(kwargs or {}))


WRITTEN = {"grad": "torch.autograd.grad", "_make_dual": "torch.func.jvp", "_set_grad_enabled": "torch.enable_grad"}
