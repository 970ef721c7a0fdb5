"""The inspector on a page: tabs, selection, what is said, what a keyboard reaches."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from sample_values import TRANSPOSED
from widget_page import button, panel, tab, words

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.findings import Finding
from nbautograd.core.user_source import FunctionSource
from nbautograd.inspection.redacted import redacted
from nbautograd.views.bundle import text

pytestmark = pytest.mark.browser

TABS = ["summary", "calls", "graph", "jacobian", "gradcheck", "compare", "source"]
SOURCE = FunctionSource("LinearFunction", "<cell>", 21, "class LinearFunction:\n    a = 1\n    b = 2\n", "combined")


@pytest.fixture
def wrong(samples: Any) -> Any:
    """A report with every part, on a backward that is wrong for ``weight``."""
    return samples.report(wrong=True, source=SOURCE, comparison=samples.comparison(agree=False))


RISK = Finding("not_twice_differentiable", "lint", "causes.double_backward_unsupported", {"said": "it raised"})


@pytest.mark.parametrize(
    ("wrong", "reports", "risks"),
    [(False, "folded", ()), (False, "folded", (RISK,)), (False, "open", ()), (True, "folded", ())],
)
def test_a_right_report_is_one_line_unless_settings_open_it(
    show: Any, samples: Any, monkeypatch: Any, wrong: bool, reports: str, risks: tuple[Finding, ...]
) -> None:
    monkeypatch.setattr("nbautograd.widgets.gradcheck.setting", {"reports": reports}.get)
    page = show(samples.report(wrong=wrong, **({"findings": risks} if risks else {})))
    folded = not wrong and reports == "folded"
    expect(page.get_by_role("tab")).to_have_count(0 if folded else len(TABS) - 2)
    if folded:
        said = [words("views.verdict.right"), *(words("views.kind.lint") for _ in risks)]
        expect(page.locator("summary .verdict")).to_have_text(said)
        expect(page.locator("summary p")).to_have_count(1 + len(risks))
        page.locator("summary").click()
        tab(page, "jacobian").click()
        expect(page.locator("h4 ~ .facts")).to_be_visible()
        expect(page.get_by_text("0", exact=True)).to_have_count(0)


def names_of_tabs(parts: list[str]) -> list[str]:
    return [messages.text(f"views.part.{part}") for part in parts]


def test_tabs_are_an_aria_tablist(show: Any, wrong: Any) -> None:
    page = show(wrong)
    assert page.get_by_role("tab").all_inner_texts() == names_of_tabs(TABS)
    expect(page.get_by_role("tablist")).to_have_attribute("aria-label", messages.text("widgets.tabs"))
    expect(tab(page, "summary")).to_have_attribute("aria-selected", "true")
    for name in TABS:
        expect(tab(page, name)).to_have_attribute("tabindex", "0" if name == "summary" else "-1")
    expect(page.get_by_role("tabpanel")).to_have_count(1)
    tab(page, "summary").focus()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "calls")).to_be_focused()
    expect(panel(page, "calls")).to_be_visible()
    page.keyboard.press("End")
    expect(tab(page, "source")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "summary")).to_be_focused()
    assert page.evaluate("nb.saved.at(-1).tab") == "summary"
    page.evaluate("nb.model.set('tab', 'gradcheck')")  # as Python does
    expect(panel(page, "gradcheck")).to_be_visible()


def test_parts_that_are_missing_get_no_tab(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, graph=None, gradcheck=samples.gradcheck(wrong=True, blocks={}), findings=()))
    assert page.get_by_role("tab").all_inner_texts() == names_of_tabs(["summary", "calls", "gradcheck"])


def test_summary_says_what_is_wrong_and_what_mends_it(show: Any, wrong: Any) -> None:
    page = show(wrong)
    said = panel(page, "summary")
    expect(said).to_contain_text(words("views.headline.wrong_for", function="LinearFunction", inputs="weight"))
    expect(said).to_contain_text(words("views.aside.right.one", inputs="input"))
    expect(said).to_contain_text(words("views.fix.tried"))
    assert said.locator(".fix pre").inner_text().splitlines()[:2] == [
        "- grad_weight = input.mm(grad_output)",
        "+ grad_weight = input.t().mm(grad_output)",
    ]
    expect(said).to_contain_text(words("views.comparison.wrong", function="f", reference="torch.mul"))
    button(page, "widgets.show_line", line=23).click()
    expect(page.locator(".source .marked")).to_have_text(re.compile(r"23\s+b = 2"))


def test_gradcheck_table_and_detail(show: Any, wrong: Any) -> None:
    page = show(wrong, tab="gradcheck")
    rows = page.locator("table.grid tbody tr")
    expect(rows.nth(1).locator(".verdict.good")).to_be_visible()
    expect(rows.nth(0).locator(".verdict.bad")).to_be_visible()
    expect(rows.nth(0)).to_contain_text(re.compile(r"6/36.*d\xa0output\[0,0\] / d\xa0weight\[1,0\] 2.0 ≠ 1.0"))
    expect(page.locator("section.detail h4").first).to_have_text("d output / d weight")
    page.get_by_role("button", name="d output / d input").click()
    expect(page.locator("section.detail h4").first).to_have_text("d output / d input")
    expect(page.get_by_role("img", name=words("widgets.curve_alt"))).to_be_visible()


def test_words_are_those_of_the_language(show: Any, wrong: Any) -> None:
    messages.set_language("zh")
    page = show(wrong)
    assert not any(name.isascii() for name in page.get_by_role("tab").all_inner_texts())
    tab(page, "jacobian").click()
    expect(button(page, "widgets.worst_entry")).to_be_visible()
    page.set_viewport_size({"width": 480, "height": 800})
    tab(page, "gradcheck").click()
    cells = page.locator("[data-heading]:visible").all()
    assert len(cells) > 4
    assert all((cell.get_attribute("data-heading") or "").endswith("：") for cell in cells)


@pytest.fixture
def many(samples: Any) -> Any:
    """4 outputs by 12 inputs; one block is wrong, one could not be decided."""
    names = {(o, i): (f"y{o}", f"x{i}") for o in range(4) for i in range(12)}
    blocks = {
        place: replace(samples.block(np.eye(2), names=pair), output=place[0], input=place[1])
        for place, pair in names.items()
    }
    blocks[2, 8] = replace(samples.block(2 * np.eye(2), np.eye(2), names=names[2, 8]), output=2, input=8)
    blocks[3, 11] = replace(blocks[3, 11], verdict="undecided", reason="noise")
    check = GradcheckReport("F", "wrong", blocks=blocks)
    return samples.report(function="F", gradcheck=check, findings=())


def test_the_failing_block_is_first_and_those_that_agree_are_folded(show: Any, many: Any) -> None:
    page = show(many)
    summary, agree = panel(page, "summary"), words("views.agreeing", n=46)
    lines = summary.locator("table.grid").first.locator("tbody tr")
    expect(lines).to_contain_text(["d y2 / d x8", "d y3 / d x11"])
    expect(lines.locator(".verdict")).to_have_class([re.compile("bad"), re.compile("open")])
    first = summary.get_by_role("button", name="d y0 / d x0", exact=True)
    expect(first).to_be_hidden()
    summary.get_by_text(agree).click()
    first.click()
    expect(panel(page, "jacobian").locator("h4").first).to_have_text("d y0 / d x0")

    tab(page, "gradcheck").click()
    shown = panel(page, "gradcheck")
    rows = shown.locator("table").filter(has_text=words("views.column.worst")).locator("tbody tr:visible")
    for row, name in enumerate(("d y2 / d x8", "d y3 / d x11", "d y0 / d x0")):  # the chosen one opened the fold
        expect(rows.nth(row)).to_contain_text(name)
    shown.get_by_text(agree).click()
    expect(rows).to_have_count(2)


def test_the_matrix_is_one_stop_with_arrows_inside(show: Any, many: Any) -> None:
    page = show(many)
    grid = page.get_by_role("grid")
    stops = grid.locator("button[tabindex='0']")
    expect(stops).to_have_attribute("aria-label", re.compile(f"^d y2 / d x8: {words('views.block.mismatch').pattern}"))
    expect(grid.locator("button")).to_have_count(48)
    stops.focus()
    for key, place in [("ArrowLeft", "2 7"), ("ArrowUp", "1 7"), ("End", "1 11"), ("ArrowRight", "1 11"),
                       ("Home", "1 0"), ("ArrowDown", "2 0")]:  # fmt: skip
        page.keyboard.press(key)
        label = re.compile("^d y{} / d x{}: ".format(*place.split()))
        expect(grid.locator("button:focus")).to_have_attribute("aria-label", label)
        expect(stops).to_have_attribute("aria-label", label)
    page.keyboard.press("Tab")
    expect(grid.locator("button:focus")).to_have_count(0)
    stops.click()
    expect(panel(page, "jacobian").locator("h4").first).to_have_text("d y2 / d x0")


@pytest.fixture
def clipboard(blank: Page) -> Any:
    """Return a function that reads what a button copied."""
    blank.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return lambda: blank.evaluate("navigator.clipboard.readText()")


def test_the_line_of_a_tried_fix_is_copied_as_it_stands_in_the_source(show: Any, wrong: Any, clipboard: Any) -> None:
    page = show(wrong)
    expect(button(page, "widgets.cell_below")).to_have_count(0)  # this front end shares no notebook
    button(page, "widgets.copy_line").click()
    expect(page.locator(".fix .copy")).to_contain_text(words("widgets.copied"))
    assert clipboard() == "            grad_weight = input.t().mm(grad_output)"


def test_a_fix_that_was_not_tried_has_no_button(show: Any, samples: Any) -> None:
    finding = replace(TRANSPOSED, fix=replace(TRANSPOSED.fix, verified=False))
    check = samples.gradcheck(wrong=True, findings=(finding,))
    page = show(samples.report(wrong=True, gradcheck=check, findings=(finding,)))
    expect(page.locator(".fix")).to_contain_text(words("views.fix.untried"))
    expect(button(page, "widgets.copy_line")).to_have_count(0)


@pytest.mark.parametrize("make", ["report", "gradcheck", "comparison"])
def test_the_report_is_copied_for_an_issue(asking: Any, samples: Any, clipboard: Any, make: str) -> None:
    value = getattr(samples, make)(**({} if make == "comparison" else {"wrong": True}))
    page = asking(value)
    copy = button(page, "widgets.copy_report")
    copy.click()
    expect(page.locator(".copy").filter(has=copy)).to_contain_text(words("widgets.copied"))
    copied = clipboard()
    assert torch.__version__ in copied.splitlines()[0]
    assert text(value) in copied
    page.get_by_role("checkbox").check()
    copy.click()
    page.wait_for_function("async all => (await navigator.clipboard.readText()) !== all", arg=copied)
    assert text(redacted(value)) in clipboard()


def test_a_report_is_frozen_into_a_page_of_its_own(asking: Any, samples: Any, tmp_path: Any) -> None:
    page = asking(samples.report(wrong=True))
    with page.expect_download() as saved:
        button(page, "widgets.freeze_report").click()
    assert saved.value.suggested_filename == "LinearFunction.html"
    saved.value.save_as(tmp_path / "page.html")
    page.set_content((tmp_path / "page.html").read_text(encoding="utf-8"))
    expect(tab(page, "jacobian")).to_be_visible()


def test_every_way_to_a_line_leads_to_the_one_of_the_headline(show: Any, samples: Any) -> None:
    report = samples.report(wrong=True)
    finding = report.gradcheck.findings[0]
    moved = replace(finding, fix=replace(finding.fix, line=finding.fix.line - 1, verified=True))
    check = replace(report.gradcheck, findings=(moved,))
    page = show(replace(report, findings=(moved,), gradcheck=check, source=SOURCE))
    expect(page.locator(".fix")).to_contain_text(words("views.fix.at", line=moved.fix.line))
    expect(button(page, "widgets.show_line", line=moved.fix.line)).to_have_count(1)
    tab(page, "jacobian").click()
    button(page, "widgets.worst_entry").click()
    [way] = panel(page, "jacobian").get_by_role("button", name=words("views.line")).all_inner_texts()
    assert re.findall(r"\d+", way) == [str(moved.fix.line)]


NOTEBOOK = """(cells) => {
  const notebook = { inserted: [], cells: cells.map(([cell_type, source]) => ({ cell_type, getSource: () => source })),
                     insertCell(at, cell) { this.inserted.push([at, cell]); } };
  nb.notebook = notebook;
  nb.model.widget_manager = { context: { model: { sharedModel: notebook } } };
}"""
GONE = "grad_weight = input.mm(grad_output)"  # the line that the fix takes away


@pytest.fixture
def in_notebook(load: Any, wrong: Any) -> Any:
    """Draw the wrong report in a front end that shares these cells, as an output of the one at a place."""

    def draw(cells: list[tuple[str, str]], at: int | None) -> Page:
        page: Page = load(wrong)
        page.evaluate(NOTEBOOK, cells)
        page.evaluate(
            """async (at) => {
              const cell = document.createElement("div"), el = document.createElement("div");
              cell.className = "jp-Cell";
              if (at !== null) cell.dataset.windowedListIndex = String(at);
              cell.append(el); document.body.append(cell);
              await nb.widget.render({ model: nb.model, el });
            }""",
            at,
        )
        return page

    return draw


CELL = f"%%autograd_function\nclass Linear:\n    def backward():\n        {GONE}\n        return 1"
MINE = "\n" * (TRANSPOSED.fix.line - 1) + GONE  # at its place, where a class of another name has the line too


@pytest.mark.parametrize(("cells", "changed"), [
    ([("markdown", GONE), ("code", CELL), ("code", CELL)], CELL),  # with the rest of its class
    ([("code", MINE), ("code", f"class Other:\n{GONE}")], MINE),  # another class is left alone
])  # fmt: skip
def test_the_cell_with_the_change_is_put_below_the_output(in_notebook: Any, cells: Any, changed: str) -> None:
    page = in_notebook([cells[0], cells[1], ("code", "%gradcheck f(x)"), *cells[2:]], 2)
    button(page, "widgets.cell_below").last.click()
    expect(page.locator(".fix .copy").last).to_contain_text(words("widgets.cell_is_below"))
    [[at, inserted]] = page.evaluate("nb.notebook.inserted")
    assert (at, inserted["cell_type"]) == (3, "code")
    assert inserted["source"] == changed.replace("input.mm", "input.t().mm")


def test_where_no_cell_holds_the_line_any_more_it_is_said_and_nothing_is_put_in(in_notebook: Any) -> None:
    page = in_notebook([("code", "x = 1")], None)
    button(page, "widgets.cell_below").click()
    expect(page.locator(".fix .copy").last).to_contain_text(words("widgets.no_such_cell"))
    assert page.evaluate("nb.notebook.inserted") == []
