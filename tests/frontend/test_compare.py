"""The comparison on a page: values side by side, what differs, the two graphs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from playwright.sync_api import expect
from widget_page import button, panel, words

import nbautograd
from nbautograd.messages import text

pytestmark = pytest.mark.browser


# A product whose second gradient is the first one's.
Product = Fn.of("Product", "a, b: save(a, b); return a * b", "g: _, b = saved; return g * b, g * b")


@pytest.fixture
def comparison() -> Any:
    torch.manual_seed(0)
    a, b = (torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
    return nbautograd.compare(Product, torch.mul, (a, b), sizes=(), graph=True, time=True)


def test_rows_say_what_is_equal_and_what_is_not_beside_both_graphs(show: Any, comparison: Any) -> None:
    page = show(comparison)
    page.get_by_text(words("views.part.evidence")).click()
    tables = page.get_by_role("group", name=words("views.caption.comparison", first="Product", second="mul"))
    wrong, equal = (tables.locator("tbody tr").nth(k) for k in range(2))
    expect(equal).to_contain_text(words("views.compare.equal"))
    expect(wrong).to_contain_text(words("views.comparison.gradient", name="b"))
    expect(wrong.locator("strong")).to_contain_text(words("views.compare.difference"))
    expect(wrong.locator("canvas")).to_have_count(3)  # Function's, reference's, difference
    expect(tables.first).to_be_visible()
    drawings = page.locator("svg.drawing.still")
    expect(drawings).to_have_count(2)
    for k, node in enumerate(("Product", "MulBackward0")):
        expect(drawings.nth(k)).to_contain_text(node)
        assert {"a", "b", "output"} <= set(drawings.nth(k).locator("text tspan, text").all_text_contents())


def test_the_summary_leads_to_it(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, comparison=samples.comparison(agree=False)))
    expect(page.get_by_role("tabpanel").locator("p:has(button) code", has_text="torch.mul")).to_be_visible()
    button(page, "views.part.compare").click()
    shown, gradient = panel(page, "compare"), text("views.comparison.gradient", name="a")
    expect(shown.locator(".verdict.bad").first).to_be_visible()
    said = words("views.comparison.wrong", function="f", reference="torch.mul", names=gradient)
    expect(shown).to_contain_text(said)
