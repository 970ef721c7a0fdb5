"""Manners on a page: accessible in every tab and theme, inert to names that look like markup, gone without a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect
from widget_page import in_scheme, panel, tab, violations

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.findings import Finding, Fix
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.user_source import FunctionSource
from nbautograd.core.values import Value
from nbautograd.inspection.report import FunctionReport

pytestmark = pytest.mark.browser

TABS = ["summary", "calls", "graph", "jacobian", "gradcheck", "source"]
SOURCE = FunctionSource("LinearFunction", "<cell>", 21, "class LinearFunction:\n    a = 1\n    b = 2\n", "combined")


@pytest.fixture
def whole(samples: Any) -> Any:
    return samples.report(wrong=True, source=SOURCE, comparison=samples.comparison(agree=False))


@pytest.mark.parametrize("scheme", ["light", "dark", "forced"])
def test_axe_finds_nothing_in_any_tab(show: Any, whole: Any, scheme: str) -> None:
    page = show(whole)
    in_scheme(page, scheme)
    for part in (*TABS, "compare"):
        tab(page, part).click()
        if part == "graph":
            page.locator(".box.function").click()
            page.locator("[data-at=lens]").select_option("stale")
            page.locator("details.outline > summary").click()
        assert violations(page) == [], part
    page.evaluate("document.querySelector('.nbag-live').shadowRoot.querySelector('.nbag').append(new Image())")
    assert [rule for rule, _ in violations(page)] == ["image-alt"]  # it can find something


def test_nothing_is_cut_off(show: Any, whole: Any) -> None:
    page = show(whole)
    wider = "e => e.scrollWidth - e.clientWidth"
    for width in (480, 640, 1000):  # 640: a window of 1280 at 200 %
        page.set_viewport_size({"width": width, "height": 700})
        for part in (*TABS, "compare"):
            tab(page, part).click()
            assert panel(page, part).evaluate(wider) <= 0, (part, width)
        assert page.get_by_role("tablist").evaluate(wider) <= 0, width  # every tab can be seen


def test_forced_colours_and_reduced_motion(show: Any, whole: Any) -> None:
    page = show(whole)
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    assert tab(page, "summary").evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    tab(page, "gradcheck").click()
    block = page.locator(".grid [aria-pressed=true]").first
    assert block.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    # texts of a curve: an SVG takes no forced colour by itself
    assert page.locator(".curve text").first.evaluate("e => getComputedStyle(e).fill === getComputedStyle(e).color")
    tab(page, "graph").click()
    assert page.locator(".box").first.evaluate("e => getComputedStyle(e).transitionDuration") == "0s"
    page.emulate_media(reduced_motion="no-preference")
    assert page.locator(".box").first.evaluate("e => getComputedStyle(e).transitionDuration") != "0s"
    page.evaluate("() => { document.documentElement.style.colorScheme = 'dark'; }")  # as JupyterLab's dark themes do
    page.evaluate("() => { document.body.style.background = 'Canvas'; document.body.style.color = 'CanvasText'; }")
    colours = page.evaluate("() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color]; }")
    parts = "e => [e.querySelector('rect'), e.querySelector('text')].map((part) => getComputedStyle(part).fill)"
    assert page.locator(".box.function").first.evaluate(parts) == colours


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
    for part in TABS:
        tab(page, part).click()
        expect(panel(page, part)).to_contain_text("onerror")
    assert page.locator("img:not([role]), script").count() == 0
    assert page.evaluate("window.pwned") is None


def test_a_name_that_turns_text_around_and_never_ends_stays_inside(show: Any, whole: Any) -> None:
    page = show(replace(whole, function="\u202e" + "A" * 10_000))
    assert "\u202e" not in panel(page, "summary").inner_text()
    for part in TABS:
        tab(page, part).click()
        assert panel(page, part).evaluate("e => e.scrollWidth <= e.clientWidth"), part
    assert page.locator(".nbag-live").bounding_box()["width"] <= page.viewport_size["width"]
