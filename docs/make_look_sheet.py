"""Photographs all views beside JupyterLab's own panels and treescope's, so that what looks foreign is seen and mended.

    PYTHONPATH=tests/support python docs/make_look_sheet.py FOLDER [en|zh] [VIEW...]

runs one notebook and writes FOLDER/look-LANGUAGE-PAGE-THEME-NUMBER.png: each view on a page 1280 and 480 px wide and
at 200 %, in light, dark and forced colours, whole: one that is higher than a sheet goes on in the next column.
treescope's are there where it is installed. With VIEWs, such as linear-Graph or net, only their cells run, after that
of linear, which makes their inputs; audit looks at what compare and large define.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from browser import FLAGS, find_browser
from jupyter_app import READY, app, cell, choose_theme, execute, run_all, write
from make_tour import COMPARE, IMPORTS, LINEAR, NET, SCALAR, WRONG
from PIL import Image
from playwright.sync_api import sync_playwright

TABLE = """\
class Table:
    def _repr_html_(self):
        rows = "".join(f"<tr><th>{k}</th><td>{k / 7:.4f}</td><td>{k * k}</td></tr>" for k in range(4))
        head = '<thead><tr style="text-align: right;"><th></th><th>loss</th><th>steps</th></tr></thead>'
        return f'<table border="1" class="dataframe">{head}<tbody>{rows}</tbody></table>'
Table()"""  # as pandas writes one
CONTROLS = """\
import ipywidgets
tab = ipywidgets.Tab([ipywidgets.Button(description="Button"), ipywidgets.Dropdown(options=["one", "two"])])
tab.titles = ["First", "Second"]
ipywidgets.VBox([tab, ipywidgets.IntSlider(4), ipywidgets.IntProgress(4), ipywidgets.Text("text")])"""
TREESCOPE = """\
try:
    import treescope
    display(treescope.render_array(LinearFunction.apply(x, w).detach().numpy(), around_zero=True))
except ImportError:
    print("treescope is not installed")"""
BLOCKS = """\
%%autograd_function --inputs a,b,c,d,e,f
class Mixed(Function):
    @staticmethod
    def forward(ctx, a, b, c, d, e, a_parameter_with_a_name_of_about_sixty_letters_as_they_do):
        ctx.save_for_backward(a, b, c)
        return a * b + d, c.sin() + e, a.sum() * a_parameter_with_a_name_of_about_sixty_letters_as_they_do

    @staticmethod
    def backward(ctx, first, second, third):
        a, b, c = ctx.saved_tensors
        return first * b, first * b, second * c.cos(), first, second, None
a, b, c, d, e, f = torch.randn(6, 3, 4, dtype=torch.float64).requires_grad_().unbind()"""
TRAINING = """\
weight = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
for step in range(40):
    (LinearFunction.apply(x, weight) * (float("nan") if step == 31 else 1.0 + step)).sum().backward()
%autograd_calls LinearFunction"""
LARGE = """\
%%autograd_function --inputs long
class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, g):
        return 3 * ctx.saved_tensors[0] * g
long = torch.linspace(-2, 2, 1_000_000, dtype=torch.float64).reshape(1000, 1000).requires_grad_()"""
ODD = """\
%%autograd_function --inputs odd
class Root(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sqrt()

    @staticmethod
    def backward(ctx, g):
        return g / (2 * ctx.saved_tensors[0].sqrt())
odd = torch.tensor([0.0, 4.0, float("inf"), float("nan"), -1.0], dtype=torch.float64, requires_grad=True)"""
WIDE = """\
wide = torch.randn(3, 100, dtype=torch.float64, requires_grad=True)
nbautograd.jacobian(torch.sin, (wide,))"""
AUDIT = """\
%%autograd_audit
h = LinearFunction.apply(x, w)
(product(h, h).sum() + Cube.apply(h).sum()).backward()"""
EXPLAIN = """\
def step():
    h = (x @ w).exp()
    out = h.tanh() * h
    h += 1
    out.sum().backward()
nbautograd.explain(step)"""
KERNEL = """\
def eager(x, weight):
    wide = x.float()
    scaled = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
    return (scaled * weight.float()).to(x.dtype)

class RMSNorm(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return eager(x, weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        scale = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)
        scaled, flowing = x.float() * scale, grad_output.float() * weight.float()
        grad_x = scale * (flowing - scaled * (flowing * scaled).mean(-1, keepdim=True))
        return grad_x.to(x.dtype), (grad_output.float() * scaled).sum(0).to(weight.dtype) / 2
half = torch.randn(8, 256, dtype=torch.bfloat16, requires_grad=True)
gain = torch.rand(256, dtype=torch.bfloat16, requires_grad=True)
nbautograd.gradcheck(RMSNorm, (half, gain), reference=eager)"""
MODEL = """\
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = torch.nn.Linear(8, 8), torch.nn.LayerNorm(8)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8))
    def forward(self, x):
        h = x + self.attention(x)
        return h + self.mlp(self.norm(h))
model = torch.nn.Sequential(*(Block() for _ in range(4)), torch.nn.Linear(8, 1))
nbautograd.backward(model(torch.randn(5, 8)).square().mean(), names={"model": model})"""
CARD = LINEAR.format(grad_weight=WRONG).replace(" --inputs x,w", "").replace("LinearFunction", "Waiting")
TREE = """\
class Traced:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.mean:
            return 1.5
        if func is torch.sum:
            return sum(torch.mean(one) for one in args * 8)
        return torch.sum(args[0]) if func is torch.cumsum else NotImplemented

nbautograd.trace(Traced)
traced = Traced()
torch.cumsum(traced, 0), torch.sum(traced)
try:
    torch.exp(traced)
except TypeError:
    pass
%autograd_dispatches Traced"""
EXERCISE = """\
%%exercise multiply
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output * a, grad_output * b

multiply = Multiply.apply"""
TABS = ("Summary", "Calls", "Graph", "Jacobian", "Gradcheck", "Source")
# each view: the cell that shows it, and the number of the tab that is opened there
CELLS = {
    "table": TABLE, "controls": CONTROLS, "linear": LINEAR.format(grad_weight=WRONG), "treescope": TREESCOPE,
    "blocks": BLOCKS, "net": NET, "compare": COMPARE, "trace": SCALAR, "training": TRAINING, "large": LARGE,
    "odd": ODD, "wide": WIDE, "audit": AUDIT, "explain": EXPLAIN, "kernel": KERNEL, "card": CARD, "tree": TREE,
    "exercise": EXERCISE, "model": MODEL,
}  # fmt: skip
TABBED = {"linear": TABS, "blocks": TABS[::3] + TABS[4:5], "large": TABS[:5], "odd": TABS[:5]}
# views of which there is a second picture, with what is clicked before it and all folds open
OPENED = {
    "linear-Jacobian": (".maps canvas", ".detail > div:last-child > .button"),
    "linear-Graph": (".box.function",),
    "blocks-Summary": (),
    "audit-": (),
    "model-": (),
}
PAGES = {"1280": (1280, 3600, 1), "480": (480, 6400, 1), "zoomed": (640, 6400, 2)}  # width, height, zoom
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark", "forced": "JupyterLab Light"}


def panels(page: Any, shots: Path, names: list[str], views: list[str]) -> Iterator[Path]:
    """Take one picture of each view, and of each tab of those that have tabs."""
    for number, name in enumerate(names, 2):
        shown = cell(page, number).locator(".jp-OutputArea").first
        for k, tab in enumerate(TABBED.get(name, ("",))):
            if views and not any(f"{name}-{tab}".startswith(view) for view in views):
                continue
            if tab:
                shown.get_by_role("tab").nth(TABS.index(tab)).click()
                page.wait_for_timeout(400)
            if k or not tab or tab == "Summary":
                page.mouse.move(0, 0)
                yield shot(shown, shots / f"{name}-{tab}.png")
                if (clicked := OPENED.get(f"{name}-{tab}")) is not None:
                    for button in clicked:
                        if shown.locator(button).count():  # else it is open since the theme before
                            shown.locator(button).first.click()
                            page.wait_for_timeout(800)  # Python is asked
                    folds = shown.locator("details:not([open])")
                    folds.evaluate_all("all => all.forEach(fold => { fold.open = fold.dataset.look = true; })")
                    page.mouse.move(0, 0)
                    yield shot(shown, shots / f"{name}-{tab}-opened.png")
                    folds = shown.locator("details[data-look]")
                    folds.evaluate_all("all => all.forEach(fold => { fold.open = false; })")


def lab_panels(page: Any, shots: Path) -> Iterator[Path]:
    """Take pictures of JupyterLab's own: the property inspector, a dialog, a menu."""
    execute(page, "property-inspector:show-panel")
    yield shot(page.locator("#jp-property-inspector, .jp-PropertyInspector").first, shots / "lab-inspector.png")
    page.evaluate("() => { window.jupyterapp.commands.execute('help:about'); }")
    yield shot(page.locator(".jp-Dialog-content").first, shots / "lab-dialog.png")
    page.keyboard.press("Escape")
    page.get_by_role("menuitem").nth(4).click()
    yield shot(page.locator(".lm-Menu").first, shots / "lab-menu.png")
    page.keyboard.press("Escape")
    execute(page, "application:toggle-right-area")


def shot(locator: Any, target: Path) -> Path:
    """Take one picture."""
    locator.wait_for()
    locator.screenshot(path=target)
    return target


def pieces(pictures: list[Path], zoom: int, height: int) -> Iterator[Image.Image]:
    """Bring pictures to the size of the page, and cut those that are higher than a sheet."""
    for file in pictures:
        picture = Image.open(file).convert("RGB").reduce(zoom)
        for top in range(0, picture.height, height):
            yield picture.crop((0, top, picture.width, min(picture.height, top + height)))


def sheets(pictures: list[Path], target: str, zoom: int, width: int = 1500, height: int = 1700) -> None:
    """Set pictures in columns beside each other, on as many sheets as it takes."""
    x = y = column = number = 0
    whole = Image.new("RGB", (width, height), "#808080")
    for picture in pieces(pictures, zoom, height):
        if y and y + picture.height > height:
            x, y, column = x + column + 12, 0, 0
        if x and x + picture.width > width:
            whole.save(f"{target}-{number}.png")
            whole, number = Image.new("RGB", (width, height), "#808080"), number + 1
            x = y = column = 0
        whole.paste(picture, (x, y))
        y, column = y + picture.height + 12, max(column, picture.width)
    whole.save(f"{target}-{number}.png")


def main(folder: Path, language: str = "en", *views: str) -> None:
    """Write all sheets."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
        with app("lab", Path(scratch) / "lab", Path(scratch) / "lab.log") as served:
            imports = f"{IMPORTS}\nnbautograd.set_language({language!r})"
            names = [one for one in CELLS if not views or one == "linear" or one in {v.split("-")[0] for v in views}]
            name = write(served, "look.ipynb", imports, *(CELLS[one] for one in names))
            for look, (width, height, scale) in PAGES.items():
                page = browser.new_page(
                    viewport={"width": width, "height": height}, device_scale_factor=scale, reduced_motion="reduce"
                )
                page.goto(served.address(name).replace("/doc/tree/", "/lab/tree/"))
                page.wait_for_function(READY, timeout=90_000)
                if not page.evaluate("() => window.jupyterapp.shell.leftCollapsed"):
                    execute(page, "application:toggle-left-area")
                run_all(page)
                cell(page, len(names) + 1).locator(".nbag-live").first.wait_for()
                for colours, theme in THEMES.items():
                    choose_theme(page, theme)
                    page.emulate_media(forced_colors="active" if colours == "forced" else "none")
                    taken = list(panels(page, Path(scratch), names, list(views)))
                    taken += lab_panels(page, Path(scratch)) if look == "1280" and not views else ()
                    sheets(taken, str(folder / f"look-{language}-{look}-{colours}"), scale)
                page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
