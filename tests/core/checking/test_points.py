"""One stream of points: who asks second is given what was computed for the first."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

from nbautograd.core.checking.points import KINDS, points
from nbautograd.core.checking.problem import Problem


def test_an_argument_that_tells_a_size_follows_it_where_it_has_to() -> None:
    problem = Problem(torch.layer_norm, (draw(2, 5), (5,), draw(5)))
    with problem.session():
        assert [at.inputs[1] for at in points(problem).of("together")] == [(5,), (6,)]


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "given"])
def test_points_of_a_seed_are_the_same_whoever_asked_before(kind) -> None:
    def scaled(x, w, factor, mask):
        return x * w * factor * mask

    def values(before):
        problem = Problem(scaled, (draw(3, 2), draw(3, 2, seed=1), 0.5, torch.tensor([True, False])), 3)
        with problem.session():
            problem.call()
            for other in before:
                list(points(problem).of(other))
            return [
                [x.tolist() if isinstance(x, torch.Tensor) else x for x in at.inputs] for at in points(problem).of(kind)
            ]

    assert values(()) == values([k for k in KINDS if k != kind])


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_a_matrix_that_is_read_as_hermitian_stays_what_was_given(dtype: torch.dtype) -> None:
    half = draw(3, 3).detach().to(dtype) + (0 if dtype is torch.float64 else 1j * draw(3, 3).detach().t())
    given = (half + half.mH).requires_grad_()
    Largest = Fn.of("Largest", "x: w, v = torch.linalg.eigh(x); save(v[:, -1:]); return w[-1]",
        "g: (v,) = saved; return g * v @ v.mH")  # fmt: skip
    problem = Problem(Largest, (given,))
    with problem.session():
        assert points(problem).symmetric == {0}
        at = points(problem).first("given")
        assert torch.equal(at.inputs[0], given)
