"""The live view in marimo, which knows no Jupyter: drawn, asked, and its selection read by Python."""

from __future__ import annotations

import os
from textwrap import indent

import pytest
from fn import typed
from jupyter_app import free_port, running
from playwright.sync_api import expect
from widget_page import button, reads, tab, words

pytestmark = pytest.mark.e2e
PYTHON = os.environ.get("NBAUTOGRAD_MARIMO")  # a Python that has marimo; `.ci/marimo` makes one

APP = """import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    import torch

    import nbautograd
    return mo, nbautograd, torch


@app.cell
def _(mo, nbautograd, torch):
SQUARE
    x = torch.linspace(-3, 3, 300, dtype=torch.float64, requires_grad=True)
    report = nbautograd.inspect(Square, x)
    view = mo.ui.anywidget(report.widget())
    view
    return report, view


@app.cell
def _(mo, view):
    mo.md(f"Python sees {view.value['selection'].get('entry')}")
    return


@app.cell
def _(report):
    report
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.mark.skipif(PYTHON is None, reason="no marimo: `.ci/marimo` installs it beside the environment and runs this")
@pytest.mark.timeout(180)
def test_marimo_shows_asks_and_reads(page, tmp_path, artifacts):
    square = typed("Square", "x: save(x); return x * x", "g: x, = saved; return (2 * x + (x > 2.5)) * g")
    (tmp_path / "app.py").write_text(APP.replace("SQUARE", indent(square, "    ")))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["run", str(tmp_path / "app.py"), "--headless", "--no-token", "--port", str(port)]
    with running([str(PYTHON), "-m", "marimo", *command], tmp_path, artifacts / "marimo.log", url, "health"):
        page.goto(url)
        live = page.locator(".nbag-live")
        expect(live).to_have_count(1, timeout=60_000)
        wrong = words("views.headline.wrong_for", inputs="x")
        expect(live).to_contain_text(wrong)
        expect(page.locator(".nbautograd")).to_contain_text(wrong)  # the report by itself is static
        tab(page, "jacobian").click()
        page.get_by_role("application").focus()
        page.keyboard.press("PageDown")
        page.keyboard.press("End")
        page.keyboard.press("Enter")
        expect(button(page, "widgets.zoom_out")).to_be_visible()
        page.keyboard.press("PageDown")
        page.keyboard.press("End")
        reads(page.get_by_role("status"), analytical="7.0")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Python sees [299, 299]")).to_be_visible()
        button(page, "widgets.microscope").click()
        expect(page.get_by_role("slider", name=words("widgets.step"))).to_be_visible()
        page.screenshot(path=artifacts / "marimo.png")
    assert page.errors == []
    assert page.refused == []
