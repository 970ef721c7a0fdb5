"""Frames while a graph of 10,000 nodes is panned and pointed at: in JupyterLab, or with ``--page`` without it.

    PYTHONPATH=tests/support python benchmarks/frames.py [--page] [--steps 2500]

Every measurement alternates with a blank page of the same browser that only asks for frames: what the machine gives at
best while others use it too. ``work`` is the main thread's time for one frame's event, with style and layout.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import browser
import jupyter_app
import widget_page

ROOT = Path(__file__).resolve().parents[1]
LATE = 17.5  # ms; a frame that comes later has missed one of 60 in a second
CELL = """import torch, nbautograd
w, u, h, out = torch.randn(3, requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(3), []
for t in range({steps}):
    h = torch.tanh(h * w + u)
    out.append(h.sum())
loss = torch.stack(out).sum()
graph = nbautograd.graph(loss)
graph"""
FRAMES = """async ([kind, frames]) => {
  const root = document.querySelector(".nbag-live")?.shadowRoot, drawing = root?.querySelector(".drawing");
  const gaps = [], work = [], frame = () => new Promise(requestAnimationFrame);
  const send = (target, type, x, y, buttons) =>
    target.dispatchEvent(new PointerEvent(type, { bubbles: true, clientX: x, clientY: y, buttons, pointerId: 1 }));
  let y = 0, way = -14;
  const act = {
    blank: () => {},
    block: (k) => { document.body.lastElementChild.style.translate = `0 ${k % 50}px`; },
    pan: () => { y += way; if (Math.abs(y) > 5000) way = -way; send(drawing, "pointermove", 100, y, 1); },
    hover: (k) => {
      const boxes = drawing.querySelectorAll(".box");
      send(boxes[k % boxes.length], "pointerover", 0, 0, 0);
    },
  }[kind];
  if (drawing) { drawing.setPointerCapture = () => {}; send(drawing, "pointerdown", 100, 0, 1); }
  const block = "width:1250px;height:460px;will-change:translate;background:linear-gradient(#eee,#888)";
  if (kind === "block") document.body.append(Object.assign(document.createElement("div"), { style: block }));
  let before = await frame();
  for (let k = 0; k < frames; k++) {
    const start = performance.now();
    act(k);
    drawing?.getBoundingClientRect();
    work.push(performance.now() - start);
    const now = await frame();
    gaps.push(now - before);
    before = now;
  }
  if (drawing) { send(drawing, "pointerup", 100, y, 0); send(drawing, "pointerleave", 0, 0, 0); }
  return { gaps, work };
}"""
BUTTON = """name => [...document.querySelector(".nbag-live").shadowRoot.querySelectorAll("button")]
                  .find((b) => (b.title || b.textContent).startsWith(name)).click()"""
COUNT = "document.querySelector('.nbag-live').shadowRoot.querySelectorAll('.drawing *').length"


def own_page(tab: Any, steps: int) -> None:
    """The widget on a page of its own, every node in a box."""
    from nbautograd.widgets.live import widget

    space: dict[str, Any] = {}
    exec(CELL.format(steps=steps), space)
    view = widget(space["graph"])
    view.state = {**view.state, **view.questions()["picture"]({"opened": "all"})[0], "opened": "all"}
    tab.route(f"{widget_page.ORIGIN}/**", serve)
    tab.goto(f"{widget_page.ORIGIN}/")
    names = ("_stylesheet", "_anchor", "_colours", "state", "tab", "selection")
    sent = json.dumps([view._kind, {n: widget_page.packed(getattr(view, n)) for n in names}, view._labels])
    tab.evaluate(f"sent => ({widget_page.HARNESS})(JSON.parse(sent))", sent)
    tab.evaluate(widget_page.RENDER)


def serve(route: Any) -> None:
    """The sources of the front end, and an empty page for everything else."""
    file = ROOT / route.request.url.removeprefix(widget_page.ORIGIN).lstrip("/")
    if file.suffix in widget_page.TYPES and file.is_file():
        route.fulfill(body=file.read_text(encoding="utf-8"), content_type=widget_page.TYPES[file.suffix])
    else:
        route.fulfill(body=widget_page.BLANK, content_type="text/html")


@contextmanager
def shown(tab: Any, steps: int, lab: bool) -> Iterator[None]:
    """A graph of all its nodes on the page."""
    if not lab:
        own_page(tab, steps)
        whole(tab)
        yield
        return
    folder = Path(tempfile.mkdtemp())
    with jupyter_app.app("lab", folder, folder / "log") as served:
        jupyter_app.visit(tab, served, jupyter_app.write(served, "frames.ipynb", CELL.format(steps=steps)))
        jupyter_app.run_all(tab)
        whole(tab)
        yield


def whole(tab: Any) -> None:
    """Every node in a box of its own."""
    folded = tab.locator(".nbag-live").get_by_role("button", name="Fold all")
    tab.wait_for_selector(".nbag-live .drawing", timeout=60_000)
    if not folded.count():
        tab.evaluate(BUTTON, "Show all 1")
    folded.wait_for(timeout=120_000)
    print("elements in the drawing:", tab.evaluate(COUNT))


def measure(tab: Any, blank: Any, rounds: int, frames: int) -> None:
    """Print a row for each way of using the graph, and for a block of its size that is moved about."""
    print("| what | frame: median, p95 (ms) | blank page | in time (blank) | event: median, p95 (ms) | CPU per frame |")
    print("|---|---|---|---|---|---|")
    ways = (("pan, readable", "pan", ""), ("hover", "hover", ""), ("pan, all in sight", "pan", "Show all"))
    for name, kind, button in (*ways, ("a moving block", "block", "")):
        if button:
            tab.evaluate(BUTTON, button)
        gaps: dict[str, list[float]] = {"ours": [], "blank": []}
        work: list[float] = []
        cpu = []
        for _ in range(rounds):
            for side, page in (("blank", blank), ("ours", blank if kind == "block" else tab)):
                page.bring_to_front()
                before = browser_time()
                found = page.evaluate(FRAMES, ["blank" if side == "blank" else kind, frames])
                gaps[side] += found["gaps"]
                if side == "ours":
                    work += found["work"]
                    cpu.append(1000 * (browser_time() - before) / frames)
        share = [100 * sum(gap < LATE for gap in gaps[side]) / len(gaps[side]) for side in ("ours", "blank")]
        row = (both(gaps["ours"]), both(gaps["blank"]), f"{share[0]:.0f} % ({share[1]:.0f} %)", both(work))
        print("|", " | ".join([name, *row, f"{statistics.median(cpu):.1f} ms"]), "|")


def browser_time() -> float:
    """CPU seconds of all processes under this one so far: the browser with its renderers, and JupyterLab's."""
    parents, times = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)], times[int(folder.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours, grown = {os.getpid()}, True
    while grown:
        new = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= new
        grown = bool(new)
    return sum(times.get(pid, 0) for pid in ours) / os.sysconf("SC_CLK_TCK")


def both(values: list[float]) -> str:
    """Median and p95."""
    return f"{statistics.median(values):.1f}, {p95(values):.1f}"


def p95(values: list[float]) -> float:
    """The value that 95 of 100 stay under."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


def main() -> None:
    """Start a browser, show the graph, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="without JupyterLab")
    parser.add_argument("--steps", type=int, default=2_500, help="steps of the recurrence; four nodes each")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--frames", type=int, default=120)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser.find_browser(), args=browser.FLAGS)
        print(f"Chromium {chromium.version}, load {os.getloadavg()[0]:.1f}")
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        blank, tab = context.new_page(), context.new_page()
        tab.on("pageerror", lambda error: print("page error:", error))
        with shown(tab, given.steps, not given.page):
            measure(tab, blank, given.rounds, given.frames)
        chromium.close()


if __name__ == "__main__":
    main()
