"""Operations of torch that an answer runs, seen below autograd."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nbautograd.course.exercise import Failure

BY_TORCH = {
    "en": "`{name}` of torch is called here. The numbers are to come from NumPy; torch only carries them in and out.",
    "zh": "这里调用了 torch 的 `{name}`。这道题要用 NumPy 算出这些数，torch 只负责把它们送进送出。",
}
# what makes, moves, copies or converts numbers, and computes none
CARRYING = {
    "alias", "as_strided", "cat", "clone", "contiguous", "copy", "detach", "empty", "empty_like", "empty_strided",
    "expand", "fill", "flip", "full", "full_like", "index", "index_put", "index_select", "is_same_size",
    "lift_fresh", "local_scalar_dense", "movedim", "new_empty", "new_empty_strided", "new_full", "new_ones",
    "new_zeros", "ones", "ones_like", "permute", "repeat", "reshape", "reshape_alias", "roll", "scalar_tensor",
    "select", "set", "slice", "split", "split_with_sizes", "squeeze", "stack", "t", "to", "to_copy", "transpose",
    "unbind", "unfold", "unsafe_view", "unsqueeze", "view", "zero", "zeros", "zeros_like",
}  # fmt: skip
ARITHMETIC = CARRYING | {
    *("add", "sub", "rsub", "mul", "div", "neg", "abs", "reciprocal", "where", "maximum", "minimum", "clamp"),
}


class Operations(TorchDispatchMode):
    """Note the names of torch's operations.

    Attributes:
        names: without overloads and underscores at either end, in order.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note one operation and perform it."""
        self.names.append(func._schema.name.partition("::")[2].strip("_"))
        return func(*args, **(kwargs or {}))


def computed_by_torch(answer: Any, inputs: tuple[Tensor, ...], allowed: Collection[str]) -> Iterator[Failure]:
    """Yield a failure when forward or backward of a Function calls an operation of torch that is not one of these.

    Args:
        answer: the Function.
        inputs: tensors that require grad.
        allowed: names of operations.
    """
    with Operations() as seen:
        y = answer.apply(*inputs)
        torch.autograd.grad(y, inputs, torch.ones_like(y))
    other = [name for name in seen.names if name not in allowed]
    for name in other[:1]:
        yield Failure("computed_by_torch", BY_TORCH, {"name": name})
