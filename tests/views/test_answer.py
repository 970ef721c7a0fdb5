"""The answer: the one sentence that a report begins with."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_values as samples
import torch
from fn import Fn
from said import says

from nbautograd import gradcheck, messages
from nbautograd.core.findings import Finding
from nbautograd.errors import GradcheckError
from nbautograd.views.answer import answer
from nbautograd.views.bundle import text

LOST = Finding("double_backward_wrong", "bug", "report.as_text", {"text": "`x` carries no graph."})
RISK = Finding("not_twice_differentiable", "lint", "causes.double_backward_unsupported", {"said": "it raised"})


def second_order_wrong(order=None):
    check = samples.gradcheck()
    second = replace(check, verdict="wrong", findings=(LOST,))
    return replace(check, findings=(RISK,), order2=second, order=order)


def test_a_wrong_second_derivative_is_one_risk_below_the_verdict_of_the_first():
    told = answer(second_order_wrong())
    assert (told.tone, told.headline) == ("right", messages.text("views.headline.right", function="LinearFunction"))
    assert told.findings == (RISK,)
    assert told.others == ()
    assert len(told.evidence) == 1
    assert "entries" in told.evidence[0]


def test_zeros_that_agree_are_said_to_be_zeros():
    functions = (lambda x: x.clamp(min=0), torch.exp)
    x = -torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert [says(gradcheck(fn, (x,)), "views.evidence.zeros") for fn in functions] == [True, False]


@pytest.mark.parametrize("factors", [[float("nan"), -2, -2], [1, -2, -2]])
def test_finite_entries_that_differ_are_counted_where_others_are_nan(factors):
    doubled = Fn.of("Doubled", "x, by: ctx.by = by; return 2 * x", "g: return ctx.by * g, None")
    x, by = torch.ones(3, dtype=torch.float64, requires_grad=True), torch.tensor(factors, dtype=torch.float64)
    evidence = answer(gradcheck(doubled, (x, by))).evidence
    assert list(evidence[1:]) == [messages.text("views.evidence.finite", count=2)] * (factors[0] != 1)


def test_where_it_counts_the_headline_says_so_as_the_error_does():
    report = second_order_wrong(order=2)
    told = answer(report)
    assert told.tone == "wrong"
    with pytest.raises(GradcheckError) as raised:
        report.raise_if_wrong()
    assert str(raised.value).startswith(told.headline)
    assert told.headline != answer(second_order_wrong(order=None)).headline


def test_a_wrong_first_derivative_says_nothing_of_second_ones():
    told = answer(samples.gradcheck(wrong=True))
    assert says(told.headline, "views.headline.wrong_for", function="LinearFunction", inputs="`weight`")
    assert not any(says(told.evidence, f"views.evidence.order2.{one}") for one in ("right", "wrong", "cannot_tell"))


def test_a_comparison_writes_what_differs_with_enough_digits_and_what_agrees_briefly():
    pair = (samples.value("a", [1.00001, 2 / 3]), samples.value("a", [1.0, 2 / 3]))
    near = samples.compared("gradient", pair, 1e-5)
    shown = text(replace(samples.comparison(agree=False), quantities=(near,)))
    assert "1.00001, 0.666667  1.0, 0.666667  largest difference" in " ".join(shown.split(" "))
    shown = text(replace(samples.comparison(), quantities=(replace(near, verdict="right"),)))
    assert shown.count("1.0, 0.6667  ") == 2
