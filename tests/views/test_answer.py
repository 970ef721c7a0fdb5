"""The answer: the one sentence that a report begins with."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_values as samples
import torch

from nbautograd import gradcheck
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
    assert (told.tone, told.headline) == ("right", "LinearFunction: backward is right.")
    assert told.findings == (RISK,)
    assert told.others == ()
    assert len(told.evidence) == 1
    assert "entries" in told.evidence[0]


def test_zeros_that_agree_are_said_to_be_zeros():
    functions = (lambda x: x.clamp(min=0), torch.exp)
    x = -torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert ["0 at" in str(gradcheck(fn, (x,))) for fn in functions] == [True, False]


@pytest.mark.parametrize(("factors", "counted"), [([float("nan"), -2, -2], "2 of the entries"), ([1, -2, -2], "")])
def test_finite_entries_that_differ_are_counted_where_others_are_nan(factors, counted):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, g):
            return torch.tensor(factors, dtype=g.dtype) * g

    evidence = answer(gradcheck(Doubled, (torch.ones(3, dtype=torch.float64, requires_grad=True),))).evidence
    assert "".join(evidence[1:]).startswith(counted)
    assert len(evidence) == 1 + bool(counted)


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
    assert told.headline == "LinearFunction: backward is wrong for `weight`."
    assert not any("Second" in sentence for sentence in told.evidence)


def test_a_comparison_writes_what_differs_with_enough_digits_and_what_agrees_briefly():
    pair = (samples.value("a", [1.00001, 2 / 3]), samples.value("a", [1.0, 2 / 3]))
    near = samples.compared("gradient", pair, 1e-5)
    shown = text(replace(samples.comparison(agree=False), quantities=(near,)))
    assert "1.00001, 0.666667  1.0, 0.666667  largest difference" in " ".join(shown.split(" "))
    shown = text(replace(samples.comparison(), quantities=(replace(near, verdict="right"),)))
    assert shown.count("1.0, 0.6667  ") == 2
