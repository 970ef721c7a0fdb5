"""The demo, as a person meets it: in JupyterLab, in Notebook 7, reopened without a kernel, as a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from jupyter_app import cell_with, choose_theme, ours, put, run_all, visit
from playwright.sync_api import Page, expect
from widget_page import panel, tab, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
DEMO = ROOT / "notebooks" / "demo.ipynb"
RIGHT, WRONG = "input.t().mm(grad_output)", "grad_weight = input.mm(grad_output)"
TABS = ["summary", "calls", "graph", "jacobian", "gradcheck"]


def photograph(page: Page, folder: Path, name: str) -> None:
    """Pictures of the report on the wrong backward, tab by tab."""
    report = cell_with(page, WRONG)
    report.scroll_into_view_if_needed()
    page.screenshot(path=folder / f"{name}.png")
    for part in TABS:
        tab(report, part).click()
        expect(panel(report, part)).to_be_visible()
        report.locator(".jp-OutputArea").screenshot(path=folder / f"{name}-{part}.png")


@pytest.mark.parametrize("app", ["lab", pytest.param("notebook7", marks=pytest.mark.nightly)])
def test_the_demo(page, request, app, artifacts):
    served = request.getfixturevalue(app)
    visit(page, served, put(served, DEMO))
    run_all(page)
    said = {RIGHT: words("views.evidence.right"), WRONG: words("views.headline.wrong_for", inputs="weight")}
    for source, verdict in said.items():  # each in its cell, in the live view, and not in the static report as well
        expect(cell_with(page, source).locator(".nbag-live")).to_contain_text(verdict, timeout=60_000)
        expect(cell_with(page, source).locator(".nbautograd").first).to_be_hidden()
    expect(cell_with(page, WRONG).locator(".nbag-live")).to_contain_text(RIGHT)
    photograph(page, artifacts, f"{app}-light")
    choose_theme(page, "JupyterLab Dark")
    photograph(page, artifacts, f"{app}-dark")
    choose_theme(page, "JupyterLab Light")
    expect(page.locator('.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]')).to_have_count(0)
    assert ours(page.errors) == []
    assert page.refused == []
