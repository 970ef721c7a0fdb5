"""The stop button of long work in JupyterLab and Notebook 7: what is done by then stands, and the notebook goes on."""

from __future__ import annotations

import re
from typing import Any

import pytest
from jupyter_app import cell, execute, ours, run_cell, visit, write
from playwright.sync_api import expect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETUP = """import threading, numpy, torch, nbautograd
%load_ext nbautograd
x = torch.linspace(1, 2, 500, dtype=torch.float64, requires_grad=True)"""
SLOW = """%%autograd_function --inputs x
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        threading.Event().wait(0.05)
        return torch.from_numpy(numpy.cumsum(x.numpy() ** 2))
    @staticmethod
    def backward(ctx, g):
        threading.Event().wait(0.001)
        x, = ctx.saved_tensors
        return torch.from_numpy(numpy.cumsum(g.numpy()[::-1])[::-1].copy()) * 2 * x"""
ONE_STEP = """%%autograd_function --inputs x
class Endless(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        while True:
            pass
    @staticmethod
    def backward(ctx, g):
        return g"""
# as kernels before ipykernel 7: no message is heard while one works
DEAF = "import nbautograd.widgets.progress as bar\nbar.heard_while_busy = lambda comm: None"
STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status"


@pytest.fixture(params=["lab", "notebook7"])
def served(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def stop(page: Any, number: int, under_way: bool = True) -> None:
    """Run a cell, and press its bar's button once that is there, and the check under way where it ever will be."""
    run_cell(page, number, wait=False)
    button = cell(page, number).get_by_role("button", name="Stop", exact=True)
    expect(button).to_be_visible(timeout=60_000)
    bar = cell(page, number).get_by_role("progressbar")
    expect(bar).to_be_visible()
    if under_way:
        expect(bar).to_have_attribute("aria-valuenow", re.compile(r"^\d{2}"), timeout=60_000)
    button.click()
    expect(cell(page, number).locator(".jp-InputPrompt")).to_contain_text(f"[{number}]", timeout=60_000)
    expect(button).to_have_count(0)


@pytest.mark.parametrize("deaf", ["", DEAF], ids=["by message", "by the server"])
def test_the_button_leaves_what_is_done(page: Any, served: Any, deaf: str, artifacts: Any) -> None:
    name = write(
        served, f"stop{len(deaf)}.ipynb", f"{SETUP}\n{deaf}", SLOW, "%gradcheck Slow.apply(x)", ONE_STEP, "6 * 7"
    )
    visit(page, served, name)
    run_cell(page, 1)
    stop(page, 2)
    expect(cell(page, 2).locator(".nbag-live")).to_contain_text("The check was interrupted", timeout=60_000)
    page.screenshot(path=artifacts / f"{served.kind}-stopped.png")
    stop(page, 3)
    expect(cell(page, 3).locator(".nbag-live")).to_contain_text("The check was interrupted", timeout=60_000)
    stop(page, 4, under_way=False)
    expect(cell(page, 4)).to_contain_text("Interrupted before the report was ready.")
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


def test_cells_behind_a_stopped_one_run_and_the_kernel_is_shown_busy(page: Any, served: Any) -> None:
    visit(page, served, write(served, "queue.ipynb", SETUP, SLOW, "6 * 7"))
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }")
    button = cell(page, 2).get_by_role("button", name="Stop", exact=True)
    expect(button).to_be_visible(timeout=60_000)
    page.wait_for_function(f"() => ({STATUS})() === 'busy'")
    button.click()
    expect(cell(page, 3)).to_contain_text("42", timeout=60_000)
