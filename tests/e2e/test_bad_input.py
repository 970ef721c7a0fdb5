"""What goes wrong in a notebook ends in a sentence, and the notebook goes on."""

from __future__ import annotations

import re

import pytest
from jupyter_app import cell, ours, run_cell, visit, write
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
NO_INPUTS = "%%autograd_function --inputs no_such_name\nclass Late(Function):\n    pass"
OUR_FILES = re.compile(r"nbautograd/\S+\.py")  # in a traceback or a warning


@pytest.mark.nightly
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
