"""Mutants of a Function: wrong by autograd's own word, accepted by it, each another one, and the right one is none."""

from __future__ import annotations

import torch
from fn import Fn

from nbautograd.course.mutants import copy, kills, mutants

Outer = Fn.of(
    "Outer",
    "a, b: save(a, b); return a[:, None] * b",
    "g: a, b = saved; return (g * b).sum(1), (g * a[:, None]).sum(0)",
)


def point(seed):
    numbers = torch.randn(7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return numbers[:3], numbers[3:]


def objects(function):
    """Compare with autograd at a point that the mutants were not chosen at.

    torch's gradcheck would let two of them through: it sends unit vectors, of which the square is the same.
    """
    leaves = [x.clone().requires_grad_() for x in point(10)]
    g = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    right = torch.autograd.grad(leaves[0][:, None] * leaves[1], leaves, g)
    found = torch.autograd.grad(function.apply(*leaves), leaves, g.clone(), materialize_grads=True)
    assert all(torch.allclose(a, b) for a, b in zip(found, right, strict=True))


POINTS = [point(seed) for seed in range(3)]


def test_each_is_wrong_by_autograds_word_and_the_right_one_is_not():
    made = mutants(Outer, POINTS)
    assert len(made) == 20
    assert [str(mutant) for mutant in made if not kills(objects, mutant.function)] == []
    assert not kills(objects, Outer)
    assert not kills(objects, copy(Outer))
    assert copy(Outer) is not Outer


def test_each_runs_and_is_another_one():
    found = []
    for mutant in mutants(Outer, POINTS):
        a, b = (x.clone().requires_grad_() for x in POINTS[0])
        y = mutant.function.apply(a, b)
        torch.testing.assert_close(y, a[:, None] * b)
        found.append(torch.autograd.grad((y * y.detach()).sum(), (a, b), materialize_grads=True))
    assert len({tuple(torch.cat(pair).tolist()) for pair in found}) > 15  # one point alone does not tell all apart


def test_the_same_seed_makes_the_same_ones_another_seed_others():
    first, again, other = ([str(m) for m in mutants(Outer, POINTS, seed=s)] for s in (0, 0, 1))
    assert first == again != other


def test_what_cannot_be_read_or_is_wrong_to_begin_with_has_none():
    hidden = type("Hidden", (Outer,), {"backward": staticmethod(lambda ctx, g: (None, None))})
    raising = type("Raising", (Outer,), {"forward": staticmethod(lambda ctx, a, b: 1 / 0)})
    assert mutants(hidden, POINTS) == ()
    assert mutants(raising, POINTS) == ()


def test_a_test_objects_by_raising_or_by_false():
    assert kills(lambda function: False, Outer)
    assert kills(lambda function: torch.tensor(False), Outer)
    assert not kills(lambda function: torch.tensor(True), Outer)
    assert kills(lambda function: 1 / 0, Outer)
    assert not kills(lambda function: None, Outer)
