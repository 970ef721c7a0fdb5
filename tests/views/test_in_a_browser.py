"""The static page in Chromium: dark where the page is dark, nothing cut off, words that read well."""

from __future__ import annotations

import io

import pytest
import sample_values as samples
from PIL import Image

from nbautograd.inspection.comparison import ComparedQuantity, Comparison
from nbautograd.views.bundle import html
from nbautograd.views.theme import OPEN, PAPER

pytestmark = pytest.mark.browser

PAGE = "<!doctype html><meta charset=utf-8><body style='margin:8px;font:14px sans-serif;{look}'>{body}"
LOOKS = {
    "light": "background:#fff;color:#222;color-scheme:light",
    "dark": "background:#111;color:#eee;color-scheme:dark",
}


def show(page, value, theme="light", width=900):
    page.set_viewport_size({"width": width, "height": 700})
    page.set_content(PAGE.format(look=LOOKS[theme], body=html(value)))
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.wait_for_function("[...document.images].every(i => i.complete)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_take_the_theme_of_the_page(page, theme):
    show(page, samples.report(wrong=True), theme)
    shot = page.locator("img").first.screenshot()
    corner = Image.open(io.BytesIO(shot)).convert("RGB").getpixel((40, 4))
    paper = getattr(PAPER, theme)
    assert corner == tuple(int(paper[k : k + 2], 16) for k in (1, 3, 5))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_chips_and_bars_take_the_colours_of_the_page(page, theme):
    show(page, samples.cannot_tell(), theme)
    seen = page.get_by_text("? cannot tell", exact=True).first.evaluate(
        "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color,"
        " getComputedStyle(e.closest('[class^=nbautograd] > div')).borderLeftColor]"
    )
    paper, tone = (getattr(colour, theme) for colour in (PAPER, OPEN))
    assert seen == [f"rgb({', '.join(str(int(c[k : k + 2], 16)) for k in (1, 3, 5))})" for c in (tone, paper, tone)]


def test_pages_whose_theme_is_dark_without_a_color_scheme_are_dark(page):
    show(page, samples.report(wrong=True))  # as nbconvert's theme has it: only its body says so
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    chip = page.get_by_text("✗ wrong", exact=True).first
    assert chip.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(255, 143, 132)"  # that of BAD.dark
    corner = Image.open(io.BytesIO(page.locator("img").first.screenshot())).convert("RGB").getpixel((40, 4))
    assert corner == tuple(int(PAPER.dark[k : k + 2], 16) for k in (1, 3, 5))


LONG = "a_parameter_with_a_name_of_about_sixty_letters_as_they_do_it"
MANY = {(0, k): samples.block(samples.W, samples.W + k, names=("output 0", n)) for k, n in enumerate(["x", LONG])}
KERNEL = Comparison(
    function="RMSNorm", reference="eager", verdict="wrong", dtype="bfloat16",
    quantities=tuple(
        ComparedQuantity("gradient", name, (8, 256), "bfloat16", "wrong", 0.5, 0.0016, -0.45, 0.001, 0.0081, 0.072)
        for name in ("x", "weight")
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [samples.report(wrong=True), samples.calls(), samples.gradcheck(wrong=True, blocks=MANY), KERNEL, samples.graph()],
    ids=["report", "calls", "long name", "kernel", "graph"],
)
@pytest.mark.parametrize("width", [480, 900])
def test_nothing_scrolls_sideways(page, value, width):
    show(page, value, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    frames = page.locator("div:has(> table)").filter(has_not=page.locator("td[style*=nowrap]"))  # that may wrap
    assert frames.evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)") == [0] * frames.count() != []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page, theme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    show(page, samples.report(wrong=True, comparison=samples.comparison()), theme)
    page.evaluate("document.title = 'report'; document.documentElement.lang = 'en'")
    found = axe.run(page, options={"rules": {"region": {"enabled": False}}}).response["violations"]
    # the page around the report is ours for the test only: landmarks and its heading are not the report's
    found = [v for v in found if v["id"] not in ("landmark-one-main", "page-has-heading-one")]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
