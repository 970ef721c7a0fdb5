"""Manners on a page: accessible in every tab and theme, inert to names that look like markup, gone without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.user_source import FunctionSource
from nbautograd.core.values import Value
from nbautograd.inspection.report import FunctionReport

pytestmark = pytest.mark.browser

TABS = ["Summary", "Calls", "Graph", "Jacobian", "Gradcheck", "Source"]
SOURCE = FunctionSource("LinearFunction", "<cell>", 21, "class LinearFunction:\n    a = 1\n    b = 2\n", "combined")
PAGE_ONLY = ("region", "landmark-one-main", "page-has-heading-one", "heading-order")  # about a page, not a part of one
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "rules": {rule: {"enabled": False} for rule in PAGE_ONLY},
}


@pytest.fixture
def whole(samples: Any) -> Any:
    return samples.report(wrong=True, source=SOURCE, comparison=samples.comparison(agree=False))


@pytest.mark.parametrize("scheme", ["light", "dark", "forced"])
def test_axe_finds_nothing_in_any_tab(show: Any, whole: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = show(whole)
    if scheme == "forced":
        page.emulate_media(forced_colors="active", contrast="more")
    page.evaluate("s => { document.documentElement.style.cssText = `color-scheme: ${s}; background: Canvas`; }", scheme)
    found = []
    for tab in (*TABS, "Compare"):
        page.get_by_role("tab", name=tab).click()
        if tab == "Graph":
            page.locator(".box.function").click()
            page.get_by_label("Colour by").select_option("stale")
            page.get_by_text("Outline").click()
        results = Axe().run(page, options=RULES)
        found += [(tab, v["id"], v["nodes"][0]["html"][:160]) for v in results.response["violations"]]
    assert found == []


def test_axe_can_find_something(show: Any, whole: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = show(whole)
    page.evaluate("document.querySelector('.nbag-live').shadowRoot.querySelector('.nbag').append(new Image())")
    assert "image-alt" in [v["id"] for v in Axe().run(page, options=RULES).response["violations"]]


@pytest.mark.parametrize("width", [480, 640, 1000])  # 640: a window of 1280 at 200 %
def test_nothing_is_cut_off(show: Any, whole: Any, width: int) -> None:
    page = show(whole)
    page.set_viewport_size({"width": width, "height": 700})
    for tab in (*TABS, "Compare"):
        page.get_by_role("tab", name=tab).click()
        wider = page.evaluate(
            """() => { const root = document.querySelector(".nbag-live").shadowRoot;
                       const panel = root.querySelector(".panel:not([hidden])");
                       return panel.scrollWidth - panel.clientWidth; }"""
        )
        assert wider <= 0, tab
    strip = page.get_by_role("tablist").evaluate("e => e.scrollWidth - e.clientWidth")
    assert strip <= 0  # every tab can be seen


def test_boxes_can_be_read_in_forced_colours_on_a_page_of_the_other_scheme(show: Any, whole: Any) -> None:
    page = show(whole, tab="graph")
    page.evaluate("() => { document.documentElement.style.colorScheme = 'dark'; }")  # as JupyterLab's dark themes do
    page.emulate_media(forced_colors="active")
    fill, text = page.locator(".box.function").first.evaluate(
        "e => [e.querySelector('rect'), e.querySelector('text')].map((part) => getComputedStyle(part).fill)"
    )
    page.evaluate("() => { document.body.style.background = 'Canvas'; document.body.style.color = 'CanvasText'; }")
    colours = page.evaluate("() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; }")
    assert [fill, text] == colours


def test_forced_colours_and_reduced_motion(show: Any, whole: Any) -> None:
    page = show(whole)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    chosen = page.get_by_role("tab", name="Summary")
    assert chosen.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.get_by_role("tab", name="Gradcheck").click()
    block = page.locator(".grid [aria-pressed=true]").first
    assert block.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    # texts of a curve: an SVG takes no forced colour by itself
    assert page.locator(".curve text").first.evaluate("e => getComputedStyle(e).fill === getComputedStyle(e).color")
    page.get_by_role("tab", name="Graph").click()
    assert page.locator(".box").first.evaluate("e => getComputedStyle(e).transitionDuration") == "0s"
    page.emulate_media(reduced_motion="no-preference")
    assert page.locator(".box").first.evaluate("e => getComputedStyle(e).transitionDuration") != "0s"


def test_cleanup_leaves_nothing(show: Any, whole: Any) -> None:
    page = show(whole)
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
    page.get_by_role("tab", name="Graph").click()
    page.get_by_role("button", name="Play backward").click()
    assert page.evaluate("Object.values(nb.listeners).flat().length") > 0
    page.evaluate("nb.cleanup()")
    assert page.evaluate("Object.values(nb.listeners).flat().length") == 0
    expect(page.locator("#view")).to_be_empty()


EVIL = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'


def test_names_that_look_like_markup_stay_names(show: Any, samples: Any) -> None:
    block = samples.block(np.eye(2), 2 * np.eye(2), names=(EVIL, EVIL))
    finding = Finding(EVIL, "bug", "report.as_text", {"text": EVIL}, where=(0, 0), fix=Fix(EVIL, True, 1, EVIL))
    check = GradcheckReport(EVIL, "wrong", (finding,), {(0, 0): block}, (EVIL,), (EVIL,))
    value = replace(samples.value("a", np.eye(2)), name=EVIL, repr=EVIL)
    call = Call(
        0, EVIL, "forward", inputs=(value, Value(EVIL, EVIL, EVIL)), stdout=EVIL, exception=EVIL, missing=(EVIL,)
    )
    graph = samples.graph()
    nodes = tuple(replace(node, name=EVIL, label=EVIL) for node in graph.nodes)
    report = FunctionReport(
        EVIL, calls=CallLog((call,)), graph=replace(graph, nodes=nodes, notes=(EVIL,)), gradcheck=check,
        source=FunctionSource(EVIL, EVIL, 1, EVIL, "combined"), notes=(EVIL,),
    )  # fmt: skip
    page = show(report)
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel", name=tab)).to_contain_text("onerror")
    assert page.locator("img:not([role]), script").count() == 0
    assert page.evaluate("window.pwned") is None


def test_a_name_that_turns_text_around_and_never_ends_stays_inside(show: Any, whole: Any) -> None:
    page = show(replace(whole, function="\u202e" + "A" * 10_000))
    panel = page.get_by_role("tabpanel", name="Summary")
    assert "\u202e" not in panel.inner_text()
    assert panel.evaluate("e => e.scrollWidth <= e.clientWidth")
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
    assert page.locator(".nbag-live").bounding_box()["width"] <= page.viewport_size["width"]
