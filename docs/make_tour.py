"""Makes the picture tour from the real thing: runs its cells in JupyterLab in Chromium and photographs what they show.

    PYTHONPATH=tests/support python docs/make_tour.py

needs Chromium and the extras "lab" and "test"; writes docs/tour.md and docs/tour/
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from browser import FLAGS, find_browser
from jupyter_app import App, app, cell, choose_theme, run_all, visit, write
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
COMMAND = "PYTHONPATH=tests/support python docs/make_tour.py"
COLOURS = 96  # of a picture's palette: enough for text and heat maps, and a quarter of the bytes
WIDTH = 1060

IMPORTS = """\
import torch
from torch.autograd import Function

import nbautograd
%load_ext nbautograd

torch.manual_seed(0)
x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
w = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)"""
LINEAR = """\
%%autograd_function --inputs x,w
class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_output.mm(weight.t())
        grad_weight = {grad_weight}
        return grad_input, grad_weight"""
WRONG = "input.t().mm(grad_output) / len(input)"
RIGHT = "input.t().mm(grad_output)"
NET = """\
net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
nbautograd.backward(net(torch.randn(5, 2)).square().mean(), names={"net": net})"""
COMPARE = """\
class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * b, grad_output * a

product = Product.apply
a, b = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
%autograd_compare product(a, b) torch.mul(a, b)"""
SCALAR = """\
%%autograd_function
class Scalar:
    def __init__(self, n, value):
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.mean:
            return args[0].value / args[0].n
        if func is torch.add:
            return torch.add(*(torch.eye(a.n) * a.value if isinstance(a, cls) else a for a in args))
        return NotImplemented

s = Scalar(2, 3.0)
torch.mean(s), torch.add(s, s)
try:
    torch.mul(s, s)
except TypeError:
    print("torch.mul: a TypeError")"""
CELLS = [IMPORTS, LINEAR.format(grad_weight=WRONG), NET, COMPARE, SCALAR]


@dataclass(frozen=True)
class Picture:
    """One picture of the tour.

    Attributes:
        name: of its file, without the ending.
        title: its heading.
        words: what the reader sees there.
        cell: number of the cell that shows it, counted from 1.
        before: what is done on the page first.
    """

    name: str
    title: str
    words: str
    cell: int
    before: Callable[[Page, Any], None] = lambda page, shown: None


def tab(name: str) -> Callable[[Page, Any], None]:
    """Open a tab of the inspector."""

    def opened(page: Page, shown: Any) -> None:
        shown.get_by_role("tab", name=name).click()
        shown.get_by_role("tabpanel", name=name).wait_for()

    return opened


def mended(page: Page, shown: Any) -> None:
    """Write the mended line into the cell and run it again."""
    page.evaluate(
        "([k, source]) => { const n = window.jupyterapp.shell.currentWidget.content;"
        " n.widgets[k].model.sharedModel.setSource(source); n.activeCellIndex = k; }",
        [1, LINEAR.format(grad_weight=RIGHT)],
    )
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
    shown.get_by_role("tab", name="Summary").click()  # a cell that is run again keeps its tab
    shown.locator(".nbag-live").get_by_text("backward is right").first.wait_for()


def dark(page: Page, shown: Any) -> None:
    """Change JupyterLab's theme."""
    choose_theme(page, "JupyterLab Dark")


TOUR = (
    Picture(
        "summary", "The answer first", "A Function of yours, one line above it, and the verdict: which gradient is "
        "wrong, what it looks like, at which line, and what agrees when it is tried.", 2,
    ),
    Picture(
        "gradcheck", "The evidence", "One row for each output and input: what your backward says, what finite "
        "differences and autograd of your forward say, and how far apart they are.", 2, tab("Gradcheck"),
    ),
    Picture(
        "jacobian", "Every partial derivative", "The Jacobian by your backward, by finite differences, and the "
        "difference, on one scale. Hover, or walk with the arrow keys, and the entry is named.", 2, tab("Jacobian"),
    ),
    Picture(
        "calls", "What went in and out", "Each call of forward and backward in order, with what `ctx` kept in between "
        "under the names that your code gives it.", 2, tab("Calls"),
    ),
    Picture(
        "graph", "The graph", "What PyTorch will walk: your Function as one node with its ctx, leaves under your "
        "variables' names, shapes on the edges.", 2, tab("Graph"),
    ),
    Picture(
        "mended", "After you mended it", "The cell ran again: what is fixed, what is new, what is still wrong.", 2,
        mended,
    ),
    Picture(
        "backward", "A backward pass, step by step", "`nbautograd.backward(loss)` runs it and keeps what flowed along "
        "every edge; play it, step it, scrub it forwards and back.", 3,
    ),
    Picture(
        "compare", "Beside the native one", "`%autograd_compare`: outputs, gradients, graphs, saved bytes and time of "
        "a Function and of what it should equal.", 4,
    ),
    Picture(
        "dispatches", "What torch asked", "A class with `__torch_function__`: each call that torch handed to it, who "
        "answered, and what nobody answered.", 5,
    ),
    Picture("dark", "In the dark", "The same report in JupyterLab's dark theme.", 2, dark),
)  # fmt: skip


def photograph(page: Page, picture: Picture, folder: Path) -> Path:
    """Take one picture, and make it small."""
    from PIL import Image

    shown = cell(page, picture.cell)
    picture.before(page, shown)
    page.mouse.move(0, 0)
    target = folder / f"{picture.name}.png"
    shown.locator(".jp-OutputArea").first.screenshot(path=target)
    Image.open(target).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)
    return target


def take_all(served: App, page: Page, folder: Path) -> None:
    """Run the cells, then take the pictures in order."""
    visit(page, served, write(served, "tour.ipynb", *CELLS))
    run_all(page)
    cell(page, 2).locator(".nbag-live").first.wait_for()
    for picture in TOUR:
        file = photograph(page, picture, folder)
        print(f"{file.name}: {file.stat().st_size // 1000} kB")


def words() -> str:
    """The page around the pictures."""
    head = f"# A tour in pictures\n\nMade by `{COMMAND}` from the real thing, in JupyterLab.\n"
    parts = [f"## {p.title}\n\n{p.words}\n\n![{p.title}: {p.words}](tour/{p.name}.png)\n" for p in TOUR]
    return "\n".join([head, *parts])


def main() -> None:
    """Make the tour."""
    folder = HERE / "tour"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = chromium.new_page(viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce")
        with app("lab", Path(scratch) / "lab", Path(scratch) / "lab.log") as served:
            take_all(served, page, folder)
        chromium.close()
    (HERE / "tour.md").write_text(words(), encoding="utf-8")


if __name__ == "__main__":
    main()
