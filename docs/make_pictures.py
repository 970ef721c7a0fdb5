"""Draws the README's moving picture from the real thing: its cell, run in JupyterLab in Chromium, and mended there.

    PYTHONPATH=tests/support python docs/make_pictures.py

needs Chromium and the extras "lab" and "test"; writes docs/mending.gif
"""

from __future__ import annotations

import io
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browser import FLAGS, find_browser
from jupyter_app import READY, App, app, cell, execute, visit, write
from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
WIDTH = 900  # of the page; the notebook's own margins take 130 of it
FINENESS = 1.5  # picture points per point of the page
COLOURS = 128  # of a picture's palette
# a pointer that screenshots show, as headless Chromium draws none
POINTER = """() => {
  const pointer = document.createElement("div");
  pointer.id = "pointer";
  pointer.style.cssText = "position:fixed;z-index:99999;pointer-events:none;width:22px;height:22px;left:-50px;top:0";
  pointer.innerHTML = '<svg viewBox="0 0 22 22"><path d="M3 1v17l4.5-4 2.6 6 3-1.3-2.6-6h6z" fill="#111" ' +
    'stroke="#fff" stroke-width="1.5"/></svg>';
  document.body.append(pointer);
}"""
MOVE = (
    "([x, y]) => { const p = document.getElementById('pointer').style; p.left = `${x - 3}px`; p.top = `${y - 1}px`; }"
)


def snippets() -> list[str]:
    """The README's Python, in order."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def hero() -> list[str]:
    """The README's first two snippets: the extension is loaded, and the cell with the wrong backward."""
    load, wrong = snippets()[:2]
    assert wrong.startswith("%%autograd_function")
    return [load.rstrip(), wrong.rstrip()]


def verdict(page: Page, words: str) -> Any:
    """The output of the hero's cell, once its live view says these words."""
    shown = cell(page, 2).locator(".jp-OutputArea").first
    shown.locator(".nbag-live").get_by_text(words).first.wait_for(timeout=120_000)
    page.wait_for_function(READY, timeout=120_000)
    return shown


@dataclass
class Film:
    """Frames of a page, each shown for some time.

    Attributes:
        page: what is filmed.
        clip: which part of it.
        frames: as taken.
        milliseconds: how long each is shown.
    """

    page: Page
    clip: dict[str, float]
    frames: list[Image.Image] = field(default_factory=list)
    milliseconds: list[int] = field(default_factory=list)

    def take(self, milliseconds: int) -> None:
        """Add what the page shows now."""
        picture = self.page.screenshot(clip=self.clip)  # type: ignore[arg-type]
        self.frames.append(Image.open(io.BytesIO(picture)).convert("RGB"))
        self.milliseconds.append(milliseconds)

    def point(self, at: Any, milliseconds: int = 700) -> tuple[float, float]:
        """Move the pointer to the middle of an element; returns where that is."""
        box = at.bounding_box()
        x, y = box["x"] + min(box["width"] / 2, 160), box["y"] + box["height"] / 2
        self.page.mouse.move(x, y)
        self.page.evaluate(MOVE, [x, y])
        self.take(milliseconds)
        return x, y

    def save(self, target: Path) -> None:
        """Write an animation that repeats, all frames with one palette."""
        strip = Image.new("RGB", (self.frames[0].width, sum(f.height for f in self.frames)))
        for number, frame in enumerate(self.frames):
            strip.paste(frame, (0, number * frame.height))
        palette = strip.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        first, *rest = [f.quantize(palette=palette, dither=Image.Dither.NONE) for f in self.frames]
        first.save(
            target, save_all=True, append_images=rest, duration=self.milliseconds, loop=0, optimize=False, disposal=1
        )
        print(f"{target.name}: {target.stat().st_size // 1000} kB, {len(self.frames)} frames")


def film(page: Page, target: Path) -> None:
    """Run the cell, see what is wrong and which line, apply the change; the cell runs again."""
    editor = cell(page, 2).locator(".jp-InputArea").first
    editor.scroll_into_view_if_needed()
    page.evaluate(POINTER)
    panel = page.locator(".jp-WindowedPanel-outer").first.bounding_box()
    top = cell(page, 2).bounding_box()["y"] - 6
    shots = Film(
        page, {"x": panel["x"], "y": top, "width": panel["width"] - 14, "height": panel["y"] + panel["height"] - top}
    )
    shots.take(1800)
    execute(page, "notebook:run-cell")
    verdict(page, "backward is wrong")
    shots.take(3200)
    button = cell(page, 2).get_by_role("button", name="Apply and run").first
    shots.point(button)
    button.click()
    shots.take(900)
    verdict(page, "It agrees in")
    page.evaluate(MOVE, [-50, 0])
    shots.take(4000)
    shots.save(target)


def open_notebook(page: Page, served: App, name: str) -> None:
    """Open a notebook with the hero's cells and nothing beside it."""
    visit(page, served, write(served, name, *hero()))
    if not page.evaluate("() => window.jupyterapp.shell.leftCollapsed"):
        execute(page, "application:toggle-left-area")


def main() -> None:
    """Draw the picture."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
        context = chromium.new_context(
            viewport={"width": WIDTH, "height": 900}, reduced_motion="reduce", device_scale_factor=FINENESS
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        with app("lab", Path(scratch) / "lab", Path(scratch) / "lab.log") as served:
            open_notebook(page, served, "mending.ipynb")
            page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
            execute(page, "notebook:run-cell")
            page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
            film(page, HERE / "mending.gif")
        chromium.close()


if __name__ == "__main__":
    main()
