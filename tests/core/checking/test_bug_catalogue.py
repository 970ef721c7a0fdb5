"""The shared sample of mistakes, where it is at hand: all found, at least 95 % named first, nothing correct accused."""

from __future__ import annotations

from types import ModuleType

import bug_catalogue
import pytest

import nbautograd


@pytest.fixture(scope="module")
def catalogue() -> ModuleType:
    return bug_catalogue.load()


@pytest.mark.slow
def test_all_mistakes_are_detected_and_nearly_all_named(catalogue: ModuleType) -> None:
    missed, unnamed, count = [], [], 0
    for name, bug in catalogue.BUGS.items():
        if bug.kind == "not_a_bug":
            continue
        report = nbautograd.gradcheck(bug.fn, bug.make_inputs())
        count += 1
        if bug.family == "second_order" and bug.expected.startswith("double_backward"):
            if report.verdict != "right" or report.order2 is None:
                missed.append(name)
                continue
            report = report.order2  # where a Function may as well be unable to be differentiated again
        if bug.kind == "bug" and report.verdict != "wrong":
            missed.append(name)
        first = report.findings[0] if report.findings else None
        # what was mended has the name of the change, which was tried and makes all of it right
        mended = first is not None and first.fix is not None and first.message_id.startswith("causes.mended")
        if not mended and (first is None or first.code not in (bug.expected, *bug.also_ok)):
            unnamed.append(name)
    assert missed == []
    assert len(unnamed) <= 0.05 * count, unnamed


@pytest.mark.slow
def test_nothing_correct_is_accused(catalogue: ModuleType) -> None:
    accused = {}
    for name, bug in catalogue.BUGS.items():
        for fn in filter(None, (bug.fixed, bug.fn if bug.kind in ("not_a_bug", "lint") else None)):
            report = nbautograd.gradcheck(fn, bug.make_inputs())
            if report.verdict == "wrong":
                accused[name] = report.findings
    assert accused == {}


@pytest.mark.slow
def test_half_of_the_wrong_values_get_a_tried_fix(catalogue: ModuleType) -> None:
    values = [b for b in catalogue.BUGS.values() if b.family == "values" and b.kind == "bug"]
    fixed = [b.name for b in values if any(f.fix for f in nbautograd.gradcheck(b.fn, b.make_inputs()).findings)]
    assert len(fixed) >= len(values) / 2
