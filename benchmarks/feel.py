"""How a report feels in JupyterLab: the first picture, frames while hovering, layout shift when the live view comes.

``PYTHONPATH=tests/support python benchmarks/feel.py`` starts JupyterLab and Chromium as the end-to-end tests do, runs
the seed's LinearFunction under the magic several times and prints medians with least and most.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

MOVES = 180
ROOT = Path(__file__).resolve().parents[1]

SETUP = """import torch
from torch.autograd import Function
%load_ext nbautograd
a = torch.arange(4, dtype=torch.float64).reshape(2, 2).requires_grad_()
b = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
x = torch.linspace(-1, 1, 4096, dtype=torch.float64, requires_grad=True)"""
LINEAR = """%%autograd_function --inputs a,b
class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight):
        ctx.save_for_backward(input, weight)
        return input.mm(weight)
    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        return grad_output.mm(weight.t()), input.mm(grad_output)"""
AFTER = "# what is below must not move"
HEAT = "import nbautograd\nnbautograd.jacobian(lambda x: x.sin(), x).widget()"
# From the end of the cell (the kernel's reply) to the first frame in which a report, static or live, is painted; and
# what moved on the page, by Chromium's own measure of layout shift, in the two seconds after.
WATCH = """async (index) => {
  const notebook = window.jupyterapp.shell.currentWidget, model = notebook.content.widgets[index];
  const kernel = notebook.sessionContext.session.kernel;
  const seen = { first: 0, live: 0, end: 0, shifts: [], heights: [] };
  const drawn = (e) => e.getClientRects().length && e.offsetHeight > 20;
  const shown = (root) => [...root.querySelectorAll(".nbautograd, .nbag-live")].some(drawn);
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) seen.shifts.push([entry.startTime, entry.value]);
  });
  observer.observe({ type: "layout-shift" });
  let going = true;
  const look = () => {
    const now = performance.now(), area = model.node.querySelector(".jp-Cell-outputWrapper");
    if (!seen.first && shown(area)) seen.first = now;
    if (!seen.live && area.querySelector(".nbag-live")) seen.live = now;
    const height = Math.round(area.getBoundingClientRect().height);
    if (seen.heights.at(-1)?.[1] !== height) seen.heights.push([now, height]);
    if (going) requestAnimationFrame(look);
  };
  model.outputArea.model.clear();
  await new Promise((done) => setTimeout(done, 300));
  const replies = (_, { header, content }) => {
    const idle = header.msg_type === "status" && content.execution_state === "idle";
    if (idle && seen.asked) seen.end ||= performance.now();
  };
  kernel.iopubMessage.connect(replies);
  requestAnimationFrame(look);
  seen.asked = performance.now();
  notebook.content.activeCellIndex = index;
  await window.jupyterapp.commands.execute("notebook:run-cell");
  await new Promise((done) => setTimeout(done, 2000));
  going = false; observer.disconnect(); kernel.iopubMessage.disconnect(replies);
  return seen;
}"""
FRAMES = """async ([selector, moves]) => {
  const times = [];
  let going = true;
  const tick = (t) => { times.push(t); if (going) requestAnimationFrame(tick); };
  requestAnimationFrame(tick);
  const canvas = document.querySelector(".nbag-live").shadowRoot.querySelector(selector);
  const box = canvas.getBoundingClientRect();
  for (let k = 0; k < moves; k++) {
    await new Promise((done) => requestAnimationFrame(done));
    const [x, y] = [box.x + ((k * 7) % box.width), box.y + ((k * 5) % box.height)];
    canvas.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: y }));
  }
  going = false;
  return times;
}"""


def said(name: str, values: list[float], unit: str = "ms") -> None:
    print(f"{name:<46} {statistics.median(values):8.1f} {unit}  ({min(values):.1f} to {max(values):.1f})")


def measure(page: Any, lab: Any, rounds: int) -> None:
    from jupyter_app import run_cell, visit, write

    visit(page, lab, write(lab, "feel.ipynb", SETUP, LINEAR, AFTER, HEAT))
    run_cell(page, 1)
    runs = [page.evaluate(WATCH, 1) for _ in range(rounds + 1)][1:]  # the first one imports
    said("cell asked for to its end", [r["end"] - r["asked"] for r in runs])
    said("end of the cell to the first picture", [r["first"] - r["end"] for r in runs])
    said("end of the cell to the live view", [r["live"] - r["end"] for r in runs])
    # the frame of the first picture itself moves what is below: that is what an output does
    said(
        "layout shift after the first picture",
        [sum(v for t, v in r["shifts"] if t > r["first"] + 50) for r in runs],
        "",
    )
    said("changes of height after it", [sum(t > r["first"] + 1 for t, _ in r["heights"]) for r in runs], "")
    for run in runs[:3]:
        print("  heights:", [(round(t - run["first"]), h) for t, h in run["heights"]])
    run_cell(page, 4)
    page.locator(".nbag-live .maps canvas").first.wait_for()
    page.evaluate("() => document.querySelectorAll('.jp-CodeCell')[3].scrollIntoView()")
    page.locator(".jp-CodeCell").nth(1).evaluate("e => e.remove()")
    chromium = page.context.new_cdp_session(page)
    chromium.send("Performance.enable", {"timeDomain": "threadTicks"})
    busy = []
    for _ in range(3):
        before = spent(chromium)
        times = page.evaluate(FRAMES, [".maps canvas", MOVES])
        busy.append((spent(chromium) - before) * 1000 / MOVES)
        gaps = [b - a for a, b in itertools.pairwise(times)]
    said("frame while hovering a heat map", gaps)
    said("the page's CPU time per frame of it", busy)


def spent(chromium: Any) -> float:
    """CPU seconds that the page's main thread has worked."""
    metrics = chromium.send("Performance.getMetrics")["metrics"]
    return next(float(m["value"]) for m in metrics if m["name"] == "TaskDuration")


def main(rounds: int) -> None:
    from browser import FLAGS, find_browser
    from jupyter_app import app
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        log = Path(folder) / "lab.log"
        with app("lab", Path(folder) / "lab", log) as lab:
            browser = driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
            measure(browser.new_page(viewport={"width": 1100, "height": 900}), lab, rounds)
            browser.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
