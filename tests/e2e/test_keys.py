"""Keys in command mode, in JupyterLab and Notebook 7: a view gets those it has a use for, the notebook all others."""

from __future__ import annotations

from typing import Any

import pytest
from fn import typed
from jupyter_app import cell, ours, run_all, visit, write
from playwright.sync_api import expect
from widget_page import button, tab

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SQUARE = typed("Square", "x: save(x); return x * x", "g: x, = saved; return 3 * x * g")
REPORT = f"""import torch, nbautograd
{SQUARE}
nbautograd.inspect(Square, torch.ones(3, dtype=torch.float64, requires_grad=True))"""
MODE = "() => window.jupyterapp.shell.currentWidget.content.mode"


@pytest.fixture(params=["lab", pytest.param("notebook7", marks=pytest.mark.nightly)])
def report(request: pytest.FixtureRequest, page: Any) -> Any:
    served = request.getfixturevalue(request.param)
    visit(page, served, write(served, "keys.ipynb", REPORT, "'next'"))
    run_all(page)
    expect(cell(page, 1).locator(".nbag-live")).to_have_count(1, timeout=60_000)
    page.keyboard.press("Escape")
    return cell(page, 1)


def test_in_command_mode_views_get_their_keys_and_the_notebook_all_others(page: Any, report: Any) -> None:
    tab(report, "calls").click()
    assert page.evaluate(MODE) == "command"
    page.keyboard.press("ArrowRight")
    expect(tab(report, "graph")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowRight")
    maps = report.get_by_role("application")
    maps.click()
    assert page.evaluate(MODE) == "command"
    for key in ("Home", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "ArrowRight"):  # wherever the click was
        page.keyboard.press(key)
    expect(report.locator(".reading").first).to_contain_text("d output[2] / d x[1]")
    page.keyboard.press("Enter")  # chooses the entry, and does not edit the cell
    button(report, "widgets.show_gradcheck").first.focus()
    page.keyboard.press("Enter")  # a button's, and not the notebook's to edit the cell
    expect(tab(report, "gradcheck")).to_have_attribute("aria-selected", "true")
    assert page.evaluate(MODE) == "command"
    tab(report, "graph").click()
    report.get_by_role("searchbox").focus()
    page.keyboard.type("abdd")  # else: cells inserted and deleted
    expect(page.locator(".jp-CodeCell")).to_have_count(2)
    tab(report, "calls").click()
    page.keyboard.press("b")  # the notebook's own: a cell below
    expect(page.locator(".jp-CodeCell")).to_have_count(3)
    assert ours(page.errors) == []
