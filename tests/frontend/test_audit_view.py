"""An audit on a page: the answer with its causes, a row per situation, and the ordinary report one click away."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from playwright.sync_api import expect

import nbautograd

pytestmark = pytest.mark.browser


class Doubled(torch.autograd.Function):
    """Wrong by a factor."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad * x.exp()


def test_the_answer_the_rows_and_the_report_of_a_call_are_there(show: Any) -> None:
    with nbautograd.audit(budget=3600.0, per_function=3600.0) as audit:
        Doubled.apply(torch.randn(3, requires_grad=True))
        Doubled.apply(torch.randn(3, 2, requires_grad=True))
    page = show(audit.report())
    expect(page.locator("strong").first).to_contain_text("The one custom gradient that ran is wrong")
    rows = page.locator("table").filter(has_text="Called with").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("wrong")
    whole = page.locator("details table, details svg").first
    expect(whole).to_be_hidden()
    expect(page.locator("pre").filter(has_text="backward is wrong for")).to_have_count(0)
    page.get_by_text("The report on this call").click()
    expect(whole).to_be_visible()
    expect(page.get_by_text("multiply by 0.5")).to_have_count(1)  # the cause stands above the report, not in it too
    expect(page.locator("details").get_by_role("button", name="d output / d x")).to_have_count(0)  # nothing to select
