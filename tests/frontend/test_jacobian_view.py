"""The Jacobian on a page: pixels, cursor, worst entry, zoom."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from nbautograd.core.checking.block import Entry, GradcheckReport, JacobianReport
from nbautograd.views.palette import colours

pytestmark = pytest.mark.browser

PIXEL = """([map, row, col, rows, cols]) => {
  const canvas = document.querySelector(".nbag-live").shadowRoot.querySelectorAll(".maps canvas")[map];
  const x = (col + 0.08) * canvas.width / cols, y = (row + 0.5) * canvas.height / rows;
  const [r, g, b] = canvas.getContext("2d").getImageData(x, y, 1, 1).data;
  return "#" + [r, g, b].map((c) => c.toString(16).padStart(2, "0")).join("");
}"""


@pytest.fixture
def small(samples: Any) -> Any:
    numerical = np.array([[4.0, -4.0, 0.0], [2.0, np.nan, 1e-9]])
    analytical = numerical.copy()
    analytical[1, 0] = -2.0
    return JacobianReport("F", {(0, 0): samples.block(analytical, numerical, ((2,), (3,)), ("y", "x"))})


@pytest.fixture
def large(samples: Any) -> Any:
    numerical = np.random.default_rng(0).normal(size=(300, 200))
    analytical = numerical.copy()
    analytical[130, 77] += 9
    block = samples.block(analytical, numerical, ((30, 10), (200,)), ("y", "x"))
    return GradcheckReport("F", "wrong", blocks={(0, 0): block})


def maps(page: Page) -> Any:
    return page.get_by_role("application")


def reading(page: Page) -> Any:
    return page.get_by_role("status")


def test_pixels_are_those_of_the_palette(show: Any, small: Any) -> None:
    page = show(small)
    table = colours("light")
    seen = {place: page.evaluate(PIXEL, [*place, 2, 3]) for place in [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 1)]}
    assert list(seen.values()) == [table[-5], table[0], table[-4], table[-3]]  # +4, -4, zero is paper, NaN
    assert page.evaluate(PIXEL, [2, 0, 0, 2, 3]) == table[-4]  # no difference is paper


def test_dark_pages_get_the_dark_palette_when_the_theme_changes(show: Any, small: Any) -> None:
    page = show(small)
    page.evaluate("() => { document.documentElement.style.colorScheme = 'dark'; document.body.className = 'x'; }")
    page.wait_for_function(f"(args) => ({PIXEL})(args) === '{colours('dark')[-5]}'", arg=[0, 0, 0, 2, 3])


def test_arrow_keys_name_the_entry(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True).jacobian)
    expect(reading(page)).to_contain_text("d output[0,0] / d weight[1,0]")  # the worst entry to begin with
    maps(page).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(reading(page)).to_contain_text("d output[0,1] / d weight[1,1]")
    for name, number in [("your backward", "2.0"), ("finite differences", "1.0"), ("difference", "1.0")]:
        expect(reading(page)).to_contain_text(f"{name} {number}")
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    expect(reading(page)).to_contain_text("d output[1,2] / d weight[0,0]")
    page.keyboard.press("ArrowDown")
    expect(reading(page)).to_contain_text("d output[1,2] / d weight[0,0]")  # stays inside
    page.keyboard.press("w")
    expect(reading(page)).to_contain_text("d output[0,0] / d weight[1,0]")


def test_handled_keys_do_not_reach_the_notebook(show: Any, small: Any) -> None:
    page = show(small)
    page.evaluate("() => { window.heard = []; addEventListener('keydown', (e) => heard.push(e.key)); }")
    maps(page).focus()
    for key in ("ArrowDown", "Enter", "w", "q", "Control+ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate("heard") == ["q", "Control", "ArrowDown"]


def test_hover_and_click_select(show: Any, small: Any) -> None:
    page = show(small)
    canvas = page.locator(".maps canvas").nth(1)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.25)
    expect(reading(page)).to_contain_text("d y[0] / d x[2]")
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] * 0.75)
    expect(reading(page)).to_contain_text("d y[1] / d x[0]")
    assert page.evaluate("nb.model.get('selection')") == {"block": [0, 0], "entry": [1, 0]}


def test_python_moves_the_cursor(show: Any, small: Any) -> None:
    page = show(small)
    page.evaluate("nb.model.set('selection', {block: [0, 0], entry: [0, 1]})")
    expect(reading(page)).to_contain_text("d y[0] / d x[1]")


def test_worst_entry_becomes_the_chosen_one(show: Any, small: Any) -> None:
    worst = "d y[1] / d x[0]"
    page = show(replace(small, blocks={(0, 0): replace(small.blocks[0, 0], worst=Entry((1,), (0,), -2.0, 2.0, 1e-9))}))
    maps(page).focus()
    for key in ("Home", "PageUp", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".detail h4")).to_have_text("d y[0] / d x[0]")
    page.get_by_role("button", name="Worst entry").click()
    expect(reading(page)).to_contain_text(worst)
    expect(page.locator(".detail h4")).to_have_text(worst)
    assert page.evaluate("nb.model.get('selection')") == {"block": [0, 0], "entry": [1, 0]}
    page.get_by_role("button", name="Microscope").click()
    assert page.evaluate("nb.sent.at(-1).entry") == [1, 0]
    page.keyboard.press("Home")
    page.get_by_role("button", name="Worst entry").click()  # chosen already: the cursor comes back
    expect(reading(page)).to_contain_text(worst)


def test_pooled_cells_say_what_they_stand_for(show: Any, large: Any) -> None:
    page = show(large, kind="jacobian")
    expect(page.locator(".note")).to_contain_text("Each cell stands for 5 x 4 entries")
    expect(reading(page)).to_contain_text("d y[13,0]…[13,4] / d x[76]…[79]")
    assert page.locator(".nbag").inner_text().count("Zoom out") == 0


def test_worst_entry_is_fetched_and_shown(show: Any, large: Any) -> None:
    page = show(large, kind="jacobian")
    page.get_by_role("button", name="Worst entry").click()
    question = page.evaluate("nb.sent[0]")
    assert {k: v for k, v in question.items() if k != "id"} == {
        "kind": "zoom", "block": [0, 0], "rows": [98, 162], "cols": [45, 109]
    }  # fmt: skip
    block = large.blocks[0, 0]
    parts = [block.analytical(), block.numerical(), block.analytical() - block.numerical()]
    buffers = [base64.b64encode(np.ascontiguousarray(p[98:162, 45:109]).tobytes()).decode() for p in parts]
    page.evaluate("([id, b]) => nb.reply({id, rows: 1, cols: 1, shape: [64, 64]}, b)", [question["id"], buffers])
    expect(reading(page)).to_contain_text("d y[13,0] / d x[77]")
    expect(reading(page)).to_contain_text("difference 9.0")
    page.get_by_role("button", name="Zoom out").click()
    expect(reading(page)).to_contain_text("d y[0,0]…[0,4] / d x[0]…[3]")


def test_an_answer_that_is_an_error_is_said(show: Any, large: Any) -> None:
    page = show(large, kind="jacobian")
    maps(page).focus()
    page.keyboard.press("Enter")
    page.evaluate("nb.reply({id: nb.sent[0].id, error: 'Python could not answer: too large'})")
    expect(page.locator(".note")).to_have_text("Python could not answer: too large")


def test_the_difference_on_its_own_scale_and_on_a_logarithmic_one(show: Any, samples: Any) -> None:
    numerical = np.eye(3)
    difference = np.array([[1e-9, 1e-13, -1e-9], [0.0, 1e-9, 1e-9], [1e-9, 1e-9, 1e-9]])
    page = show(JacobianReport("F", {(0, 0): samples.block(numerical + difference, numerical)}))
    table, paper = colours("light"), colours("light")[-4]
    assert page.evaluate(PIXEL, [2, 0, 2, 3, 3]) == paper
    scale = page.get_by_role("combobox", name="difference")
    scale.select_option("on its own scale")
    assert page.evaluate(PIXEL, [2, 0, 2, 3, 3]) == table[0]
    expect(page.locator(".legend")).to_contain_text("the difference on its own scale, to ±1e-9")
    scale.select_option("logarithmic")
    seen = {place: page.evaluate(PIXEL, [2, *place, 3, 3]) for place in [(0, 2), (0, 1), (1, 0)]}
    assert seen[0, 2] == table[0]
    assert seen[0, 1] not in (paper, table[-5])  # four powers below the largest is still a colour
    assert seen[1, 0] == paper  # no difference is none
    expect(page.locator(".legend")).to_contain_text("logarithmic: from ±1e-9 down by 16 powers")


def test_parts_of_complex_numbers_are_named(show: Any, samples: Any) -> None:
    block = samples.block(np.eye(4), np.eye(4), ((2, 2), (2, 2)), ("y", "z"))
    page = show(JacobianReport("F", {(0, 0): replace(block, output_complex=True, input_complex=True)}))
    expect(page.locator(".facts")).to_contain_text("2 complex × 2 complex")
    maps(page).focus()
    page.keyboard.press("ArrowRight")
    expect(reading(page)).to_contain_text("d y[0].real / d z[0].imag")
    page.keyboard.press("Enter")
    expect(page.locator(".detail")).to_contain_text("y[0].real")


def test_many_blocks_are_a_list(show: Any, samples: Any) -> None:
    blocks = {(0, i): samples.block(np.eye(2), names=("y", f"x{i}")) for i in range(61)}
    page = show(JacobianReport("F", blocks))
    page.get_by_role("combobox", name="Block").select_option("0,60")
    expect(page.locator("h4")).to_have_text("d y / d x60")
