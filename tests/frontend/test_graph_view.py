"""The graph on a page: keyboard, stepping, search, details, pan and zoom, the same places as the static picture."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from widget_page import button, part_in_sight, words

from nbautograd.views.layout import layout

pytestmark = pytest.mark.browser


def box(page: Page, key: str) -> Any:
    return page.locator(f'.box[data-key="{key}"]')


@pytest.fixture
def order(samples: Any) -> tuple[str, ...]:
    return layout(samples.graph()).order


def test_the_first_frame_is_the_static_picture(show: Any, samples: Any) -> None:
    page = show(samples.graph())
    made = layout(samples.graph())
    for b in made.boxes:
        expect(box(page, b.key)).to_have_attribute("transform", f"translate({b.x},{b.y})")
        assert box(page, b.key).locator("text").all_text_contents()[: len(b.lines)] == [line.text for line in b.lines]
    assert page.locator(".edge path").count() == len(made.paths)
    left, top, width, _ = part_in_sight(page)
    assert top == 0
    assert left <= 0
    assert left + width >= made.width  # all of it is seen


def test_one_tab_stop_arrows_follow_edges_enter_opens_and_escape_closes(show: Any, samples: Any) -> None:
    page = show(samples.graph())
    page.evaluate("nb.model.set('selection', {node: 1})")  # as Python does
    expect(box(page, "n1")).to_have_attribute("tabindex", "0")
    expect(page.locator('.box[tabindex="0"]')).to_have_count(1)
    page.locator('.box[tabindex="0"]').focus()
    page.keyboard.press("Home")
    for key, node in (("ArrowDown", "n1"), ("ArrowUp", "n0"), ("ArrowDown", "n1")):
        page.keyboard.press(key)
        expect(box(page, node)).to_be_focused()
    assert box(page, "n1").get_attribute("aria-label").startswith("LinearFunction")
    page.keyboard.press("Enter")
    detail = page.locator(".graph > .detail")
    expect(detail).to_contain_text(words("widgets.gradient_in"))
    arrived = detail.get_by_role("img", name="1.0, 1.0, 1.0, 1.0, 1.0, 1.0")  # each is in its cell
    expect(arrived.first).to_be_visible()
    expect(detail).not_to_contain_text("1.0, 1.0")
    expect(detail).to_contain_text(re.compile(words("widgets.returned").pattern + r"\s*a 2×2\s*b 2×3"))
    assert page.evaluate("nb.model.get('selection').node") == 1
    page.keyboard.press("Escape")
    expect(detail).to_be_hidden()
    expect(box(page, "n1")).to_be_focused()


def test_click_opens_but_a_drag_pans(show: Any, samples: Any) -> None:
    page = show(samples.graph())
    before = part_in_sight(page)
    place = box(page, "n1").bounding_box()
    x, y = place["x"] + 20, place["y"] + 10
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 15, steps=4)
    page.mouse.up()
    assert part_in_sight(page) != before
    expect(page.locator(".graph > .detail")).to_be_hidden()
    button(page, "widgets.zoom_fit").click()
    assert part_in_sight(page) == before
    box(page, "n1").click()
    expect(page.locator(".graph > .detail")).to_be_visible()


def test_stepping_by_keys_buttons_slider_and_by_itself(show: Any, samples: Any, order: tuple[str, ...]) -> None:
    page = show(samples.graph())
    page.locator('.box[tabindex="0"]').focus()
    page.keyboard.press("]")
    expect(page.locator(".said")).to_have_text(words("widgets.step_at", step=1, steps=len(order)))
    expect(page.locator(".box.now")).to_have_attribute("data-key", order[0])
    button(page, "widgets.step_on").click()
    expect(page.locator(".box.now")).to_have_attribute("data-key", order[1])
    page.keyboard.press("[")
    expect(page.locator(".box.now")).to_have_attribute("data-key", order[0])
    page.get_by_role("slider").fill(str(len(order)))
    expect(page.locator(".box.now")).to_have_attribute("data-key", order[-1])
    page.get_by_role("slider").fill("0")
    expect(page.locator(".now, .waiting")).to_have_count(0)
    button(page, "widgets.play").click()
    expect(button(page, "widgets.pause")).to_be_visible()
    expect(page.locator(".said")).to_have_text(words("widgets.step_at", step=len(order)), timeout=15_000)
    expect(button(page, "widgets.play")).to_be_visible()  # it runs to the end and stops


def test_search_by_slash(show: Any, samples: Any) -> None:
    page = show(samples.graph())
    page.locator('.box[tabindex="0"]').focus()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("linear")
    expect(page.locator(".search")).to_contain_text(words("widgets.found", count=1))
    expect(box(page, "n1")).to_have_class(re.compile(r"\bfound\b"))
    page.keyboard.press("Escape")
    expect(page.locator(".box.found")).to_have_count(0)


def test_zoom_by_button_and_by_wheel_with_control(show: Any, samples: Any) -> None:
    page = show(samples.graph())

    def width() -> float:
        return part_in_sight(page)[2]

    whole = width()
    button(page, "widgets.zoom_more").click()
    near = width()
    assert near < whole
    page.locator(".graph-frame").hover()
    page.mouse.wheel(0, 100)  # the wheel alone is the notebook's
    assert width() == near
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.wait_for_function(
        "w => Number(document.querySelector('.nbag-live').shadowRoot.querySelector('.graph-frame')"
        ".dataset.view.split(' ')[2]) < w",
        arg=near,
    )
    page.keyboard.up("Control")
