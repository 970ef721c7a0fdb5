"""What somebody waits for in JupyterLab: first words of a check, silence, a tab, `%load_ext`; and a wrong cell mended.

    PYTHONPATH=tests/support python benchmarks/lab.py [--rounds 5]

Times are the page's: from the command that runs a cell to the frame in which something changed below it. Silence is the
longest time between two such changes until the report stands. A tab counts from the click to the frame that shows it.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import browser
import jupyter_app

CLASS = """import torch
class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma):
        r = (x * x).mean(-1, keepdim=True).add(1e-5).rsqrt()
        ctx.save_for_backward(x, gamma, r)
        return x * r * gamma
    @staticmethod
    def backward(ctx, g):
        x, gamma, r = ctx.saved_tensors
        gg = gamma * g
        return {grad_x}, (g * x * r).sum(0)
x, gamma = torch.randn(3, 4).double().requires_grad_(), torch.randn(4).double().requires_grad_()"""
RIGHT = "r * gg - x * r**3 * (gg * x).mean(-1, keepdim=True)"
WRONG = "r * gg"
CHECK = "%gradcheck RMSNorm.apply(x, gamma)"
WHOLE = "import nbautograd\nnbautograd.inspect(RMSNorm, x, gamma)"
WATCH = """async k => {
  const panel = window.jupyterapp.shell.currentWidget, cell = panel.content.widgets[k - 1];
  panel.content.activeCellIndex = k - 1;
  const changes = [];
  const watcher = new MutationObserver(() => changes.push(performance.now()));
  watcher.observe(cell.outputArea.node, { subtree: true, childList: true, characterData: true, attributes: true });
  const begun = performance.now();
  await window.jupyterapp.commands.execute("notebook:run-cell");
  const ended = performance.now();
  await new Promise((done) => setTimeout(done, 300));
  watcher.disconnect();
  const times = changes.map((t) => t - begun).filter((t) => t > 30);
  const stops = [0, ...times.filter((t) => t < ended - begun), ended - begun];
  return { first: times[0] ?? null, whole: ended - begun,
           silence: Math.max(...stops.slice(1).map((t, i) => t - stops[i])) };
}"""
TAB = """async name => {
  const root = [...document.querySelectorAll(".nbag-live")].at(-1).shadowRoot;
  const tab = [...root.querySelectorAll("[role=tab]")].find((one) => one.textContent === name);
  const begun = performance.now();
  tab.click();
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""
README = Path(__file__).resolve().parents[1] / "README.md"
MENDING = (("Shift+Enter", ".nbag-ghost"), ("F8", ".nbag-card"), ("Control+Shift+Enter", "text=✓ right"))  # what comes
TABS = ("Calls", "Graph", "Jacobian", "Gradcheck", "Source", "Summary")


def main() -> None:
    """Print the table."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=browser.find_browser(), args=browser.FLAGS)
        folder = Path(tempfile.mkdtemp())
        with jupyter_app.app("lab", folder, folder / "log") as served:
            measure(shown.new_page(viewport={"width": 1280, "height": 900}), served, rounds)
        shown.close()


def measure(page: Any, served: Any, rounds: int) -> None:
    """Measure on kernels of their own, then on one that is warm."""
    cold = [on_a_cold_kernel(page, served, k) for k in range(rounds)]
    print(f"load {os.getloadavg()[0]:.1f}; {rounds} rounds; ms: median (worst)\n")
    print("| what | first change | longest silence | whole |\n|---|---|---|---|")
    row("`%load_ext`, cold kernel", cold)
    seconds = [mended(page, served, k) for k in range(rounds)]
    print(
        f"| mended by {len(MENDING)} keys | | | {1000 * statistics.median(seconds):.0f} ({1000 * max(seconds):.0f}) |"
    )
    for name, grad in (("right", RIGHT), ("wrong, with its fix", WRONG)):
        cells = ("%load_ext nbautograd", CLASS.format(grad_x=grad), CHECK, WHOLE)
        jupyter_app.visit(page, served, jupyter_app.write(served, f"{name[:5]}.ipynb", *cells))
        jupyter_app.run_all(page)
        row(f"`%gradcheck`, {name}, warm", [page.evaluate(WATCH, 3) for _ in range(rounds)])
    page.wait_for_function(
        "() => [...document.querySelectorAll('.nbag-live')].at(-1)?.shadowRoot.querySelector('[role=tab]')"
    )
    print("\n| tab | first time | again |\n|---|---|---|")
    first, again = ([page.evaluate(TAB, name) for name in TABS] for _ in range(2))
    for name, one, two in zip(TABS, first, again, strict=True):
        print(f"| {name} | {one:.0f} | {two:.0f} |")


def mended(page: Any, served: Any, number: int) -> float:
    """Return the seconds from a wrong cell to a right one, each key pressed as soon as it has something to do.

    The cell is the README's; the kernel has loaded nbautograd, and checks for the first time.
    """
    load, wrong = re.findall(r"```python\n(.*?)\n```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
    jupyter_app.visit(page, served, jupyter_app.write(served, f"mend{number}.ipynb", load, wrong))
    jupyter_app.run_cell(page, 1)
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    begun = time.perf_counter()
    for key, then in MENDING:
        page.keyboard.press(key)
        page.locator(then).first.wait_for(timeout=60_000)
    return time.perf_counter() - begun


def on_a_cold_kernel(page: Any, served: Any, number: int) -> Any:
    """Load the extension in a kernel that has imported nothing."""
    jupyter_app.visit(page, served, jupyter_app.write(served, f"cold{number}.ipynb", "%load_ext nbautograd"))
    return page.evaluate(WATCH, 1)


def row(name: str, found: list[Any]) -> None:
    """Print the median and the worst of each."""
    cells = []
    for key in ("first", "silence", "whole"):
        times = [one[key] for one in found if one[key] is not None]
        cells.append(f"{statistics.median(times):.0f} ({max(times):.0f})" if times else "none")
    print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
