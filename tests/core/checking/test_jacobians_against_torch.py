"""The Jacobians equal those of torch.autograd.functional.jacobian, whatever the structure."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nbautograd import jacobian

ONE = {
    "sin": torch.sin,
    "transpose": lambda x: x.t() * 2,
    "flip": lambda x: x.flip(0),
    "cumsum": lambda x: x.cumsum(1),
    "softmax": lambda x: x.softmax(0),
    "sum": lambda x: x.sum(0),
    "outer": lambda x: x[:, :1] * x[:, 1:].sum(),
    "reshape": lambda x: x.reshape(-1).cos(),
    "mean": lambda x: x.mean(),
    "diagonal": lambda x: torch.diagonal(x).exp(),
    "embed": lambda x: torch.diag_embed(x),
    "constant": lambda x: x * 0,
    "roll": lambda x: x.roll(1, 1) ** 2,
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
}
TWO = {
    "mm": lambda x, y: x @ y.t(),
    "mul": lambda x, y: x * y,
    "broadcast": lambda x, y: x[:, None] + y[None] ** 2,
    "einsum": lambda x, y: torch.einsum("ab,cb->ac", x, y.tanh()),
    "several": lambda x, y: (x.sum() * y, y.exp()),
}


def matrix(rows, cols, seed):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, cols, generator=generator, dtype=torch.float64) + 0.1).requires_grad_()


def same(report, fn, inputs):
    expected = torch.autograd.functional.jacobian(fn, inputs)
    if isinstance(fn(*inputs), torch.Tensor):
        expected = (expected,)
    for (o, i), block in report.blocks.items():
        truth = expected[o][i].reshape(block.shape).numpy()
        np.testing.assert_allclose(block.analytical(), truth, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(block.numerical(), truth, rtol=1e-6, atol=1e-7 * (1 + np.abs(truth).max(initial=0)))


@pytest.mark.parametrize("name", ONE)
@settings(max_examples=6)
@given(rows=st.integers(1, 5), cols=st.integers(2, 5), seed=st.integers(0, 99))
def test_of_one_input(name, rows, cols, seed):
    inputs = (matrix(rows, cols, seed),)
    same(jacobian(ONE[name], inputs), ONE[name], inputs)


@pytest.mark.parametrize("name", TWO)
@settings(max_examples=6)
@given(rows=st.integers(1, 5), cols=st.integers(1, 4), seed=st.integers(0, 99))
def test_of_two_inputs(name, rows, cols, seed):
    inputs = (matrix(rows, cols, seed), matrix(rows, cols, seed + 1))
    same(jacobian(TWO[name], inputs), TWO[name], inputs)


def test_a_convolution_is_coloured():
    inputs = (torch.randn(2, 3, 7, 7, dtype=torch.float64, requires_grad=True),
              torch.randn(4, 3, 3, 3, dtype=torch.float64, requires_grad=True))  # fmt: skip
    report = jacobian(torch.conv2d, inputs)
    same(report, torch.conv2d, inputs)
    assert report.blocks[0, 0].structure == "block diagonal"
