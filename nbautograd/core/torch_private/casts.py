"""The precision that a function computes in, which may be lower inside than that of its inputs and outputs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.stumbles import hands_over
from nbautograd.core.torch_private.dispatch import ThreadDispatchMode


@functools.cache
def spacing(dtype: torch.dtype | None) -> float:
    """Return the spacing at 1 of a floating dtype's numbers; 0 for None."""
    return 0.0 if dtype is None else float(torch.finfo(dtype).eps)


class CastWatch(ThreadDispatchMode):
    """Watches the dtypes of all results, and which of them were computed from numbers that had been rounded.

    A mask or a constant in low precision is exact; what counts is a result with fewer digits than a tensor that it
    was computed from, such as that of ``x.float()``.

    Args:
        inputs: whose numbers are known not to have been rounded on a way that is not seen, such as through numpy.

    Attributes:
        dtype: the coarsest dtype that numbers were rounded to; None when none were.
        read: spacing at 1 of the coarsest floating numbers that were computed with.
    """

    def __init__(self, inputs: Sequence[Any] = ()) -> None:
        super().__init__()
        self.dtype: torch.dtype | None = None
        self.read = 0.0
        # the coarsest that each storage's numbers passed through, by which it is: one used again is entered anew
        self._passed: dict[int, torch.dtype | None] = {_storage(t): None for t in _floating(inputs)}
        self._scalars: torch.dtype | None = None  # the same of numbers that left their tensors, by item()

    def behind(self, tensors: Sequence[Tensor]) -> torch.dtype | None:
        """Return the coarsest dtype that these tensors' numbers were rounded to on their way; None when none was."""
        places = [_storage(t) for t in tensors if t.is_floating_point() or t.is_complex()]
        if any(place == 0 or place not in self._passed for place in places):
            return self.dtype  # what no operation made here has a way that was not seen
        return max((self._passed[place] for place in places), key=spacing, default=None)

    @hands_over
    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the operation, and compare the precision of its results with that of its arguments."""
        compared = _compared if "torch._dynamo" not in sys.modules else _compared_untraced
        return compared(self, func, args, kwargs)

    @hands_over
    def compare(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
        """Run an operation; take note of where its result has fewer digits than its arguments."""
        given = _floating(args if kwargs is None else (*args, *kwargs.values()))
        spacings = [spacing(t.dtype) for t in given]
        passed = self._scalars
        for tensor in given:  # what is first seen after a rounding may come from it, through numpy for example
            place = _storage(tensor)
            known = self._passed.setdefault(place, self.dtype) if place else self.dtype
            passed = passed if known is None else max(passed, known, key=spacing)
        self.read = max(self.read, *spacings) if spacings else self.read
        result = func(*args, **(kwargs or {}))
        self._scalars = passed if isinstance(result, (float, complex)) else self._scalars
        for tensor in _floating((result,)):
            through = passed
            if spacings and spacing(tensor.dtype) > min(spacings):
                self.dtype = max(self.dtype, tensor.dtype, key=spacing)
                through = max(passed, tensor.dtype, key=spacing)
            self._passed[_storage(tensor)] = through
        return result


def _compared(watch: CastWatch, func: Callable[..., Any], args: Sequence[Any], kwargs: Any) -> Any:
    return watch.compare(func, args, kwargs)


_compared_untraced = getattr(torch, "_disable_dynamo", lambda function: function)(_compared)


_NO_TENSORS = {int, float, bool, str, type(None), torch.dtype, torch.device}


def _storage(tensor: Tensor) -> int:
    """Return which storage a tensor's numbers are in; 0 where it has none, as a sparse one."""
    try:
        return int(tensor.untyped_storage()._cdata)  # data_ptr() would copy what is shared until written
    except (AttributeError, NotImplementedError, RuntimeError):
        return 0


def _floating(items: Sequence[Any]) -> list[Tensor]:
    found: list[Tensor] = []
    for item in items:
        if isinstance(item, (list, tuple)):
            found += _floating(item)
        elif type(item) not in _NO_TENSORS and isinstance(item, Tensor):  # which for anything else takes long to ask
            found += [item] if item.is_floating_point() or item.is_complex() else []
    return found
