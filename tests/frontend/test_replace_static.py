"""The live view in the place of the static report: every copy, never both, never neither."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect
from widget_page import panel, tab

from nbautograd.views.bundle import html

pytestmark = pytest.mark.browser

ADD = """() => { const report = document.createElement("div"); report.className = "nbautograd nbag-1";
                 report.textContent = "static"; document.body.append(report); }"""
START = "async () => { nb.end = await nb.widget.initialize({ model: nb.model }); }"


@pytest.fixture
def opened(load: Any, samples: Any) -> Page:
    """The model is there; the static report is not yet."""
    page: Page = load(samples.report(wrong=True), anchor="nbag-1")  # a right one is folded
    return page


def live(page: Page) -> Any:
    return page.locator(".nbag-live")


def static(page: Page) -> Any:
    return page.locator(".nbag-1")


@pytest.mark.parametrize("order", [(ADD, START), (START, ADD)], ids=["report first", "model first"])
def test_the_view_takes_the_place_of_the_report_whichever_is_there_first(opened: Page, order: tuple[str, str]) -> None:
    opened.evaluate(order[0])
    expect(live(opened)).to_have_count(0)
    opened.evaluate(order[1])
    expect(live(opened)).to_have_count(1)
    expect(static(opened)).to_be_hidden()


def test_every_copy_is_served_and_they_share_their_tab(opened: Page) -> None:
    for code in (START, ADD, ADD):
        opened.evaluate(code)
    expect(live(opened)).to_have_count(2)
    tab(opened, "calls").first.click()
    expect(panel(opened, "calls")).to_have_count(2)


@pytest.mark.parametrize(("make", "stored"), [("report", False), ("comparison", True), ("graph", True)])
def test_on_paper_what_is_seen_in_parts_is_printed_as_it_is_stored(load: Any, samples: Any, make: str, stored: bool):
    value = getattr(samples, make)()
    page = load(value, anchor="nbag-1")
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", html(value, "nbag-1"))
    page.evaluate(START)
    expect(live(page)).to_be_visible()
    expect(static(page)).to_be_hidden()
    page.emulate_media(media="print")
    expect(live(page)).to_be_visible(visible=not stored)
    expect(static(page)).to_be_visible(visible=stored)


def test_a_report_that_goes_and_comes_back(opened: Page) -> None:
    opened.evaluate(START)
    opened.evaluate(ADD)
    expect(live(opened)).to_have_count(1)
    opened.evaluate(
        "() => { window.cell = document.createElement('div'); const r = document.querySelector('.nbag-1');"
        "        cell.append(r, r.nextSibling ?? document.querySelector('.nbag-live').parentElement); }"
    )
    expect(live(opened)).to_have_count(0)
    opened.wait_for_function("() => cell.querySelector('.nbag-live') === null")
    opened.evaluate("() => document.body.append(cell)")
    expect(live(opened)).to_have_count(1)
    expect(static(opened)).to_be_hidden()


def test_a_name_given_later_is_followed_and_when_the_model_ends_the_report_is_back(load: Any, samples: Any) -> None:
    page = load(samples.report(wrong=True))
    page.evaluate(ADD)
    page.evaluate(START)
    expect(live(page)).to_have_count(0)
    expect(static(page)).to_be_visible()
    page.evaluate("nb.model.set('_anchor', 'nbag-1')")
    expect(live(page)).to_have_count(1)
    expect(static(page)).to_be_hidden()
    page.evaluate("nb.end()")
    expect(live(page)).to_have_count(0)
    expect(static(page)).to_be_visible()
    assert page.evaluate("Object.values(nb.listeners).flat().length") == 0
    page.evaluate(ADD)
    page.wait_for_function("() => new Promise((done) => setTimeout(() => done(true), 120))")
    expect(live(page)).to_have_count(0)


def test_a_view_that_fails_leaves_the_report_and_displayed_by_itself_says_so(load: Any, samples: Any) -> None:
    page = load(samples.report(), anchor="nbag-1", kind="no such view")
    page.evaluate(ADD)
    page.evaluate(START)
    expect(live(page)).to_have_count(0)
    expect(static(page)).to_be_visible()
    page.evaluate(
        "async () => { const el = document.createElement('div'); document.body.append(el);"
        "        try { await nb.widget.render({ model: nb.model, el }); } catch {} }"
    )
    expect(page.get_by_role("alert")).to_contain_text("nbautograd:")


@pytest.mark.parametrize(("trusted", "served", "views"), [(True, True, 1), (False, True, 0), (False, False, 1)])
def test_a_report_that_the_application_does_not_trust_stays_static(
    load: Any, samples: Any, trusted: bool, served: bool, views: int
) -> None:
    page = load(samples.gradcheck(), anchor="nbag-1")
    page.evaluate(
        """([trusted, served]) => {
          const output = document.createElement("div"), report = document.createElement("p");
          output.className = `jp-RenderedHTML${trusted ? " jp-mod-trusted" : ""}`;
          report.className = "nbag-1";
          output.append(report);
          document.body.append(output);
          if (served) document.body.append(Object.assign(document.createElement("i"), { id: "jupyter-config-data" }));
          return nb.widget.initialize({ model: nb.model });
        }""",
        [trusted, served],
    )
    expect(page.locator(".nbag-live")).to_have_count(views)


CELL = """() => {
  const cell = document.createElement("div"), output = document.createElement("div"), far = document.createElement("p");
  cell.className = "jp-Cell"; output.className = "jp-Cell-outputWrapper"; far.style.height = "3000px";
  cell.append(output); document.body.append(cell, far);
  window.output = output;
  window.put = (anchor) => { const report = document.createElement("div"); report.className = anchor;
                             report.textContent = "static"; output.append(report); };
}"""


@pytest.fixture
def cell(load: Any, samples: Any) -> Any:
    """Return a function that runs a cell: it clears the output, then shows a report with a widget of its own."""
    pages = []

    def run(value: Any = None) -> Page:
        if pages:
            pages[0].evaluate("() => output.replaceChildren()")
        page: Page = load(value or samples.report(wrong=True), anchor=f"nbag-{len(pages) + 1}")
        if not pages:
            page.evaluate(CELL)
        pages.append(page)
        page.evaluate(START)
        page.evaluate(f"() => put('nbag-{len(pages)}')")
        return page

    return run


def test_the_next_run_of_a_cell_goes_on_in_the_same_tab_and_block(cell: Any) -> None:
    page = cell()
    tab(page, "jacobian").click()
    page.get_by_role("button", name="d output / d input:").click()
    cell()
    expect(panel(page, "jacobian")).to_be_visible()
    expect(page.locator("h4").first).to_have_text("d output / d input")
    assert page.evaluate("[nb.model.get('tab'), nb.model.get('selection')]") == ["jacobian", {"block": [0, 0]}]
