"""One stream of points: who asks second is given what was computed for the first."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

from nbautograd.core.checking.point import Point
from nbautograd.core.checking.points import KINDS, points
from nbautograd.core.checking.problem import Problem

# The product and the square, of which backward doubles the second one's gradient.
Twice = Fn.of("Twice", "x, w: save(x, w); return x * w, x * x", "g, h: x, w = saved; return g * w + 4 * h * x, g * x")
# A backward that writes into what it saved.
Writes = Fn.of("Writes", "x: save(x * x); return x**3", "g: (square,) = saved; return g * square.mul_(3)")


def test_a_point_is_called_once_and_through_single_outputs_too() -> None:
    problem = Problem(Twice, (draw(3), draw(3)))
    with problem.session():
        at = Point(problem, problem.fresh())
        assert (at.works, at.finite, at.node is None) == (True, True, False)
        before = problem.meter.runs
        first, second = at.through(0), at.through(1)
        assert first.outputs is second.outputs is at.outputs
        assert second is at.through(1)
        assert [first.wrong(k) for k in (0, 1)] == [False, False]
        assert [second.wrong(k) for k in (0, 1)] == [True, False]
        assert [at.wrong(k) for k in (0, 1)] == [True, False]
        spent = problem.meter.runs - before
        assert [at.wrong(0), second.wrong(0), at.trusts(0)] == [True, True, True]
        assert problem.meter.runs - before == spent  # all of that is known


def test_right_gradients_are_those_of_autograd_and_borne_out() -> None:
    problem = Problem(Twice, (draw(3), draw(3)))
    with problem.session():
        at = Point(problem, problem.fresh()).through(1)
        x = problem.inputs[0].detach()
        assert at.right is not None
        assert torch.allclose(at.right[0], 2 * at.v[1] * x)
        assert at.is_right(0, at.right[0]) is True
        assert at.is_right(0, at.gradients[0]) is False
        assert at.is_right(1, torch.zeros_like(x)) is not False


def test_an_argument_that_tells_a_size_follows_it_where_it_has_to() -> None:
    problem = Problem(torch.layer_norm, (draw(2, 5), (5,), draw(5)))
    with problem.session():
        assert [at.inputs[1] for at in points(problem).of("together")] == [(5,), (6,)]


def test_the_next_backward_does_not_meet_what_one_left() -> None:
    problem = Problem(Writes, (draw(4),))
    with problem.session():
        at = Point(problem, problem.fresh())
        once, twice = at.pull(), at.pull()
        assert torch.equal(once[0], twice[0])
        assert at.is_right(0, twice[0]) is True


def test_the_stream_gives_the_same_points_to_all_and_ends_with_the_session() -> None:
    problem = Problem(torch.mm, (draw(2, 3), draw(3, 4)))
    with problem.session():
        problem.call()
        stream = points(problem)
        near = list(points(problem).of("given", "near"))
        assert all(a is b for a, b in zip(near, stream.of("given", "near"), strict=True))
        assert [group for group, _ in stream.groups] == [((0, 0),), ((1, 1),), ((0, 1), (1, 0))]
        assert [at.shapes for at in stream.of("single")] == [[(4, 3), (3, 4)], [(2, 3), (3, 6)], [(2, 4), (4, 4)]]
        again = list(stream.again.of("near"))
        assert not any(torch.equal(a.inputs[0], b.inputs[0]) for a, b in zip(near[1:], again, strict=True))
        assert [at.shapes for at in stream.again.of("together")] == [at.shapes for at in stream.of("together")]
    assert problem.stream is None


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


def test_an_edit_that_writes_into_the_inputs_leaves_the_point_as_it_was() -> None:
    problem = Problem(Twice, (draw(3), draw(3)))
    with problem.session():
        at = Point(problem, problem.fresh())
        inputs, first = [x.detach().clone() for x in at.inputs], at.pull()

        def writing(ctx, g, h):
            x, w = ctx.saved_tensors
            return g * w.mul_(2), g * x.add_(1)

        at.pull(writing)
        assert all(torch.equal(x, before) for x, before in zip(at.inputs, inputs, strict=True))
        assert all(torch.equal(g, before) for g, before in zip(at.pull(), first, strict=True))


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
        assert at is not None
        assert torch.equal(at.inputs[0], given)
