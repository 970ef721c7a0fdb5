"""How often a check calls the function: never much more than central differences of everything would."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fn import Fn

from nbautograd import gradcheck
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun

pytestmark = pytest.mark.usefixtures("without_fixes")

SIZE = 40
RANDOM = np.random.default_rng(0)
MATRIX = RANDOM.uniform(0.5, 2.0, (SIZE, SIZE)) * RANDOM.choice([-1.0, 1.0], (SIZE, SIZE))


def dense(precision, factor=lambda column: 1.0):
    """A Function of numpy, called once per point, whose columns may be wrong by a factor each."""

    class Dense(Fn):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            inner = np.sin(x.detach().numpy().astype(precision))
            return torch.from_numpy((MATRIX.astype(precision) @ inner).astype(np.float64))

        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            factors = np.array([factor(k) for k in range(SIZE)])
            return torch.from_numpy(grad.numpy() @ MATRIX * np.cos(x.numpy()) * factors)

    return Dense


def counted(fn, x):
    """The only block, and how often the function was called for it."""
    problem, calls = Problem(fn, x), 0
    plain = problem.evaluate

    def evaluate(inputs):
        nonlocal calls
        calls += 1
        return plain(inputs)

    problem.evaluate = evaluate
    run = GradcheckRun(problem, None, None, None)
    with problem.session():
        run.find_blocks()
    return run.blocks[0, 0], calls


@pytest.fixture
def x():
    torch.manual_seed(1)
    return torch.randn(SIZE, dtype=torch.float64, requires_grad=True)


def test_where_everything_is_wrong_the_count_is_exact_and_few_columns_climb_the_ladder(x):
    block, calls = counted(dense(np.float64, lambda column: 1.5), x)
    assert (block.verdict, block.wrong) == ("mismatch", SIZE * SIZE)
    assert calls < 3 * 4 * SIZE


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_what_no_difference_can_see_beside_the_output_costs_no_ladder(offset):
    def fn(x):
        # saturated: derivatives of 1e-17 beside outputs of size 1
        return torch.from_numpy(np.array([0.0]))[0] + torch.softmax(torch.stack([x[0] * 20, x[1] + offset]), 0)

    x = torch.tensor([3.0, 1.0], dtype=torch.float64, requires_grad=True)
    block, calls = counted(fn, x)
    assert block.verdict == "match"
    assert calls < 30


def test_a_small_derivative_is_still_checked_where_the_output_is_small_too():
    Tiny = Fn.of("Tiny", "x: save(x); return 1e-12 * x.sin()", "grad: return torch.zeros_like(grad)")

    x = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(Tiny, x, order=1).verdict == "wrong"


def test_an_in_place_function_does_not_move_the_points_that_it_is_asked_at():
    # wrong, so that the ladder is climbed
    in_place = Fn.of("InPlace", "x: ctx.mark_dirty(x); return x.exp_().sub_(1)", "grad: return grad")
    x = torch.linspace(0.5, 1, 5, dtype=torch.float64, requires_grad=True)
    block, _ = counted(in_place, x)
    assert block.verdict == "mismatch"
    np.testing.assert_allclose(np.diag(block.numerical()), x.detach().exp(), rtol=1e-9)
