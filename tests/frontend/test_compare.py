"""The comparison on a page: values side by side, what differs, the two graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from playwright.sync_api import expect

import nbautograd

pytestmark = pytest.mark.browser


# A product whose second gradient is the first one's.
Product = Fn.of("Product", "a, b: save(a, b); return a * b", "g: _, b = saved; return g * b, g * b")


@pytest.fixture
def comparison() -> Any:
    torch.manual_seed(0)
    a, b = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    return nbautograd.compare(Product, torch.mul, (a, b), sizes=(), graph=True, time=True)


def test_rows_say_what_is_equal_and_what_is_not(show: Any, comparison: Any) -> None:
    page = show(comparison)
    page.get_by_text("Evidence").click()
    rows = page.get_by_role("group", name="Product compared with mul").locator("tbody tr")
    expect(rows.nth(1)).to_contain_text("equal in every element")
    expect(rows.nth(0)).to_contain_text("gradient of b")
    expect(rows.nth(0).locator("strong")).to_contain_text("largest difference")
    expect(rows.nth(0).locator("canvas")).to_have_count(3)  # Function's, reference's, difference
    expect(page.get_by_role("group", name="Product compared with mul").first).to_be_visible()


def test_both_graphs_stand_there_with_the_same_names(show: Any, comparison: Any) -> None:
    page = show(comparison)
    page.get_by_text("Evidence").click()
    drawings = page.locator("svg.drawing.still")
    expect(drawings).to_have_count(2)
    for k, node in enumerate(("Product", "MulBackward0")):
        expect(drawings.nth(k)).to_contain_text(node)
        assert {"a", "b", "output"} <= set(drawings.nth(k).locator("text tspan, text").all_text_contents())


def test_the_summary_leads_to_it(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, comparison=samples.comparison(agree=False)))
    expect(page.get_by_role("tabpanel").locator("p:has(button) code", has_text="torch.mul")).to_be_visible()
    page.get_by_role("button", name="Compare").click()
    panel = page.get_by_role("tabpanel", name="Compare")
    expect(panel.locator(".verdict.bad").first).to_have_text("✗ wrong")
    expect(panel).to_contain_text("f does not agree with torch.mul in the gradient of a")
