"""The live bar of long work: what it says, and its button, which ends the work by whichever way is open."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect
from widget_page import packed

from nbautograd.widgets import live
from nbautograd.widgets.encoding import encode
from nbautograd.widgets.progress import ProgressWidget
from nbautograd.widgets.states import HeardAnswer, ProgressState

pytestmark = pytest.mark.browser

KERNEL = "0d3a4a52-3b63-4c0e-9be2-3b8cf0b7c9aa"
HEARD = packed(encode(HeardAnswer()))["$b64"]
ANSWER = """([kinds, heard]) => {
  nb.model.send = (q) => { nb.sent.push(q); if (kinds.includes(q.kind)) nb.reply({ id: q.id }, [heard]); };
}"""
SERVER = """() => {
  const config = document.createElement("script");
  Object.assign(config, { id: "jupyter-config-data", type: "application/json" });
  config.textContent = JSON.stringify({ baseUrl: "/lab/", token: "secret" });
  document.body.append(config);
  document.cookie = "_xsrf=crumb";
  window.posted = [];
  window.fetch = async (address, options) => (posted.push([address, options]), { ok: window.willing ?? true });
}"""
TELL = "(state) => nb.change(state)"
DRAW = """async () => { const el = document.createElement("div"); el.id = "view"; document.body.append(el);
                    nb.cleanup = await nb.widget.render({ model: nb.model, el }); }"""


class Work:
    def state(self) -> ProgressState:
        return ProgressState(percent=25, left=20, what="d `y` / d x", seconds=3, over=False, tone="", headline="")

    def stop(self) -> None:
        raise AssertionError

    seen = stop


@pytest.fixture
def bar(load: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives a page with the bar, whose kernel answers questions of some kinds."""
    monkeypatch.setattr(live, "widget", lambda value, **_: ProgressWidget(value))
    monkeypatch.setattr("nbautograd.widgets.progress.kernel_id", lambda: KERNEL)

    def show(*answered: str, server: bool = False) -> Any:
        page = load(Work())
        page.evaluate(ANSWER, [answered, HEARD])
        if server:
            page.evaluate(SERVER)
        page.evaluate(DRAW)
        return page

    return show


def stop(page: Any) -> Any:
    return page.get_by_role("button", name="Stop", exact=True)


def test_it_says_how_far_the_work_is(bar: Any) -> None:
    page = bar("ready")
    track = page.get_by_role("progressbar", name="Progress")
    expect(track).to_have_attribute("aria-valuenow", "25")
    expect(page.locator("#view")).to_contain_text("25 % · d y / d x · about 20 s left")
    expect(page.locator("#view")).to_contain_text("3 s")
    page.evaluate(TELL, {"percent": 75, "left": 0})
    expect(track).to_have_attribute("aria-valuenow", "75")
    expect(page.locator("#view")).to_contain_text("75 % · d y / d x · a few seconds left")
    page.evaluate(TELL, {"percent": None, "left": None, "what": "Running"})
    assert track.get_attribute("aria-valuenow") is None  # nobody counts
    expect(page.locator("#view")).not_to_contain_text("left")


def test_the_verdict_is_on_the_page_while_the_rest_is_looked_for(bar: Any) -> None:
    page = bar("ready", "stop")
    known = {"percent": None, "left": None, "what": "Looking for causes"}
    page.evaluate(TELL, {**known, "tone": "wrong", "headline": "F: backward is wrong for `x`."})
    expect(page.locator(".verdict.bad")).to_have_text("✗ wrong")
    expect(page.locator("#view strong").first).to_contain_text("backward is")
    expect(page.locator("#view")).to_contain_text("Looking for causes")
    page.evaluate(TELL, {"percent": 1, "tone": "", "headline": ""})  # the next work of the same cell
    expect(page.locator(".verdict")).to_have_count(0)


def test_by_keyboard_the_button_sends_one_message_and_says_so(bar: Any) -> None:
    page = bar("ready", "stop")
    height = page.locator("#view").bounding_box()["height"]
    page.keyboard.press("Tab")
    expect(stop(page)).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("Stopping ...")
    expect(stop(page)).to_be_focused()
    assert [q["kind"] for q in page.evaluate("nb.sent")] == ["ready", "stop"]
    page.evaluate(TELL, {"over": True})
    expect(stop(page)).to_be_hidden()
    assert page.locator("#view").bounding_box()["height"] == height


def test_a_kernel_that_hears_nothing_is_interrupted_by_its_server(bar: Any) -> None:
    page = bar(server=True)
    stop(page).click()
    page.wait_for_function("posted.length")
    ((address, options),) = page.evaluate("posted")
    assert address == f"/lab/api/kernels/{KERNEL}/interrupt"
    assert options["method"] == "POST"
    assert options["headers"] == {"Authorization": "token secret", "X-XSRFToken": "crumb"}
    expect(page.get_by_role("status")).to_have_text("Stopping ...")


def test_where_the_server_refuses_too_the_front_ends_own_button_is_named(bar: Any) -> None:
    page = bar(server=True)
    page.evaluate("() => { window.willing = false; }")
    stop(page).click()
    expect(page.get_by_role("status")).to_contain_text("Interrupt the kernel to stop")
    expect(stop(page)).to_be_hidden()


def test_without_any_way_the_button_gives_way_to_the_sentence(bar: Any) -> None:
    page = bar()
    expect(page.get_by_role("status")).to_contain_text("Interrupt the kernel to stop")
    expect(stop(page)).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_bar(bar: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = bar("ready", "stop")
    page.evaluate("s => { document.documentElement.style.cssText = `color-scheme: ${s}; background: Canvas`; }", scheme)
    stop(page).click()
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    assert Axe().run(page, options={"runOnly": tags}).response["violations"] == []


def test_nothing_moves_for_who_asks_for_that(bar: Any) -> None:
    page = bar("ready")
    page.evaluate(TELL, {"percent": None})
    moving = "e => [getComputedStyle(e).animationName, getComputedStyle(e).transitionDuration]"
    filled = page.locator(".progress > div")
    page.emulate_media(reduced_motion="reduce")
    assert filled.evaluate(moving) == ["none", "0s"]
    page.emulate_media(reduced_motion="no-preference")
    assert filled.evaluate(moving) == ["wander", "0.2s"]
    page.emulate_media(forced_colors="active")
    assert filled.evaluate(
        "e => getComputedStyle(e).backgroundColor !== getComputedStyle(e.parentElement).backgroundColor"
    )


def test_an_end_leaves_no_listener(bar: Any) -> None:
    page = bar("ready")
    page.evaluate("nb.cleanup()")
    assert page.evaluate("Object.values(nb.listeners).flat().length") == 0
