"""Trends along calls: what torch says of each gradient, without decoding a call."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.core.recording.trends import trends


class Times(Fn):
    """x * factor, whose backward can be made to fail or to give NaN."""

    fault = ""

    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    def backward(ctx, grad_output):
        if Times.fault == "raises":
            raise ValueError("not today")
        grad = grad_output * ctx.factor
        return (grad * math.nan if Times.fault == "nan" else grad), None


@pytest.fixture(autouse=True)
def sound():
    Times.fault = ""
    yield
    Times.fault = ""


def run(*cotangents, dtype=torch.float64, fault_at=None, fault=""):
    """Return the log of one forward and one backward for each cotangent."""
    with nbautograd.recording(Times) as log:
        for k, cotangent in enumerate(cotangents):
            Times.fault = fault if k == fault_at else ""
            x = torch.ones(cotangent.shape, dtype=dtype, requires_grad=True)
            try:
                Times.apply(x, k + 1.0).backward(cotangent)
            except ValueError:
                assert fault == "raises"
    return log


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64])
def test_norms_are_those_of_torch(dtype):
    cotangents = [torch.randn(3, 4).to(dtype) for _ in range(4)]
    measured = trends(run(*cotangents, dtype=dtype))
    norms = [float(torch.linalg.vector_norm(g.to(torch.complex128))) for g in cotangents]
    assert measured.incoming[1::2] == pytest.approx(norms, rel=1e-6)
    assert measured.outgoing[1::2] == pytest.approx([n * (k + 1) for k, n in enumerate(norms)], rel=1e-2)
    assert np.isnan(measured.incoming[::2]).all()
    assert measured.first_bad is None


def test_calls_of_several_shapes_and_strides_are_told_apart():
    wide = torch.randn(6, 5, dtype=torch.float64)
    cotangents = [wide.t(), torch.ones((), dtype=torch.float64).expand(4), wide[:, ::2], wide]
    measured = trends(run(*cotangents))
    assert measured.incoming[1::2] == pytest.approx([float(g.norm()) for g in cotangents])


def test_a_live_log_and_its_copy_give_the_same():
    log = run(torch.randn(3), torch.randn(2, 2), torch.randn(()), dtype=torch.float32, fault_at=1, fault="nan")
    copy = pickle.loads(pickle.dumps(log))
    one, two = trends(log), trends(copy)
    for name in ("seconds", "incoming", "outgoing", "bad", "failed"):
        assert np.allclose(getattr(one, name), getattr(two, name), equal_nan=True), name


def test_a_large_gradient_is_estimated_from_its_sample():
    cotangent = torch.full((200, 300), 2.0)
    measured = trends(run(cotangent, dtype=torch.float32))
    assert measured.incoming[1] == pytest.approx(float(cotangent.norm()), rel=1e-5)


def test_no_calls_have_no_trend():
    assert trends(nbautograd.types.CallLog()).first_bad is None
