"""Draws the README's picture from the real thing: the report on the demo's wrong backward, as a page shows it.

python docs/make_pictures.py            needs Chromium
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from torch.autograd import Function

import nbautograd
from nbautograd.views.html import html

HERE = Path(__file__).parent
WIDTH, HEIGHT = 860, 758
FINENESS = 1.5  # picture points per point of the page


class LinearFunction(Function):
    """The product of two matrices, with a backward that lost a transpose."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input, weight)
        output = input.mm(weight)
        return output  # noqa: RET504 - the name is what the report calls it

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        input, weight = ctx.saved_tensors
        grad_input = grad_output.mm(weight.t())
        grad_weight = input.mm(grad_output)
        return grad_input, grad_weight


def report_page() -> str:
    """The report as a page of its own."""
    nbautograd.set_language("en")
    a = torch.arange(4, dtype=torch.float64).reshape(2, 2).requires_grad_()
    b = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    body = html(nbautograd.inspect(LinearFunction, a, b))
    style = (
        "margin: 16px; background: white; color: black; font: 14px/1.45 DejaVu Sans, sans-serif; color-scheme: light"
    )
    return f'<!doctype html><meta charset="utf-8"><body style="{style}">{body}'


def photograph(page: str, target: Path) -> None:
    """Take a picture of a page in Chromium, cut to the README's size."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("Chromium is not installed: apt-get install chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        tab = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=FINENESS)
        tab.set_content(page)
        tab.screenshot(path=target)
        chromium.close()
    Image.open(target).convert("RGB").save(target, optimize=True)


if __name__ == "__main__":
    photograph(report_page(), HERE / "report.png")
    print(f"{HERE / 'report.png'}: {(HERE / 'report.png').stat().st_size} bytes")
