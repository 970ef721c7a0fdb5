"""Error bars cover the truth; kinks, jumps, edges and staircases are told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from fn import Fn
from hypothesis import given, settings
from hypothesis import strategies as st

from nbautograd import gradcheck
from nbautograd.core.checking.jacobian import central_differences
from nbautograd.core.checking.jacobian.assembly import FirstPass
from nbautograd.core.checking.jacobian.forward_values import Forward
from nbautograd.core.checking.jacobian.layout import BlockLayout, Matrices
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.steps import ladder
from nbautograd.core.checking.steps.refine import refine

pytestmark = pytest.mark.usefixtures("without_fixes")

# closed forms: name -> (function of a tensor, derivative as a plain function, range of inputs)
CLOSED = {
    "exp": (torch.exp, math.exp, (-3, 3)),
    "sin20": (lambda x: (20 * x).sin(), lambda x: 20 * math.cos(20 * x), (-2, 2)),
    "inverse": (lambda x: 1 / x, lambda x: -1 / x**2, (1e-3, 1e-2)),
    "offset": (lambda x: x.sin() + 1e6, math.cos, (-2, 2)),
    "cube": (lambda x: x**3, lambda x: 3 * x * x, (-2, 2)),
    "log": (torch.log, lambda x: 1 / x, (1e-6, 10)),
    "root": (torch.sqrt, lambda x: 0.5 / math.sqrt(x), (1e-4, 4)),
    "erf": (torch.erf, lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x), (-2, 2)),
    "float32 inside": (lambda x: x.float().tanh().double(), lambda x: 1 - math.tanh(x) ** 2, (-2, 2)),
}


def climbed(fn, x):
    """What the ladder says of every entry of an elementwise function."""
    problem = Problem(fn, torch.as_tensor(x, dtype=torch.float64).requires_grad_())
    with problem.session():
        forward = Forward(problem, problem.call(), (0,))
        layout = BlockLayout((len(x),), (len(x),), ((0, 0),))
        nothing = np.zeros(layout.sizes)
        raw = FirstPass(Matrices(layout, nothing, nothing), forward, central_differences.single((0, 0), layout))
        return refine(raw, np.ones(layout.sizes, dtype=bool))


@pytest.mark.parametrize("name", CLOSED)
def test_error_bars_cover_the_truth(name):
    fn, derivative, (low, high) = CLOSED[name]
    x = np.random.default_rng(0).uniform(low, high, 400)
    found = climbed(fn, x)
    truth = np.array([derivative(float(v)) for v in x])
    # the input itself is rounded, which no difference can see
    covered = np.abs(found.value - truth) <= found.error + 4e-16 * np.abs(truth)
    assert covered.mean() >= 0.99
    assert np.median(found.error / np.maximum(np.abs(truth), 1e-12)) < (1e-3 if "32" in name else 1e-6)


@settings(max_examples=25)
@given(slope=st.floats(-50, 50), gap=st.floats(0.1, 50), at=st.floats(-3, 3))
def test_a_kink_is_a_kink_wherever_it_is(slope, gap, at):
    found = climbed(lambda x: slope * x + gap * (x - at).clamp(min=0), [at])
    assert found.nature[0] == ladder.KINK
    assert found.low[0] <= slope + 1e-6
    assert found.high[0] >= slope + gap - 1e-6
    assert found.high[0] - found.low[0] == pytest.approx(gap, rel=1e-3)


@settings(max_examples=25)
@given(distance=st.floats(1e-3, 2), at=st.floats(-3, 3))
def test_a_kink_nearby_does_not_disturb(distance, at):
    found = climbed(lambda x: (x - at - distance).abs(), [at])
    assert found.nature[0] == ladder.SMOOTH
    assert found.value[0] == pytest.approx(-1, abs=1e-6)


@pytest.mark.parametrize(
    ("fn", "x", "nature"),
    [
        (torch.floor, 2.0, ladder.JUMP),
        (torch.sign, 0.0, ladder.JUMP),
        (lambda x: x * x.sqrt(), 0.0, ladder.EDGE_RIGHT),
        (lambda x: (-x).sqrt() * -x, 0.0, ladder.EDGE_LEFT),
        (torch.log, -1.0, ladder.NOWHERE),
        (lambda x: x * x, 0.3, ladder.SMOOTH),
        (lambda x: 3 * x, 0.7, ladder.SMOOTH),
    ],
)
def test_natures(fn, x, nature):
    assert climbed(fn, [x]).nature[0] == nature


def test_a_small_systematic_error_is_many_error_bars_off():
    x = torch.linspace(-2, 2, 9, dtype=torch.float64).requires_grad_()
    approximated = torch.nn.functional.gelu

    class Gelu(Fn):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return approximated(x)

        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                return torch.autograd.grad(approximated(y, approximate="tanh"), y, grad)[0]

    worst = gradcheck(Gelu, x, order=1).blocks[0, 0].worst
    assert abs(worst.analytical - worst.numerical) > 1e4 * worst.error_bar
