"""The precision that a function computes in, which may be lower inside than that of its inputs and outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

try:
    from torch.utils._python_dispatch import TorchDispatchMode
except ImportError:  # then nothing is seen, and the dtypes of inputs and outputs count alone
    TorchDispatchMode = contextlib.nullcontext  # type: ignore[assignment,misc]


class CastWatch(TorchDispatchMode):
    """Watches the dtypes of all results, and remembers the coarsest that finer numbers were rounded to.

    A mask or a constant in low precision is exact; what counts is a result with fewer digits than a tensor that it
    was computed from, such as that of ``x.float()``.

    Attributes:
        dtype: the coarsest dtype that numbers were rounded to; None when none were.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype: torch.dtype | None = None

    @property
    def epsilon(self) -> float:
        """Spacing at 1 of the numbers of ``dtype``; 0 when nothing was rounded."""
        return 0.0 if self.dtype is None else float(torch.finfo(self.dtype).eps)

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, and compare the precision of its results with that of its arguments."""
        finest = min(map(_spacing, _floating([*args, *(kwargs or {}).values()])), default=None)
        result = func(*args, **(kwargs or {}))
        for tensor in _floating([result]):
            if finest is not None and _spacing(tensor) > max(finest, self.epsilon):
                self.dtype = tensor.dtype
        return result


def _floating(items: Sequence[Any]) -> list[Tensor]:
    """Return the floating and complex tensors among these, lists opened."""
    found: list[Tensor] = []
    for item in items:
        if isinstance(item, Tensor):
            found += [item] if item.is_floating_point() or item.is_complex() else []
        elif isinstance(item, (list, tuple)):
            found += _floating(item)
        elif isinstance(item, Mapping):
            found += _floating(list(item.values()))
    return found


def _spacing(tensor: Tensor) -> float:
    return float(torch.finfo(tensor.dtype).eps)
