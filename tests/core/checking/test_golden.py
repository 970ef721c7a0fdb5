"""The checker's reports are those of the golden file: whoever changes one writes the file anew, and says why."""

from __future__ import annotations

import json

import pytest
from golden_cases import GOLDEN, SETS, written
from own_mistakes import in_second_order

REPORTS = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_reports_are_the_golden_ones() -> None:
    now = json.loads(written())
    assert sorted(now) == sorted(REPORTS)
    changed = {name: (REPORTS[name], now[name]) for name in REPORTS if REPORTS[name] != now[name]}
    assert changed == {}


@pytest.mark.parametrize(
    ("room", "mistake"), [pytest.param(room, m, id=m.name) for room, set in SETS.items() for m in set]
)
def test_the_golden_report_names_a_mistake_first_and_accuses_nothing_that_is_right(room, mistake) -> None:
    report = REPORTS[f"{room}/{mistake.name}"]
    bugs = [finding["code"] for finding in report["findings"] if finding["kind"] == "bug"]
    if in_second_order(mistake):
        assert (report["verdict"], report["findings"][0]["code"]) == ("right", "not_twice_differentiable")
        verdict, *bugs = report["order2"]
        assert (verdict, bugs[0]) == ("wrong", "double_backward_wrong")
    elif mistake.codes:
        assert (report["verdict"], bugs[0] in mistake.codes) == ("wrong", True)
    else:
        empty = all(block.partition("/")[2].startswith("0 ") for block in report["blocks"].values())
        assert (report["verdict"], bugs) == ("cannot tell" if empty else "right", [])  # of no entries nothing is known
