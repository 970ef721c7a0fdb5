"""A cause is named only if it holds at fresh inputs and sizes; else the plain sentence says where it is wrong."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw, first

from nbautograd.core.checking.points import points
from nbautograd.core.checking.problem import Problem

# whole checks, one for each kind of what is asked: `.ci/run` runs them with the slow tests
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_fixes")]


WideSum = Fn.of("WideSum", "x: return x.cumsum(1)", "g: return g.sum(1, keepdim=True).expand_as(g)")


def test_a_sum_that_is_too_wide_is_no_missing_mask() -> None:
    found = first(WideSum, draw(3, 4))
    assert found.message_id == "causes.extra_entries_wide"
    assert "mask" not in found.message


def test_data_that_is_orthonormal_stays_orthonormal_at_other_sizes() -> None:
    rotation = torch.linalg.qr(torch.rand(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    problem = Problem(lambda x, r: r @ x, (draw(3), rotation))
    with problem.session():
        problem.call()
        others = [at.inputs[1] for at in points(problem).of("together", "data")]
    assert len(others) == 2
    for other in others:
        assert torch.allclose(other @ other.T, torch.eye(len(other), dtype=torch.float64))


# Wrong at the first two elements, where b happens to be small; what changes that is refused.
FirstTwo = Fn.of("FirstTwo", 'a, b: small = b.abs() < 1; '
    'if a.shape != (6,) or not small.equal(torch.arange(6) < 2): raise ValueError("outside"); '
    'save(a, b); return a.square() * b',
    "g: a, b = saved; share = torch.cat([a[:2].sin(), 2 * a[2:]]); "
    "return g * share * b, g * a.square()")  # fmt: skip


def test_a_condition_that_holds_at_the_same_elements_wherever_it_is_asked_is_none():
    b = torch.tensor([0.4, -0.5, 1.6, -2.0, 1.7, 2.1], dtype=torch.float64, requires_grad=True)
    found = first(FirstTwo.apply, torch.linspace(-1.2, 1.3, 6, dtype=torch.float64, requires_grad=True), b)
    assert "where" not in found.params
