"""A right verdict says how small an error it would have seen: above that errors are found, below they are not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from kernels import KERNELS, RMS, Kernel, function

from nbautograd import compare
from nbautograd.types import Comparison

ABOVE, BELOW = 1.1, 0.4  # times the resolution
HALVES = (torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.nightly))


def report(kernel: Kernel, dtype: torch.dtype, factor: float = 1.0, position: int = 0) -> Comparison:
    def backward(saved: Any, g: torch.Tensor) -> Any:
        grads = kernel.backward(saved, g)
        grads = grads if isinstance(grads, tuple) else (grads,)
        return tuple(factor * d.float() if k == position else d for k, d in enumerate(grads))

    fn = function(kernel.forward, backward, kernel.name)
    return compare(fn, kernel.eager, kernel.inputs(dtype), sizes=())


def injected(kernel: Kernel, dtype: torch.dtype, position: int) -> None:
    gradients = [one for one in report(kernel, dtype).quantities if one.kind == "gradient"]
    seen = gradients[position].resolution
    assert seen < 0.05
    for sign in (1, -1):
        wrong = report(kernel, dtype, 1 + sign * ABOVE * seen, position)
        assert [one.name for one in wrong.quantities if one.verdict == "wrong"] == [gradients[position].name]
        assert report(kernel, dtype, 1 + sign * BELOW * seen, position).verdict == "right"


@pytest.mark.nightly
def test_the_resolution_of_a_second_gradient_is_true() -> None:
    injected(RMS, torch.bfloat16, 1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    "kernel",
    [pytest.param(k, marks=() if n % 8 == 0 else pytest.mark.nightly, id=k.name) for n, k in enumerate(KERNELS)],
)
def test_the_resolution_is_true(kernel: Kernel, dtype: torch.dtype) -> None:
    injected(kernel, dtype, 0)
