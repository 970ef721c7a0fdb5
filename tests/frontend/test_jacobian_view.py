"""The Jacobian on a page: pixels, cursor, worst entry, zoom."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from widget_page import answer, button, reads, words

from nbautograd.core.checking.block import Entry, GradcheckReport, JacobianReport
from nbautograd.views.jacobian import breaks, labels
from nbautograd.views.theme import colours, robust_limit
from nbautograd.widgets.jacobian import zoom

pytestmark = pytest.mark.browser

PIXEL = """([map, row, col, rows, cols]) => {
  const canvas = document.querySelector(".nbag-live").shadowRoot.querySelectorAll(".maps canvas")[map];
  const x = (col + 0.3) * canvas.width / cols, y = (row + 0.22) * canvas.height / rows;  // beside rings and digits
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


def test_pixels_are_those_of_the_palette_of_the_theme(show: Any, small: Any) -> None:
    page = show(small)
    table = colours("light")
    seen = {place: page.evaluate(PIXEL, [*place, 2, 3]) for place in [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 1)]}
    assert list(seen.values()) == [table[-5], table[0], table[-4], table[-3]]  # +4, -4, zero is paper, NaN
    assert page.evaluate(PIXEL, [2, 0, 0, 2, 3]) == table[-4]  # no difference is paper
    page.evaluate("() => { document.documentElement.style.colorScheme = 'dark'; document.body.className = 'x'; }")
    page.wait_for_function(f"(args) => ({PIXEL})(args) === '{colours('dark')[-5]}'", arg=[0, 0, 0, 2, 3])


def test_arrow_keys_name_the_entry(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True).jacobian)
    worst = "d output[0,0] / d weight[1,0]"
    expect(reading(page)).to_contain_text(worst)  # to begin with
    maps(page).focus()
    for keys, entry in (
        (("ArrowDown", "ArrowRight"), "d output[0,1] / d weight[1,1]"),
        (("Home", "PageDown"), "d output[1,2] / d weight[0,0]"),
        (("ArrowDown",), "d output[1,2] / d weight[0,0]"),  # stays inside
        (("w",), worst),
    ):
        for key in keys:
            page.keyboard.press(key)
        expect(reading(page)).to_contain_text(entry)
    reads(reading(page), analytical="2.0", numerical="1.0", difference="1.0")


def test_handled_keys_do_not_reach_the_notebook(show: Any, small: Any) -> None:
    page = show(small)
    page.evaluate("() => { window.heard = []; addEventListener('keydown', (e) => heard.push(e.key)); }")
    maps(page).focus()
    for key in ("ArrowDown", "Enter", "w", "q", "Control+ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate("heard") == ["q", "Control", "ArrowDown"]


def test_hover_and_click_select_and_so_does_python(show: Any, small: Any) -> None:
    page = show(small)
    canvas = page.locator(".maps canvas").nth(1)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.25)
    expect(reading(page)).to_contain_text("d y[0] / d x[2]")
    page.mouse.click(box["x"] + 5, box["y"] + box["height"] * 0.75)
    expect(reading(page)).to_contain_text("d y[1] / d x[0]")
    assert page.evaluate("nb.model.get('selection')") == {"block": [0, 0], "entry": [1, 0]}
    page.evaluate("nb.model.set('selection', {block: [0, 0], entry: [0, 1]})")
    expect(reading(page)).to_contain_text("d y[0] / d x[1]")


def test_worst_entry_becomes_the_chosen_one(show: Any, small: Any) -> None:
    worst = "d y[1] / d x[0]"
    page = show(replace(small, blocks={(0, 0): replace(small.blocks[0, 0], worst=Entry((1,), (0,), -2.0, 2.0, 1e-9))}))
    maps(page).focus()
    for key in ("Home", "PageUp", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".detail h4")).to_have_text("d y[0] / d x[0]")
    button(page, "widgets.worst_entry").click()
    expect(reading(page)).to_contain_text(worst)
    expect(page.locator(".detail h4")).to_have_text(worst)
    assert page.evaluate("nb.model.get('selection')") == {"block": [0, 0], "entry": [1, 0]}
    button(page, "widgets.microscope").click()
    assert page.evaluate("nb.sent.at(-1).entry") == [1, 0]
    page.keyboard.press("Home")
    button(page, "widgets.worst_entry").click()  # chosen already: the cursor comes back
    expect(reading(page)).to_contain_text(worst)


def test_pooled_cells_say_what_they_stand_for_and_the_worst_entry_is_fetched(show: Any, large: Any) -> None:
    page = show(large, kind="jacobian")
    pooled = words("widgets.cell_largest", count=20)
    expect(page.locator(".note")).to_have_text(words("widgets.pooled", rows=5, cols=4))
    expect(reading(page)).to_contain_text("d y[13,0]…[13,4] / d x[76]…[79]")
    expect(reading(page)).to_contain_text(pooled)
    expect(button(page, "widgets.zoom_out")).to_have_count(0)
    button(page, "widgets.worst_entry").click()
    question = page.evaluate("nb.sent[0]")
    assert {k: v for k, v in question.items() if k != "id"} == {
        "kind": "zoom", "block": [0, 0], "rows": [98, 162], "cols": [45, 109]
    }  # fmt: skip
    answer(page, question, zoom(large.blocks, question))
    expect(reading(page)).to_contain_text("d y[13,0] / d x[77]")
    reads(reading(page), difference="9.0")
    expect(reading(page)).not_to_contain_text(pooled)
    button(page, "widgets.zoom_out").click()
    expect(reading(page)).to_contain_text("d y[0,0]…[0,4] / d x[0]…[3]")
    maps(page).focus()
    page.keyboard.press("Enter")
    page.evaluate("nb.reply({id: nb.sent.at(-1).id, error: 'too large'})")
    expect(page.locator(".note")).to_have_text("too large")  # an answer that is an error is said


def test_the_legend_changes_the_scale(show: Any, samples: Any) -> None:
    numerical = np.eye(3)
    difference = np.array([[1e-9, 1e-13, -1e-9], [0.0, 1e-9, 1e-9], [1e-9, 1e-9, 1e-9]])
    page = show(JacobianReport("F", {(0, 0): samples.block(numerical + difference, numerical)}))
    table, paper = colours("light"), colours("light")[-4]
    assert page.evaluate(PIXEL, [2, 0, 2, 3, 3]) == paper
    legend = page.locator(".legend")
    expect(legend).to_contain_text(words("widgets.scale_robust"))
    legend.click()
    assert page.evaluate(PIXEL, [2, 0, 2, 3, 3]) == table[0]
    expect(legend).to_contain_text(words("widgets.scale_own", most="1e-9"))
    expect(legend).to_be_focused()
    page.keyboard.press("Enter")
    seen = {place: page.evaluate(PIXEL, [2, *place, 3, 3]) for place in [(0, 2), (0, 1), (1, 0)]}
    assert seen[0, 2] == table[0]
    assert seen[0, 1] not in (paper, table[-5])  # four powers below the largest is still a colour
    assert seen[1, 0] == paper  # no difference is none
    expect(legend).to_contain_text(words("widgets.scale_log", most="1e-9"))
    page.keyboard.press("Enter")
    expect(legend).to_contain_text(words("widgets.scale_robust"))


@pytest.fixture
def outlier(samples: Any) -> Any:
    """100 entries of one size, one of them 40 times too large in backward."""
    numerical = np.full((10, 10), 1.0)
    analytical = numerical + 1e-6
    analytical[3, 4] = 40.0
    block = samples.block(analytical, numerical, ((2, 5), (10,)), ("y", "x"))
    return GradcheckReport("F", "wrong", blocks={(0, 0): block})


def test_an_outlier_leaves_the_others_their_colours_and_is_marked(show: Any, outlier: Any) -> None:
    page = show(outlier, kind="jacobian")
    table = colours("light")
    assert page.evaluate(PIXEL, [0, 0, 0, 10, 10]) == table[-5]  # 1 is full colour, as the 98th percentile
    expect(page.locator(".legend")).to_contain_text(re.compile(r"-1(\.0)?\+1"))
    expect(page.locator(".legend")).to_contain_text(words("views.panel.beyond", count=2))
    page.locator(".legend").click()
    expect(page.locator(".legend")).to_contain_text(re.compile(r"-40(\.0)?\+40"))
    expect(page.locator(".legend")).not_to_contain_text(words("views.panel.beyond"))
    assert page.evaluate(PIXEL, [0, 0, 0, 10, 10]) != table[-5]
    assert page.evaluate(PIXEL, [0, 3, 4, 10, 10]) == table[-5]


def test_what_the_checker_calls_equal_is_no_difference(show: Any, outlier: Any) -> None:
    page = show(outlier, kind="jacobian")
    maps(page).focus()
    expect(reading(page)).to_contain_text("d y[0,3] / d x[4]")
    reads(reading(page), analytical="40.0", numerical="1.0", difference="39.0")
    expect(reading(page).locator(".bad")).to_have_text(words("views.block.mismatch"))
    page.keyboard.press("ArrowDown")
    expect(reading(page)).to_contain_text("d y[0,4] / d x[4]")
    reads(reading(page), analytical="1.0", numerical="1.0", difference="0.0")
    expect(reading(page).locator(".good")).to_have_text(words("views.block.match"))
    for _ in range(2):  # to the difference's own scale, which is made for what is left
        page.locator(".legend").click()
    maps(page).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    reads(reading(page), difference="1e-6")
    unsure = replace(outlier.blocks[0, 0], verdict="undecided", reason="noise")
    page = show(GradcheckReport("F", "cannot tell", blocks={(0, 0): unsure}), kind="jacobian")
    page.get_by_role("application").last.focus()
    page.keyboard.press("ArrowDown")
    reads(reading(page).last, difference="0.0")  # whatever the verdict


def test_one_map_alone_is_large_and_the_wrong_cells_only(show: Any, outlier: Any) -> None:
    page = show(outlier, kind="jacobian")
    table, title = colours("light"), page.locator(".maps figcaption button").nth(2)
    seen = page.locator(".maps canvas:visible")
    before = seen.last.bounding_box()["width"]
    title.press("Enter")
    expect(seen).to_have_count(1)
    expect(page.locator(".maps [aria-pressed=true]")).to_have_text(words("views.panel.difference"))
    assert seen.bounding_box()["width"] > 1.5 * before
    title.click()
    expect(seen).to_have_count(3)
    wrong = button(page, "widgets.maps_wrong")
    wrong.click()
    assert page.evaluate(PIXEL, [0, 0, 0, 10, 10]) == table[-4]
    assert page.evaluate(PIXEL, [0, 3, 4, 10, 10]) == table[-5]
    expect(wrong).to_have_attribute("aria-pressed", "true")


def test_limits_and_lines_are_those_of_the_static_heat_map(show: Any, small: Any) -> None:
    page = show(small)
    random = np.random.default_rng(0)
    arrays = [random.normal(size=n) * 10.0 ** random.integers(-3, 3, size=n) for n in (1, 2, 40, 60, 500)]
    arrays += [np.append(np.ones(99), 30.0), np.array([0.0, 1e-9, 1.0])]
    shapes = [((2, 3), 1, 6), ((1, 2, 3), 1, 6), ((6,), 1, 6), ((), 1, 1), ((3, 3), 2, 5)]
    seen = page.evaluate(
        """async ([arrays, shapes]) => {
          const { robustLimit } = await import("/frontend/scale.js"), { breaks } = await import("/frontend/axes.js");
          const starts = (step, cells) => Array.from({ length: cells }, (_, k) => k * step);
          return [arrays.map((a) => robustLimit(a)), shapes.map(([s, step, n]) => breaks(s, starts(step, n)))];
        }""",
        [[a.tolist() for a in arrays], shapes],
    )
    assert seen == [[robust_limit(a) for a in arrays], [breaks(*shape) for shape in shapes]]


def test_ticks_are_those_of_a_stored_page_and_do_not_read_as_thousands(blank: Any) -> None:
    shapes = [((64, 1000), 875, 3, False), ((2, 3), 2, 3, False), ((50, 200, 2), 1, 4, True), ((300,), 7, 9, False)]
    seen = blank.evaluate(
        """async (shapes) => {
          const { axesOf } = await import("/frontend/axes.js");
          return shapes.map(([shape, step, cells, pairs]) => axesOf(
            { output_shape: shape, input_shape: [], output_complex: pairs, output_name: "y", input_name: "x" },
            { first: [0, 0], step: [step, 1], rows: cells, cols: 1, values: [] })[0].labels);
        }""",
        shapes,
    )
    assert seen == [labels(*shape) for shape in shapes]
    assert seen[0] == ["0, 0", "0, 875", "1, 750"]
    assert not any(re.search(r"\d,\d{3}", tick) for ticks in seen for tick in ticks)


def test_parts_of_complex_numbers_are_named(show: Any, samples: Any) -> None:
    block = samples.block(np.eye(4), np.eye(4), ((2, 2), (2, 2)), ("y", "z"))
    page = show(JacobianReport("F", {(0, 0): replace(block, output_complex=True, input_complex=True)}))
    expect(page.locator(".facts")).to_contain_text("4 × 4")
    maps(page).focus()
    page.keyboard.press("ArrowRight")
    expect(reading(page)).to_contain_text("d y[0].real / d z[0].imag")
    page.keyboard.press("Enter")
    expect(page.locator(".detail")).to_contain_text("y[0].real")


def test_many_blocks_are_a_list(show: Any, samples: Any) -> None:
    blocks = {(0, i): samples.block(np.eye(2), names=("y", f"x{i}")) for i in range(61)}
    page = show(JacobianReport("F", blocks))
    page.get_by_role("combobox").select_option("0,60")
    expect(page.locator("h4")).to_have_text("d y / d x60")
