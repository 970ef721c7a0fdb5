"""Mistakes that were written before anyone looked whether they are found, and odd Functions that are right."""

from __future__ import annotations

import mistakes_in_layers
import mistakes_in_plumbing
import mistakes_in_reductions
import odd_but_right
import pytest
from own_mistakes import Mistake, in_second_order

import nbautograd

UNSEEN = [*mistakes_in_layers.MISTAKES, *mistakes_in_plumbing.MISTAKES, *mistakes_in_reductions.MISTAKES]


@pytest.mark.slow
@pytest.mark.parametrize("mistake", UNSEEN, ids=lambda m: m.name)
def test_an_unseen_mistake_is_found_and_named_first(mistake: Mistake) -> None:
    report = nbautograd.gradcheck(mistake.fn, mistake.inputs(), hints="where")
    if in_second_order(mistake):
        assert (report.verdict, report.findings[0].code) == ("right", "not_twice_differentiable")
        assert report.order2 is not None
        report = report.order2
    assert report.verdict == "wrong"
    assert report.findings[0].code in mistake.codes


@pytest.mark.slow
@pytest.mark.parametrize("mistake", odd_but_right.CORRECT, ids=lambda m: m.name)
def test_an_odd_function_that_is_right_is_not_accused(mistake: Mistake) -> None:
    report = nbautograd.gradcheck(mistake.fn, mistake.inputs())
    assert [f for f in report.findings if f.kind == "bug"] == []
    entries = sum(block.entries for block in report.blocks.values())
    assert report.verdict == ("right" if entries else "cannot tell")  # of no entries nothing is known
