"""An audit on a page: the answer with its causes, a row per situation, and the ordinary report one click away."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from playwright.sync_api import expect
from widget_page import in_scheme, violations, words

import nbautograd
from nbautograd import messages
from nbautograd.inspection.audit_report import AuditReport

pytestmark = pytest.mark.browser


# Wrong by a factor.
Doubled = Fn.of("Doubled", "x: save(x); return x.exp()", "grad: (x,) = saved; return 2 * grad * x.exp()")


def test_the_answer_the_rows_and_the_report_of_a_call_are_there(show: Any) -> None:
    with nbautograd.audit(budget=3600.0, per_function=3600.0) as audit:
        Doubled.apply(torch.randn(3, requires_grad=True))
        Doubled.apply(torch.randn(3, 2, requires_grad=True))
    page = show(audit.report())
    expect(page.locator("strong").first).to_have_text(words("views.audit.wrong", wrong=1, names="Doubled"))
    rows = page.locator("table").filter(has_text=words("views.audit.situation")).locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first.locator(".verdict.bad")).to_have_count(1)
    whole = page.locator("details table").first
    expect(whole).to_be_hidden()
    page.get_by_text(words("views.audit.report")).click()
    expect(whole).to_be_visible()
    cause = audit.report().wrong[0].situations[0].report.findings[0].message.replace("`", "")
    expect(page.get_by_text(cause)).to_have_count(1)  # it stands above the report, not in it too
    expect(page.locator("details table button")).to_have_count(0)  # nothing to select


# Wrong by another factor.
Tripled = Fn.of("Tripled", "x: save(x); return x.sin()", "grad: (x,) = saved; return 3 * grad * x.cos()")


@pytest.fixture(scope="module")
def two() -> AuditReport:
    """An audit with two wrong Functions, of which the second has more elements than a document shows cells for."""
    torch.manual_seed(0)
    with nbautograd.audit(budget=3600.0, per_function=3600.0) as audit:
        Doubled.apply(torch.randn(4, 3, requires_grad=True))
        Tripled.apply(torch.randn(8, 6, requires_grad=True))
    return audit.report()


def opened(page: Any, width: int = 1280, scheme: str = "light") -> list[Any]:
    """Return the maps of both reports, every fold open."""
    page.set_viewport_size({"width": width, "height": 900})
    in_scheme(page, scheme)
    for fold in ("views.audit.report", "views.numbers"):
        for summary in page.locator("summary", has_text=words(fold)).all():
            summary.click()
    maps = page.locator(".maps").all()
    for one in maps:
        expect(one.locator("canvas:visible").first).to_be_visible()
    return maps


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (480, "dark")])
def test_the_heat_maps_of_a_call_are_in_its_report(show: Any, two: AuditReport, width: int, scheme: str) -> None:
    page = show(two)
    maps = opened(page, width, scheme)
    assert [m.locator("canvas:visible").count() for m in maps] == [3, 3] if width > 640 else [1, 1]
    coloured = """c => {
      const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
      return new Set(new Uint32Array(data.buffer)).size; }"""
    for canvas in page.locator(".maps canvas:visible").all():
        assert canvas.evaluate(coloured) > 4
    expect(page.locator(".note", has_text=words("views.panel.pooled", rows=2, cols=2))).to_have_count(1)
    root = "document.querySelector('.nbag-live').shadowRoot.querySelector('.nbag')"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0
    assert violations(page) == []


def test_the_maps_of_two_reports_know_nothing_of_each_other_nor_of_the_kernel(show: Any, two: AuditReport) -> None:
    page = show(two)
    first, second = opened(page)
    page.evaluate("() => { nb.model.send = () => { throw Error('asked'); }; }")
    readings = page.locator(".reading")
    before = readings.nth(1).inner_text()
    first.focus()
    for key in ("w", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    name = readings.first.inner_text()
    second.focus()
    page.keyboard.press("Enter")  # opens a pooled cell where there is a kernel to ask
    second.locator("canvas").first.click(position={"x": 5, "y": 5})
    assert readings.first.inner_text() == name != before
    assert page.evaluate("nb.model.get('selection')") == {}
    expect(readings.nth(1)).to_contain_text("d output[0,0]…[0,1] / d x[0,0]…[0,1]")


def test_the_worst_entry_is_named_beside_its_numbers(show: Any, two: AuditReport) -> None:
    situations = [function.situations[0] for function in two.wrong]
    names = [block.entry_name(block.worst) for s in situations for block in s.report.blocks.values()]
    page = show(two)
    opened(page, 480)
    worst = page.locator("table", has=page.locator("th", has_text=words("views.panel.analytical"))).locator("tbody tr")
    assert [row.locator("th").inner_text() for row in worst.all()] == [n.replace("d ", "d\xa0") for n in names]
    labels = worst.first.locator("td").evaluate_all("cells => cells.map((cell) => cell.dataset.heading)")
    columns = ("analytical", "numerical", "difference")
    assert labels == [messages.text(f"views.panel.{column}") + messages.text("views.colon") for column in columns]
