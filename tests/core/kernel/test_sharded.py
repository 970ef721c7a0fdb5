"""Two ranks beside one process: right layers are right, and the relation of a wrong gradient is named."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import sharded_layers as layers
import torch
from said import pattern
from torch import Tensor

from nbautograd import compare
from nbautograd.core.checking.problem import Problem
from nbautograd.core.kernel.golden import Pair, Values, run
from nbautograd.core.kernel.ranks import SIGNALS, cut_along
from nbautograd.core.kernel.sharded import Related
from nbautograd.errors import CallError


def drawn(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(s, generator=generator).requires_grad_() for s in shapes)


LINEAR, ROWS = drawn((5, 8), (6, 8)), drawn((6, 8), (8,))
LOGITS = (*drawn((7, 10)), torch.tensor([0, 4, 5, 9, 2, 7, 7]))
CASES: list[tuple[Any, Any, Any, dict[int, int], set[str]]] = [
    (layers.column_linear, layers.linear, LINEAR, {1: 0}, set()),
    (layers.column_linear_without_reduce, layers.linear, LINEAR, {1: 0}, {"partial_sum"}),
    (layers.row_linear, layers.linear, LINEAR, {0: 1, 1: 1}, set()),
    (layers.row_linear_reduced_twice, layers.linear, LINEAR, {0: 1, 1: 1}, {"times"}),
    (layers.sequence_norm, layers.norm, ROWS, {0: 0}, set()),
    (layers.sequence_norm_without_reduce, layers.norm, ROWS, {0: 0}, {"partial_sum"}),
    (layers.vocabulary_cross_entropy, layers.cross_entropy, LOGITS, {0: 1}, set()),
    (layers.vocabulary_cross_entropy_unmasked, layers.cross_entropy, LOGITS, {0: 1}, {"region"}),
    (layers.scattered_tanh, layers.tanh, ROWS[:1], {}, set()),
    (layers.scattered_tanh_without_gather, layers.tanh, ROWS[:1], {}, {"local_shard"}),
    (layers.gathered_tanh, layers.tanh, ROWS[:1], {0: 0}, set()),
    (layers.gathered_tanh_exchanged, layers.tanh, ROWS[:1], {0: 0}, {"other_rank"}),
]


@pytest.mark.parametrize(
    ("parallel", "single", "inputs", "placements", "relations"),
    [pytest.param(*case, id=case[0].__name__, marks=pytest.mark.nightly) for case in CASES],
)
def test_two_ranks_beside_one_process(parallel, single, inputs, placements, relations):
    before = {one: signal.getsignal(one) for one in SIGNALS}, dict(os.environ)
    report = compare(parallel, single, inputs, ranks=2, placements=placements, timeout=60)
    assert ({one: signal.getsignal(one) for one in SIGNALS}, dict(os.environ)) == before
    named = {finding.message_id.removeprefix("compare.").removeprefix("sharded_") for finding in report.findings}
    assert (report.verdict, named) == ("wrong" if relations else "right", relations), report
    assert report.function == parallel.__name__
    assert [
        one.values for one in report.quantities if one.values
    ] == []  # none is shown as None: they stay in their rank


@pytest.mark.nightly
def test_a_hang_ends_with_the_stacks_of_both_ranks() -> None:
    report = compare(layers.column_linear_that_hangs, layers.linear, LINEAR, ranks=2, placements={1: 0}, timeout=15)
    assert report.verdict == "cannot tell"
    assert getattr(report.reason, "message_id", "") == "compare.ranks_hang"
    assert "rank 0:" in report.trace
    assert "rank 1:" in report.trace
    assert report.trace.count("in waits") == 2


def test_what_the_ranks_cannot_import_is_refused() -> None:
    with pytest.raises(CallError, match=pattern("compare.ranks_not_importable")):
        compare(lambda x: x.sin(), torch.sin, ROWS[:1], ranks=2)


# what each of three ranks returns as its gradient, from the right one and its own number
RELATIONS: dict[str, tuple[dict[int, int], Callable[[Tensor, int], Tensor]]] = {
    "": ({}, lambda g, r: g),
    "times": ({}, lambda g, r: 3 * g),
    "times 1/3": ({}, lambda g, r: g / 3),
    "partial_sum": ({}, lambda g, r: g * (0.2, 0.5, 0.3)[r]),
    "local_shard": ({}, lambda g, r: torch.cat([c * (k == r) for k, c in enumerate(g.chunk(3))])),
    "one_rank": ({}, lambda g, r: g if r == 2 else 0.7 * g),
    "other_rank": ({0: 0}, lambda g, r: g.chunk(3)[(r + 1) % 3]),
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_relation_of_a_gradient(relation: str) -> None:
    placements, change = RELATIONS[relation]
    single = Problem(layers.tanh, drawn((6, 5)))
    with single.session():
        single.call()
        pair = Pair(single, single)
        draws = list(pair.draws(4, 0))
        measured = [pair.measure(draw, 2) for draw in draws]
        values = [
            [Values((y, change(g, rank)), 1) for y, g in (run(single, draw).tensors for draw in draws)]  # type: ignore[misc, arg-type]
            for rank in range(3)
        ]
        found = Related(pair, measured, values, placements).judged()
    assert [one.message_id.removeprefix("compare.sharded_") for one in found.findings] == [
        relation.partition(" ")[0]
    ] * bool(relation)


@pytest.mark.parametrize(
    ("whole", "part", "dim"),
    [((4, 6), (4, 3), 1), ((4, 6), (4, 6), None), ((4, 6), (2, 3), None), ((4,), (4, 1), None)],
)
def test_where_a_shape_was_cut(whole: tuple[int, ...], part: tuple[int, ...], dim: int | None) -> None:
    assert cut_along(whole, part, 2) == dim
