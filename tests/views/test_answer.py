"""The answer: the one sentence that a report begins with."""

from __future__ import annotations

from dataclasses import replace

import sample_values as samples

from nbautograd.core.findings import Finding
from nbautograd.views.answer import answer

LOST = Finding("double_backward_wrong", "bug", "report.as_text", {"text": "`x` carries no graph."})


def second_order_wrong():
    check = samples.gradcheck()
    return replace(check, verdict="wrong", findings=(LOST,), order2=replace(check, verdict="wrong", findings=(LOST,)))


def test_when_only_the_second_derivative_is_wrong_the_first_is_said_to_be_right():
    told = answer(second_order_wrong())
    assert told.headline == "LinearFunction: second derivatives are wrong."
    assert told.aside == "First derivatives are right."
    assert [f.code for f in told.findings] == ["double_backward_wrong"]
    assert len(told.evidence) == 1
    assert "entries" in told.evidence[0]


def test_a_wrong_first_derivative_comes_first():
    check = replace(samples.gradcheck(wrong=True), order2=second_order_wrong().order2)
    told = answer(check)
    assert told.headline == "LinearFunction: backward is wrong for `weight`."
    assert told.evidence[-1] == "Second derivatives are wrong."
