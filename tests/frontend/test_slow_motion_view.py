"""Backward in slow motion on a page: asked for when it is opened; lines, graph and tensors in step; keys and axe."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fn import Fn
from playwright.sync_api import expect
from widget_page import button, in_scheme, violations, words

from nbautograd import gradcheck
from nbautograd.messages import text

pytestmark = pytest.mark.browser

Silu = Fn.of(
    "Silu",
    "x: h = torch.sigmoid(x); save(x, h); return h * x",
    "g: x, h = saved; gh = g * x; slope = h * (1 + h); gx = g * h; return gx + gh * slope",
)
Large = Fn.of("Large", "x: save(x); return x * x", "g: (x,) = saved; twice = 2 * x; return twice * g")


SMALL = torch.linspace(-2, 2, 12, dtype=torch.float64).reshape(3, 4)


@pytest.fixture
def motion(asking: Any) -> Any:
    """The view, opened in the report's page."""
    page = asking(gradcheck(Silu, (SMALL,)))
    assert page.evaluate("nb.sent.length") == 0
    page.get_by_text(words("widgets.motion_part")).click()
    expect(whole(page)).to_be_visible()
    return page


def whole(page: Any) -> Any:
    return page.get_by_role("group", name=words("widgets.motion_help"))


def lines(page: Any) -> list[str]:
    return page.locator(".motion .row").evaluate_all("rows => rows.map((row) => row.className)")


def test_arrows_go_line_by_line_until_the_first_that_is_wrong(motion: Any) -> None:
    view, said = whole(motion), motion.locator(".motion .said")
    view.focus()
    expect(said).to_contain_text(words("widgets.motion_at", step=1, steps=6, what=""))
    expect(said).to_contain_text(words("views.motion.arrives"))
    explained = motion.locator(".motion").get_by_text(words("views.motion.by_change"))
    expect(explained).to_have_count(0)  # there is no such column
    for key, name, known in (("ArrowRight", "gh", "right"), ("]", "slope", "wrong")):
        motion.keyboard.press(key)
        expect(said).to_contain_text(f"{name}: {text(f'views.motion_known.{known}')}")
    assert lines(motion)[2:5] == ["row right", "row wrong marked", "row"]
    expect(motion.locator(".motion .edge.wrong")).to_have_count(0)  # it has not got there
    motion.keyboard.press("End")
    expect(explained).to_have_count(1)
    row = motion.locator(".motion tbody tr")
    expect(row).to_have_count(1)
    expect(row.locator(".thumbnail")).to_have_count(3)  # a value beside what it should be, and the difference
    expect(said).to_contain_text(words("views.motion.returns_wrong", names="x"))
    expect(motion.locator(".motion .edge.flow.wrong")).to_have_count(1)
    expect(motion.locator(".motion .tag.wrong")).to_have_text(words("views.verdict.wrong"))
    assert lines(motion)[3:6] == ["row wrong", "row right", "row follows marked"]
    motion.keyboard.press("Home")
    expect(motion.locator(".motion .edge.wrong")).to_have_count(0)


def test_space_plays_and_a_click_on_a_line_goes_there(motion: Any) -> None:
    whole(motion).focus()
    motion.keyboard.press(" ")
    expect(button(motion, "widgets.pause")).to_be_visible()
    expect(motion.locator(".motion .said")).to_contain_text(words("widgets.motion_at", step=6, steps=6), timeout=15_000)
    motion.locator(".motion .row", has_text="gx = g * h").click()
    expect(motion.locator(".motion .said")).to_contain_text(f"gx: {text('views.motion_known.right')}")


@pytest.mark.parametrize("scheme", ["light", "dark", "forced"])
def test_axe_finds_nothing(motion: Any, scheme: str) -> None:
    in_scheme(motion, scheme)
    whole(motion).press("End")
    assert violations(motion) == []


def test_lines_graph_and_tensors_stand_beside_each_other_where_there_is_room(motion: Any) -> None:
    view = whole(motion)
    view.press("End")
    for width, columns in ((360, 1), (640, 1), (900, 2), (1400, 3)):  # 640: a window of 1280 at 200 %
        motion.set_viewport_size({"width": width, "height": 800})
        assert view.evaluate("e => e.scrollWidth - e.clientWidth") <= 0, width
        lines, graph, tensors = (view.locator(".three > *").nth(k).bounding_box() for k in range(3))
        assert len({round(part["x"]) for part in (lines, graph, tensors)}) == columns, width
        assert graph["y"] - lines["y"] - lines["height"] < 20, width  # beside it, or at once below


def test_a_large_tensor_is_pooled_and_what_is_not_kept_is_a_sentence(asking: Any) -> None:
    page = asking(gradcheck(Large, (torch.ones(300, 300),)))
    page.locator("summary").first.click()  # a right report is folded
    page.get_by_text(words("widgets.motion_part")).click()
    whole(page).press("ArrowRight")
    expect(page.locator(".motion .thumb").first).to_be_visible()
    assert page.locator(".motion canvas").first.evaluate("c => c.offsetWidth") <= 32 * 12
