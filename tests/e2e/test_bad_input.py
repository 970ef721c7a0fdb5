"""What goes wrong in a notebook ends in a sentence, and the notebook goes on."""

from __future__ import annotations

import re

import pytest
from jupyter_app import cell, execute, ours, run_cell, visit, wait_for_file, write
from playwright.sync_api import expect

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

SETUP = "import torch\nfrom torch.autograd import Function\n%load_ext nbautograd"
SYNTAX = "%%autograd_function\nclass Broken(Function:\n    pass"
NAMED_LIKE_HTML = """%%autograd_function --inputs torch.ones(2,dtype=torch.float64,requires_grad=True)
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.saved_tensors[0] * g
Square.__name__ = Square.__qualname__ = "<img src=x onerror=window.hacked=1>" """
NOT_A_NUMBER = """%%autograd_function --inputs torch.tensor([0.0,float('nan')],dtype=torch.float64,requires_grad=True)
class Root(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.sqrt()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, g):
        return g / (2 * ctx.saved_tensors[0])"""
MILLION = """%%autograd_function --inputs torch.randn(1000,1000,dtype=torch.float64,requires_grad=True)
class Double(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2"""
SLOW = """%%autograd_function --inputs torch.ones(3,dtype=torch.float64,requires_grad=True)
class Slow(Function):
    @staticmethod
    def forward(ctx, x):
        import pathlib, threading
        pathlib.Path("entered").touch()
        threading.Event().wait(0.5)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2"""
NO_INPUTS = "%%autograd_function --inputs no_such_name\nclass Late(Function):\n    pass"
OUR_FILES = re.compile(r"nbautograd/\S+\.py")  # in a traceback or a warning


def test_bad_input_gets_a_sentence(page, lab, artifacts):
    visit(page, lab, write(lab, "bad.ipynb", SETUP, SYNTAX, NAMED_LIKE_HTML, NOT_A_NUMBER, MILLION, NO_INPUTS, "6 * 7"))
    for number in range(1, 8):  # not "run all", which stops at the first cell that fails
        run_cell(page, number)
    expect(cell(page, 2)).to_contain_text("SyntaxError")
    expect(cell(page, 3)).to_contain_text("<img src=x onerror=window.hacked=1>", timeout=60_000)
    for number in (4, 5):
        expect(cell(page, number).locator(".nbag-live, .nbautograd").first).to_be_attached(timeout=60_000)
    expect(cell(page, 6)).to_contain_text("no_such_name")
    expect(cell(page, 7)).to_contain_text("42")
    assert page.evaluate("window.hacked") is None
    assert OUR_FILES.findall(page.locator(".jp-Notebook").inner_text()) == []
    page.set_viewport_size({"width": 1000, "height": 2600})
    cell(page, 1).evaluate("cell => cell.scrollIntoView()")
    page.screenshot(path=artifacts / "lab-bad-input.png")
    assert ours(page.errors) == []


def test_an_interrupt_leaves_what_is_done(page, lab, artifacts):
    visit(page, lab, write(lab, "interrupt.ipynb", SETUP, SLOW, "6 * 7"))
    run_cell(page, 1)
    run_cell(page, 2, wait=False)
    wait_for_file(page, lab.root / "entered")
    execute(page, "notebook:interrupt-kernel")
    expect(cell(page, 2).locator(".jp-InputPrompt")).to_contain_text("[2]", timeout=60_000)
    run_cell(page, 3)
    expect(cell(page, 3)).to_contain_text("42", timeout=60_000)
    assert OUR_FILES.findall(cell(page, 2).locator(".jp-OutputArea").inner_text()) == []
    page.screenshot(path=artifacts / "lab-interrupt.png")
    assert ours(page.errors) == []
