"""Edges know what the latest check of their Function's very class said, and nothing else does."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from fn import Fn

import nbautograd

FORWARD = "x, w: save(x, w); return x * w"
RIGHT = "g: x, w = saved; return g * w, g * x"


def product(backward):
    return Fn.of("Product", FORWARD, backward)


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def check(fn, *inputs):
    nbautograd.gradcheck(fn, inputs or (numbers(3), numbers(3)))


def check_one(cls):
    check(lambda w: cls.apply(torch.ones(3, dtype=torch.float64), w), numbers(3))


def check_exchanged(cls):
    check(lambda a, b: cls.apply(b, a), numbers(3), numbers(3))


def replace_backward(cls):
    cls.backward = staticmethod(product(RIGHT).backward)


def scale_by(number):
    def step(_cls):
        globals()["scaled"] = eval(f"lambda g: {number} * g")

    return step


BY_HELPER = "g: x, w = saved; return scaled(g) * w, g * x"
WRONG = "g: x, w = saved; return 2 * g * w, g * x"
AT_THREE = "g: x, w = saved; return g * w * (2 if len(x) == 3 else 1), g * x"


def check_two(cls):
    check(cls, numbers(2), numbers(2))


def check_another(cls):
    check(product(WRONG))


ROWS = {
    "unchecked": (WRONG, [], []),
    "checked": (WRONG, [check], ["x"]),
    "the other argument since": (WRONG, [check, check_one], ["x"]),
    "arguments exchanged": (WRONG, [check_exchanged], ["x"]),
    "another class of the name": (WRONG, [check_another], []),
    "backward replaced since": (WRONG, [check, replace_backward], []),
    "helper replaced since": (BY_HELPER, [scale_by(2), check, scale_by(1)], []),
    "helper defined again": (BY_HELPER, [scale_by(2), check, scale_by(2)], ["x"]),
    "replaced and checked": (WRONG, [check, replace_backward, check], []),
    "wrong at these shapes": (AT_THREE, [check_two, check], ["x"]),
    "right at other shapes since": (AT_THREE, [check, check_two], []),
    "right": (RIGHT, [check], []),
}


@pytest.mark.parametrize(("backward", "steps", "wrong"), ROWS.values(), ids=ROWS)
def test_the_latest_check_of_the_very_class_counts(backward, steps, wrong):
    cls = product(backward)
    for step in steps:
        step(cls)
    made = nbautograd.graph(cls.apply(numbers(3), numbers(3)).sum())
    assert [edge.name for edge in made.edges if edge.wrong] == wrong
    assert all("3" in str(edge.wrong) for edge in made.edges if edge.wrong)  # at which shapes


def test_a_report_has_its_own_verdict_whatever_an_earlier_check_said():
    cls = product(AT_THREE)
    check(cls)
    for size, wrong in ((2, []), (3, ["x"])):
        report = nbautograd.inspect(cls, numbers(size), numbers(size))
        assert [edge.name for edge in report.graph.edges if edge.wrong] == wrong


def wrong_with_a_tensor():
    weight = numbers(3)
    cls = product(WRONG)
    cls.backward = staticmethod(lambda ctx, g: (weight * 0 + g, g, cls)[:2])  # as a closure may
    check(cls, numbers(3), weight)
    edges = nbautograd.graph(cls.apply(numbers(3), weight).sum()).edges
    return weakref.ref(globals().pop("Product")), weakref.ref(weight), [str(edge.wrong) for edge in edges]


def test_a_verdict_keeps_neither_the_class_nor_its_tensors_alive():
    *kept, wrong = wrong_with_a_tensor()
    gc.collect()
    assert any(wrong)
    assert [one() for one in kept] == [None, None]
