"""Solves that lose most of their digits: a right backward is right or cannot be told, a wrong one is never right."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

import nbautograd
from nbautograd import gradcheck

pytestmark = pytest.mark.usefixtures("without_fixes")

CONDITIONS = (1e5, 1e7, 1e9, 1e10, 1e12)


def matrix(condition, seed, symmetric=False):
    generator = torch.Generator().manual_seed(seed)
    first, second = (torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=generator))[0] for _ in range(2))
    sizes = torch.logspace(0, -float(torch.tensor(condition).log10()), 4, dtype=torch.float64)
    made = (first * sizes) @ (first.mT if symmetric else second)
    return ((made + made.mT) / 2 if symmetric else made).requires_grad_()


Solve = Fn.of("Solve", "a, b: x = torch.linalg.solve(a, b); save(a, x); return x",
    "grad: a, x = saved; back = torch.linalg.solve(a.mT, grad); return -back @ x.mT, back")  # fmt: skip
WrongSolve = Solve.of("WrongSolve",
    backward="grad: a, x = saved; back = torch.linalg.solve(a.mT, grad); return back @ x.mT, back")  # fmt: skip
Inverse = Fn.of("Inverse", "a: inverse = torch.linalg.inv(a); save(inverse); return inverse",
    "grad: (inverse,) = saved; return -inverse.mT @ grad @ inverse.mT")  # fmt: skip
WrongInverse = Inverse.of("WrongInverse",
    backward="grad: (inverse,) = saved; return -inverse @ grad @ inverse.mT")  # fmt: skip


def rhs(seed):
    return torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()


def cholesky(a):
    return torch.linalg.cholesky((a + a.mT) / 2)


def logdet(a):
    return torch.logdet((a + a.mT) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_right_backward_is_never_called_wrong(condition, seed):
    a, spd = matrix(condition, seed), matrix(condition, seed, symmetric=True)
    for fn, inputs in ((Solve, (a, rhs(seed))), (Inverse, (a,)), (cholesky, (spd,)), (logdet, (spd,))):
        assert gradcheck(fn, inputs, order=1, hints="where").verdict in ("right", "cannot tell")


@pytest.mark.slow
@pytest.mark.parametrize("fn", [WrongSolve, WrongInverse])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_wrong_backward_is_never_called_right(condition, fn):
    inputs = (matrix(condition, 0), rhs(0))[: 1 + (fn is WrongSolve)]
    assert gradcheck(fn, inputs, order=1, hints="what").verdict in ("wrong", "cannot tell")


@pytest.mark.parametrize("condition", CONDITIONS[:3])
def test_up_to_a_thousand_million_an_inverse_is_told_right_from_wrong(condition):
    a = matrix(condition, 2)
    assert gradcheck(Inverse, a, order=1).verdict == "right"
    assert gradcheck(WrongInverse, a, order=1).verdict == "wrong"


# A right solve that rounds otherwise where the matrix is not contiguous, as other libraries do.
RoundsByLayout = Solve.of("RoundsByLayout", "a, b: x = torch.linalg.solve(a, b); "
    "x = x if a.is_contiguous() else x * (1 + 1e-7); save(a, x); return x")  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_what_rounds_otherwise_in_another_layout_is_not_called_wrong_for_it(seed):
    report = gradcheck(RoundsByLayout, (matrix(1e12, seed), rhs(seed)), order=1, hints="where")
    assert report.verdict in ("right", "cannot tell")


def test_a_backward_that_rounds_more_than_it_is_off_says_so():
    report = gradcheck(Solve, (matrix(1e12, 0), rhs(0)), order=1)
    if report.blocks[0, 1].verdict == "match":
        pytest.skip("this torch's solve loses fewer digits here")
    assert "backward noise" in {block.reason for block in report.blocks.values()}


# 1 - x where the target is exactly 1, x elsewhere; backward is off by one part in a hundred thousand.
Paired = Fn.of("Paired", "x, target: save(target); return torch.where(target == 1, 1 - x, x)",
    "grad_output: (target,) = saved; "
    "return 1.00001 * torch.where(target == 1, -grad_output, grad_output), None")  # fmt: skip


def test_what_a_last_bit_switches_is_no_rounding():
    target = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.3, 0.7, -1.1], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Paired.apply, (x, target), order=1).blocks[0, 0].verdict == "mismatch"


@pytest.mark.parametrize("seed", range(4))
def test_a_very_sure_softmax_is_right(seed: int) -> None:
    x = draw(6, 5, seed=seed).detach() * 9
    assert nbautograd.gradcheck(lambda x: x.log_softmax(-1), x.requires_grad_(), order=1).verdict == "right"


@pytest.mark.parametrize("value", [4.826984902407649, 0.3, 1.7, -7.1])
def test_the_rounding_of_a_backward_is_not_held_against_it(value: float) -> None:
    def normed(x, w):
        return torch.nn.functional.layer_norm(x, (1,), w)

    x, w = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert nbautograd.gradcheck(normed, (x, w), order=1).verdict != "wrong"
