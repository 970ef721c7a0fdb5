"""Photographs our panels beside JupyterLab's own, light and dark, so that what looks foreign can be seen and mended.

    PYTHONPATH=tests/support python docs/make_look_sheet.py FOLDER

writes FOLDER/look-light.png and FOLDER/look-dark.png
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from browser import FLAGS, find_browser
from jupyter_app import app, cell, choose_theme, execute, run_all, write
from make_tour import IMPORTS, LINEAR, NET, WRONG
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
CELLS = [IMPORTS, TABLE, CONTROLS, LINEAR.format(grad_weight=WRONG), NET]
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


def lab_panels(page: Any, shots: Path) -> list[Path]:
    """JupyterLab's own: settings with fields and buttons, a dialog, the property inspector, a menu, outputs."""
    taken = [shot(cell(page, number).locator(".jp-OutputArea").first, shots, f"lab-{number}") for number in (2, 3)]
    execute(page, "property-inspector:show-panel")
    taken.append(shot(page.locator("#jp-property-inspector, .jp-PropertyInspector").first, shots, "lab-inspector"))
    page.evaluate("() => { window.jupyterapp.commands.execute('help:about'); }")
    taken.append(shot(page.locator(".jp-Dialog-content").first, shots, "lab-dialog"))
    page.keyboard.press("Escape")
    page.get_by_role("menuitem", name="Kernel").first.click()
    taken.append(shot(page.locator(".lm-Menu").first, shots, "lab-menu"))
    page.keyboard.press("Escape")
    return taken


def our_panels(page: Any, shots: Path) -> list[Path]:
    """Ours: three tabs of the inspector, and a graph."""
    taken = []
    for name in ("Summary", "Calls", "Gradcheck"):
        cell(page, 4).get_by_role("tab", name=name).click()
        taken.append(shot(cell(page, 4).locator(".jp-OutputArea").first, shots, f"our-{name}"))
    return [*taken, shot(cell(page, 5).locator(".jp-OutputArea").first, shots, "our-graph")]


def shot(locator: Any, shots: Path, name: str) -> Path:
    """One picture."""
    locator.wait_for()
    return Path(str(locator.screenshot(path=shots / f"{name}.png") and shots / f"{name}.png"))


def sheet(columns: list[list[Path]], target: Path) -> None:
    """Pictures in columns beside each other."""
    from PIL import Image

    pictures = [[Image.open(file).convert("RGB") for file in column] for column in columns]
    widths = [max(picture.width for picture in column) + 12 for column in pictures]
    height = max(sum(picture.height + 12 for picture in column) for column in pictures)
    whole = Image.new("RGB", (sum(widths), height), "#808080")
    for k, column in enumerate(pictures):
        top = 0
        for picture in column:
            whole.paste(picture, (sum(widths[:k]), top))
            top += picture.height + 12
    whole.save(target)


def main(folder: Path) -> None:
    """Write both sheets."""
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 1000}, reduced_motion="reduce")
        with app("lab", Path(scratch) / "lab", Path(scratch) / "lab.log") as served:
            name = write(served, "look.ipynb", *CELLS)
            page.goto(served.address(name).replace("/doc/tree/", "/lab/tree/"))
            page.wait_for_function(
                "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.isReady", timeout=90_000
            )
            run_all(page)
            for look, theme in THEMES.items():
                choose_theme(page, theme)
                columns = [our_panels(page, Path(scratch)), lab_panels(page, Path(scratch))]
                sheet(columns, folder / f"look-{look}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
