"""The driver of relations: what raises, what differs, and what is only rounding, each once for all of them."""

from __future__ import annotations

import pytest
import torch
from fn import Fn
from own_mistakes import draw

from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.relations import Variant, inputs_laid_out, relation
from nbautograd.core.findings import Finding

ONE, NEAR, TWO = (torch.tensor([x], dtype=torch.float64) for x in (1.0, 1.0 + 1e-9, 2.0))
WRONG, RAISED = (Finding("wrong_elsewhere", "bug", "causes.wrong_elsewhere", {"input": name}) for name in "xy")


def raising(error):
    def answer():
        raise error

    return answer


def variant(answer, expected, **more) -> Variant:
    return Variant(answer, expected, lambda k: WRONG, lambda error: RAISED, **more)


@pytest.mark.parametrize(
    ("one", "finding"),
    [
        (variant(lambda: [ONE], lambda: [ONE]), None),
        (variant(lambda: [ONE], lambda: [TWO]), WRONG),
        (variant(lambda: [ONE, TWO], lambda: [ONE]), WRONG),
        (variant(lambda: [NEAR], lambda: [ONE], rel=1e-8), None),
        (variant(lambda: [NEAR], lambda: [ONE], rel=1e-11), WRONG),
        (variant(lambda: [ONE], lambda: [None], low=2.0), None),
        (variant(lambda: [ONE], lambda: [TWO], bears_out=lambda k, found, right: False), None),
        (variant(lambda: [ONE, ONE], lambda: [TWO, TWO], bears_out=lambda k, found, right: k == 1), WRONG),
        (variant(raising(RuntimeError("view")), lambda: [ONE]), RAISED),
        (variant(raising(RuntimeError("view")), None), RAISED),
        (variant(lambda: [ONE], None), None),
    ],
)
def test_what_one_variant_shows(one, finding):
    assert one.broken() is finding


def test_what_raises_without_the_change_says_nothing_of_it():
    with pytest.raises(RuntimeError, match="singular"):
        variant(raising(RuntimeError("view")), raising(RuntimeError("singular"))).broken()


def test_only_the_first_variant_that_does_not_hold_is_told():
    asked = []

    @relation
    def some(*names):
        for name in names:
            asked.append(name)
            yield variant(lambda: [ONE], lambda name=name: [ONE if name == "holds" else TWO])

    assert list(some("holds", "breaks", "breaks")) == [WRONG]
    assert asked == ["holds", "breaks"]


# Cannot be called at a matrix of one number, whatever its layout.
Inverse = Fn.of("Inverse", "x: y = torch.linalg.inv(x); save(y); return y", "g: (y,) = saved; return -y.T @ g @ y.T")


def test_a_layout_is_no_reason_where_the_same_numbers_raise_without_it():
    problem = Problem(Inverse, (draw(3, 3),))
    with problem.session():
        problem.call()
        with pytest.raises(torch.linalg.LinAlgError):
            list(inputs_laid_out(problem))
