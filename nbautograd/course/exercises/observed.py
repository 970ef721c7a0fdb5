"""An answer's Function watched from outside: what its backward gets and returns, and which torch functions it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from nbautograd.course.exercise import Failure

BY_TORCH = {
    "en": "`torch.{name}` is called here. The numbers are to come from NumPy; torch only carries them in and out.",
    "zh": "这里调用了 `torch.{name}`。这道题要用 NumPy 算出这些数，torch 只负责把它们送进送出。",
}


class TorchCalls(TorchFunctionMode):
    """Note the names of the torch functions that a block calls from Python."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note one call and make it."""
        self.names.append(getattr(func, "__name__", "").removeprefix("special_").rstrip("_"))
        return func(*args, **(kwargs or {}))


def with_backward_watched(answer: Any, watch: Callable[[tuple[Any, ...], Any, list[str]], None]) -> Any:
    """Derive a Function whose backward hands over what it gets and returns, and the torch functions that it calls."""

    class Watched(answer):  # type: ignore[misc]
        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with TorchCalls() as calls:
                returned = answer.backward(ctx, *grads)
            watch(grads, returned, calls.names)
            return returned

    return Watched


def computed_by_torch(answer: Any, x: Tensor, refused: set[str]) -> Iterator[Failure]:
    """Yield a failure when forward or backward of a Function of one tensor calls one of these torch functions.

    Args:
        answer: the Function.
        x: its input, which requires grad.
        refused: names without ``torch.`` and without trailing underscores.
    """
    # backward is watched by itself: the engine runs it outside of the modes of whoever calls it
    names: list[str] = []
    watched = with_backward_watched(answer, lambda _got, _returned, called: names.extend(called))
    with TorchCalls() as calls:
        y = watched.apply(x)
    torch.autograd.grad(y, x, torch.ones_like(y))
    for name in (*calls.names, *names):
        if name in refused:
            yield Failure("computed_by_torch", BY_TORCH, {"name": name})
            return
