"""Kernels that compute in float32 inside are right without a reference too, and say what could not have been seen."""

from __future__ import annotations

import pytest
import torch
from kernels import KERNELS, Kernel, function

from nbautograd import gradcheck

SMALL = 4
LAID_OUT = {"rope": ((2, 4, 4),)}  # an even number of columns


def small(kernel: Kernel, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    shapes = LAID_OUT.get(kernel.name) or [tuple(min(n, SMALL) for n in shape) for shape in kernel.shapes]
    return tuple(torch.randn(s, generator=generator, dtype=torch.float64).to(dtype).requires_grad_() for s in shapes)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_right_kernels_are_not_accused(kernel: Kernel, dtype: torch.dtype) -> None:
    report = gradcheck(kernel.function(), small(kernel, dtype), order=1)
    assert report.verdict == "right"
    assert not [finding for finding in report.findings if finding.kind == "bug"]


def test_a_step_that_moves_nothing_cannot_tell() -> None:
    x = torch.full((3,), 1.0, dtype=torch.float64, requires_grad=True)
    coarse = function(lambda x: ((x.bfloat16() + 1024) - 1024, ()), lambda saved, g: 2 * g)
    assert gradcheck(coarse, (x,), order=1).verdict == "cannot tell"
