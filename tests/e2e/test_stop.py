"""An interrupt of long work in JupyterLab and Notebook 7: what is done by then stands, and the notebook goes on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fn import typed
from jupyter_app import cell, execute, ours, run_cell, visit, write
from playwright.sync_api import expect
from widget_page import words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETUP = """import threading, numpy, torch, nbautograd
%load_ext nbautograd
x = torch.linspace(1, 2, 500, dtype=torch.float64, requires_grad=True)"""
SLOW = typed(
    "Slow",
    "x: save(x); threading.Event().wait(0.05); return torch.from_numpy(numpy.cumsum(x.numpy() ** 2))",
    "g: x, = saved; threading.Event().wait(0.001); "
    "return torch.from_numpy(numpy.cumsum(g.numpy()[::-1])[::-1].copy()) * 2 * x",
)
ENDLESS = typed("Endless", "x: while True: pass", "g: return g")
CHECKED = "%%autograd_function --inputs x\n"
INTERRUPT = "() => window.jupyterapp.commands.execute('notebook:interrupt-kernel')"


@pytest.fixture(params=["lab", pytest.param("notebook7", marks=pytest.mark.nightly)])
def served(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def stop(page: Any, number: int, shown: str) -> None:
    """Run a cell, and press the front end's own stop button once the bar says so much."""
    run_cell(page, number, wait=False)
    output = cell(page, number).locator(".jp-OutputArea")
    expect(output).to_contain_text(re.compile(shown), timeout=60_000)
    expect(output).to_contain_text(words("magics.progress"))
    page.evaluate(INTERRUPT)
    expect(cell(page, number).locator(".jp-InputPrompt")).to_contain_text(f"[{number}]", timeout=60_000)


def test_an_interrupt_leaves_what_is_done(page: Any, served: Any) -> None:
    name = write(served, "stop.ipynb", SETUP, CHECKED + SLOW, "%gradcheck Slow.apply(x)", CHECKED + ENDLESS, "6 * 7")
    visit(page, served, name)
    run_cell(page, 1)
    for number in (2, 3):
        stop(page, number, r"\d\d %")
        told = cell(page, number).locator(".nbag-live")
        expect(told).to_contain_text(words("views.evidence.stopped"), timeout=60_000)
    stop(page, 4, words("magics.running").pattern)
    expect(cell(page, 4)).to_contain_text(words("magics.interrupted"))
    run_cell(page, 5)
    expect(cell(page, 5)).to_contain_text("42", timeout=60_000)
    assert "Traceback" not in page.locator(".jp-Notebook").inner_text()
    saved = outputs(page, served, name)
    assert [len(part) for part in saved] == [0, 1, 1, 1, 1]  # nothing of the bars
    assert "progress" not in str(saved)
    assert ours(page.errors) == []


def outputs(page: Any, served: Any, name: str) -> list[Any]:
    import nbformat

    execute(page, "docmanager:save")
    return [cell.outputs for cell in nbformat.read(served.root / name, 4).cells]
