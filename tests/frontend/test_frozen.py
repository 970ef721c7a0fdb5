"""Views without a kernel: the loader, a stored widget brought back to life, what it can and cannot answer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from functions_checked import CubedWrong
from playwright.sync_api import Page, expect
from widget_page import button, reads, words

import nbautograd
from nbautograd.command import freeze
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.views.bundle import mimebundle
from nbautograd.widgets import encoding
from nbautograd.widgets.live import widget
from nbautograd.widgets.thawing import brought_once

pytestmark = pytest.mark.browser

ANCHOR = "nbag-0123456789abcdef"


def stored(value: Any) -> dict[str, Any]:
    """The state of a value's widget as a notebook stores it."""
    import ipywidgets

    view = widget(value, anchor=ANCHOR)
    state, paths, buffers = ipywidgets.widgets.widget._remove_buffers(view.get_state())
    view.close()
    packed = [base64.b64encode(bytes(b)).decode() for b in buffers]
    buffers = [{"path": p, "encoding": "base64", "data": d} for p, d in zip(paths, packed, strict=True)]
    return json.loads(json.dumps({"state": state, "buffers": buffers}))


@pytest.fixture
def thaw(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Open a value's report as a file that holds nothing but it and its script."""

    def opened(value: Any, keep: bool = True) -> Page:
        if keep:
            monkeypatch.setenv(encoding.FREEZING, "1")
            monkeypatch.setattr(encoding, "QUICK", 60)
        report = mimebundle(value, anchor=ANCHOR)["text/html"]
        html = f"<!doctype html><meta charset='utf-8'>{report}{freeze.script(stored(value), ANCHOR)}"
        (tmp_path / "page.html").write_text(html, encoding="utf-8")
        page.goto((tmp_path / "page.html").as_uri())
        expect(page.locator(".nbag-live")).to_have_count(1)
        expect(page.locator(f".{ANCHOR}")).to_be_hidden()
        return page

    yield opened
    assert page.errors == []
    assert page.refused == []


def block(samples: Any, size: int) -> Any:
    numerical = np.random.default_rng(0).normal(size=(size, size))
    analytical = numerical.copy()
    analytical[size // 2, 7] += 9
    return GradcheckReport("F", "wrong", blocks={(0, 0): samples.block(analytical, numerical, names=("y", "x"))})


def test_kept_answers_come_without_a_kernel(thaw: Any) -> None:
    page = thaw(nbautograd.gradcheck(CubedWrong, torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)))
    button(page, "widgets.microscope").click()
    detail = page.locator("section.detail")
    expect(detail).to_contain_text(words("widgets.microscope_say", secant="27.0001", claimed="9.0"))
    another = button(page, "widgets.elsewhere")
    for seed in range(1, encoding.POINTS + 1):
        another.click()
        expect(page.get_by_role("status").first).to_contain_text(words("widgets.elsewhere_says", seed=seed))
    expect(another).to_be_hidden()


def test_what_was_not_kept_is_said_or_absent(thaw: Any, samples: Any) -> None:
    page = thaw(samples.gradcheck(wrong=True), keep=False)
    expect(button(page, "widgets.elsewhere")).to_have_count(0)
    expect(button(page, "widgets.microscope")).to_have_count(0)
    expect(page.locator("section.detail")).to_contain_text(words("widgets.frozen"))


def test_zoom_reads_the_entries_that_were_kept(thaw: Any, samples: Any) -> None:
    report = block(samples, 200)
    page = thaw(nbautograd.types.JacobianReport("F", report.blocks))
    expect(page.locator(".note")).to_have_text(words("widgets.pooled"))
    page.get_by_role("application").focus()
    page.keyboard.press("Enter")
    expect(button(page, "widgets.zoom_out")).to_be_visible()
    for key in ("Escape", "Home", "PageUp", "Enter", "ArrowRight"):
        page.keyboard.press(key)
    reading = page.get_by_role("status")
    expect(reading).to_contain_text("d y[0] / d x[1]")
    reads(reading, analytical=f"{report.blocks[0, 0].analytical()[0, 1]:.6g}")


def test_entries_that_were_not_kept_are_not_offered(thaw: Any, samples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "MOST_WHOLE", 1000)
    page = thaw(nbautograd.types.JacobianReport("F", block(samples, 200).blocks))
    expect(page.locator(".note")).to_have_text(words("widgets.pooled_frozen"))
    page.get_by_role("application").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".note")).to_have_text(words("widgets.pooled_frozen"))  # it says so still, and opens nothing
    expect(page.locator(".reading")).to_contain_text("…")


@pytest.mark.parametrize("rows", [(0, 200), (3, 190), (0, 64)])
def test_windows_on_the_page_are_those_of_python(show: Any, samples: Any, rows: tuple[int, int]) -> None:
    from nbautograd.widgets.jacobian import window

    whole = block(samples, 200).blocks[0, 0]
    packed = [
        base64.b64encode(np.ascontiguousarray(m()).tobytes()).decode() for m in (whole.analytical, whole.numerical)
    ]
    page = show(samples.gradcheck())
    seen = page.evaluate(
        """async ([analytical, numerical, rows]) => {
          const { keptLevel } = await import("/frontend/levels.js");
          const pack = (t) => ({ dtype: "float64", shape: [], buffer: new DataView(Uint8Array.from(atob(t), (c) => c.charCodeAt(0)).buffer) });
          const block = { output_shape: [200], input_shape: [200], whole: { analytical: pack(analytical), numerical: pack(numerical) } };
          const level = keptLevel(block, rows, [10, 150]);
          return { ...level, values: level.values.map((v) => [...v]) };
        }""",  # noqa: E501
        [*packed, list(rows)],
    )
    *expected, step = window(whole, rows, (10, 150), 64)
    assert tuple(seen["step"]) == step
    for got, want in zip(seen["values"], expected, strict=True):
        assert np.array_equal(np.reshape(got, want.shape), want)


EVIL = "</script><img src=x onerror='window.pwned=1'><!--<script>"


def test_names_that_end_scripts_stay_names(thaw: Any, samples: Any) -> None:
    matrix = samples.block(np.eye(2), 2 * np.eye(2), names=(EVIL, EVIL))
    page = thaw(GradcheckReport(EVIL, "wrong", blocks={(0, 0): matrix}))
    expect(page.locator(".nbag-live")).to_contain_text("onerror")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img:not([src^=data])").count() == 0


def test_a_script_that_runs_twice_shows_one_view(thaw: Any, samples: Any) -> None:
    page = thaw(samples.report(wrong=True))
    page.evaluate(
        """() => { const old = document.querySelector("script[type=module]"), again = document.createElement("script");
                   again.type = "module"; again.textContent = old.textContent; again.onload = () => (window.ran = 1);
                   document.body.append(again); }"""
    )
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 200))")
    expect(page.locator(".nbag-live")).to_have_count(1)


def test_two_views_of_a_page_run_the_script_of_the_first(page: Page, samples: Any, tmp_path: Path) -> None:
    value, anchors = samples.report(wrong=True), (ANCHOR, ANCHOR[:-1] + "0")
    both = "".join(
        mimebundle(value, anchor=anchor)["text/html"] + freeze.script(stored(value), anchor) for anchor in anchors
    )
    html = brought_once(f"<!doctype html><meta charset='utf-8'>{both}")
    assert len(both) - len(html) > 40_000
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    expect(page.locator(".nbag-live")).to_have_count(2)
