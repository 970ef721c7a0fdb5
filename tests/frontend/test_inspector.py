"""The inspector on a page: tabs, selection, what is said, what a keyboard reaches."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.findings import Finding
from nbautograd.core.user_source import FunctionSource
from nbautograd.inspection.redacted import redacted
from nbautograd.views.bundle import text

pytestmark = pytest.mark.browser

TABS = ["Summary", "Calls", "Graph", "Jacobian", "Gradcheck", "Compare", "Source"]
SOURCE = FunctionSource("LinearFunction", "<cell>", 21, "class LinearFunction:\n    a = 1\n    b = 2\n", "combined")


@pytest.fixture
def wrong(samples: Any) -> Any:
    """A report with every part, on a backward that is wrong for ``weight``."""
    return samples.report(wrong=True, source=SOURCE, comparison=samples.comparison(agree=False))


def tab(page: Page, name: str) -> Any:
    return page.get_by_role("tab", name=name)


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
        expect(page.locator("summary .verdict")).to_have_text(["✓ right", *["risk" for _ in risks]])
        expect(page.locator("summary p")).to_have_count(1 + len(risks))
        page.locator("summary").click()
        tab(page, "Jacobian").click()
        expect(page.locator("h4 ~ .facts")).to_be_visible()
        expect(page.get_by_text("0", exact=True)).to_have_count(0)


def test_tabs_are_an_aria_tablist(show: Any, wrong: Any) -> None:
    page = show(wrong)
    assert page.get_by_role("tab").all_inner_texts() == TABS
    expect(page.get_by_role("tablist")).to_have_attribute("aria-label", "Views of the Function")
    expect(tab(page, "Summary")).to_have_attribute("aria-selected", "true")
    for name in TABS:
        expect(tab(page, name)).to_have_attribute("tabindex", "0" if name == "Summary" else "-1")
    expect(page.get_by_role("tabpanel")).to_have_count(1)


def test_arrows_walk_the_tabs(show: Any, wrong: Any) -> None:
    page = show(wrong)
    tab(page, "Summary").focus()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "Calls")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Calls")).to_be_visible()
    page.keyboard.press("End")
    expect(tab(page, "Source")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "Summary")).to_be_focused()
    assert page.evaluate("nb.saved.at(-1).tab") == "summary"


def test_python_opens_a_tab(show: Any, wrong: Any) -> None:
    page = show(wrong)
    page.evaluate("nb.model.set('tab', 'gradcheck')")
    expect(page.get_by_role("tabpanel", name="Gradcheck")).to_be_visible()


def test_parts_that_are_missing_get_no_tab(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, graph=None, gradcheck=samples.gradcheck(wrong=True, blocks={}), findings=()))
    assert page.get_by_role("tab").all_inner_texts() == ["Summary", "Calls", "Gradcheck"]


def test_summary_says_what_is_wrong_and_what_mends_it(show: Any, wrong: Any) -> None:
    panel = show(wrong).get_by_role("tabpanel")
    expect(panel).to_contain_text("LinearFunction: backward is wrong for weight. input is right.")
    expect(panel).to_contain_text("tried: with this change every entry agrees")
    assert panel.locator(".fix pre").inner_text().splitlines()[:2] == [
        "- grad_weight = input.mm(grad_output)",
        "+ grad_weight = input.t().mm(grad_output)",
    ]
    expect(panel).to_contain_text("f does not agree with torch.mul in the gradient of a")


def test_a_finding_shows_its_line(show: Any, wrong: Any) -> None:
    page = show(wrong)
    page.get_by_role("button", name="Show line 23").click()
    expect(page.locator(".source .marked")).to_have_text(re.compile(r"23\s+b = 2"))


def test_gradcheck_table_and_detail(show: Any, wrong: Any) -> None:
    page = show(wrong, tab="gradcheck")
    rows = page.locator("table.grid tbody tr")
    expect(rows.nth(1)).to_contain_text("agrees")
    expect(rows.nth(0)).to_contain_text(re.compile(r"differs.*6/36.*d\xa0output\[0,0\] / d\xa0weight\[1,0\] 2.0 ≠ 1.0"))
    expect(page.locator("section.detail h4").first).to_have_text("d output / d weight")
    page.get_by_role("button", name="d output / d input").click()
    expect(page.locator("section.detail h4").first).to_have_text("d output / d input")
    expect(page.get_by_role("img", name=re.compile("Error of finite differences"))).to_be_visible()


def test_words_are_those_of_the_language(show: Any, wrong: Any) -> None:
    messages.set_language("zh")
    page = show(wrong)
    expect(tab(page, "雅可比矩阵")).to_be_visible()
    tab(page, "雅可比矩阵").click()
    expect(page.get_by_role("button", name="差得最多的元素")).to_be_visible()
    page.set_viewport_size({"width": 480, "height": 800})
    tab(page, "梯度检查").click()
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
    summary = page.get_by_role("tabpanel", name="Summary")
    lines = summary.locator("table.grid").first.locator("tbody tr")
    expect(lines).to_have_text(
        [re.compile(r"d\xa0y2 / d\xa0x8✗ differs2/4"), re.compile(r"d\xa0y3 / d\xa0x11\? cannot tell")]
    )
    expect(summary.get_by_role("button", name="d y0 / d x0", exact=True)).to_be_hidden()
    summary.get_by_text("blocks that agree: 46").click()
    summary.get_by_role("button", name="d y0 / d x0", exact=True).click()
    expect(page.get_by_role("tabpanel", name="Jacobian").locator("h4").first).to_have_text("d y0 / d x0")

    page.get_by_role("tab", name="Gradcheck").click()
    panel = page.get_by_role("tabpanel", name="Gradcheck")
    rows = panel.locator("table").filter(has_text="worst entry").locator("tbody tr:visible")
    expect(rows.nth(0)).to_contain_text("d y2 / d x8")
    expect(rows.nth(1)).to_contain_text("d y3 / d x11")
    expect(rows.nth(2)).to_contain_text("d y0 / d x0")  # it is the chosen one, so the fold is open
    panel.get_by_text("blocks that agree: 46").click()
    expect(rows).to_have_count(2)


def test_the_matrix_is_one_stop_with_arrows_inside(show: Any, many: Any) -> None:
    page = show(many)
    grid = page.get_by_role("grid")
    stops = grid.locator("button[tabindex='0']")
    expect(stops).to_have_attribute("aria-label", "d y2 / d x8: differs")
    expect(grid.locator("button")).to_have_count(48)
    stops.focus()
    for key, label in [
        ("ArrowLeft", "d y2 / d x7: agrees"), ("ArrowUp", "d y1 / d x7: agrees"), ("End", "d y1 / d x11: agrees"),
        ("ArrowRight", "d y1 / d x11: agrees"), ("Home", "d y1 / d x0: agrees"), ("ArrowDown", "d y2 / d x0: agrees"),
    ]:  # fmt: skip
        page.keyboard.press(key)
        expect(grid.locator("button:focus")).to_have_attribute("aria-label", label)
        expect(stops).to_have_attribute("aria-label", label)
    page.keyboard.press("Tab")
    expect(grid.locator("button:focus")).to_have_count(0)
    stops.click()
    expect(page.get_by_role("tabpanel", name="Jacobian").locator("h4").first).to_have_text("d y2 / d x0")


@pytest.fixture
def clipboard(blank: Page) -> Any:
    """Return a function that reads what a button copied."""
    blank.context.grant_permissions(["clipboard-read", "clipboard-write"])
    return lambda: blank.evaluate("navigator.clipboard.readText()")


def test_the_line_of_a_tried_fix_is_copied_as_it_stands_in_the_source(show: Any, wrong: Any, clipboard: Any) -> None:
    page = show(wrong)
    page.get_by_role("button", name="Copy line").click()
    expect(page.locator(".fix .copy")).to_contain_text("Copied.")
    assert clipboard() == "            grad_weight = input.t().mm(grad_output)"


def test_a_fix_that_was_not_tried_has_no_button(show: Any, samples: Any) -> None:
    finding = replace(samples.TRANSPOSED, fix=replace(samples.TRANSPOSED.fix, verified=False))
    check = samples.gradcheck(wrong=True, findings=(finding,))
    page = show(samples.report(wrong=True, gradcheck=check, findings=(finding,)))
    expect(page.locator(".fix")).to_contain_text("not tried")
    expect(page.get_by_role("button", name="Copy line")).to_have_count(0)


@pytest.mark.parametrize("make", ["report", "gradcheck", "comparison"])
def test_the_report_is_copied_for_an_issue(asking: Any, samples: Any, clipboard: Any, make: str) -> None:
    value = getattr(samples, make)(**({} if make == "comparison" else {"wrong": True}))
    page = asking(value)
    page.get_by_role("button", name="Copy for an issue").click()
    expect(page.locator(".copy").filter(has_text="Copy for an issue")).to_contain_text("Copied.")
    copied = clipboard()
    assert torch.__version__ in copied.splitlines()[0]
    assert text(value) in copied
    page.get_by_role("checkbox").check()
    page.get_by_role("button", name="Copy for an issue").click()
    page.wait_for_function("async all => (await navigator.clipboard.readText()) !== all", arg=copied)
    assert text(redacted(value)) in clipboard()


def test_a_report_is_frozen_into_a_page_of_its_own(asking: Any, samples: Any, tmp_path: Any) -> None:
    page = asking(samples.report(wrong=True))
    with page.expect_download() as saved:
        page.get_by_role("button", name="Freeze this report").click()
    assert saved.value.suggested_filename == "LinearFunction.html"
    saved.value.save_as(tmp_path / "page.html")
    page.set_content((tmp_path / "page.html").read_text(encoding="utf-8"))
    expect(page.get_by_role("tab", name="Jacobian")).to_be_visible()


def test_every_way_to_a_line_leads_to_the_one_of_the_headline(show: Any, samples: Any) -> None:
    report = samples.report(wrong=True)
    finding = report.gradcheck.findings[0]
    moved = replace(finding, fix=replace(finding.fix, line=finding.fix.line - 1, verified=True))
    check = replace(report.gradcheck, findings=(moved,))
    page = show(replace(report, findings=(moved,), gradcheck=check, source=SOURCE))
    [said] = set(re.findall(r"line (\d+)", page.locator(".fix").inner_text()))
    assert int(said) == moved.fix.line != finding.line
    assert page.get_by_role("button", name=f"Show line {said}").count() == 1
    page.get_by_role("tab", name="Jacobian").click()
    page.get_by_role("button", name="Worst entry").click()
    ways = page.locator("[role=tabpanel]:visible").get_by_role("button", name=re.compile(r"line \d+")).all_inner_texts()
    assert [re.findall(r"\d+", words) for words in ways] == [[said]]


NOTEBOOK = """(cells) => {
  const notebook = { inserted: [], cells: cells.map(([cell_type, source]) => ({ cell_type, getSource: () => source })),
                     insertCell(at, cell) { this.inserted.push([at, cell]); } };
  nb.notebook = notebook;
  nb.model.widget_manager = { context: { model: { sharedModel: notebook } } };
}"""
ERRORS = "            grad_weight = input.t().mm(grad_output)"


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


def gone(page: Page) -> str:
    """The line that the fix takes away, as it stands in the source."""
    return page.locator(".fix .before").first.inner_text().removeprefix("-").strip()


def test_the_cell_with_the_change_is_put_below_the_output_with_the_rest_of_its_class(in_notebook: Any) -> None:
    first = in_notebook([("code", "")], 0)
    line = gone(first)
    first.evaluate("() => document.querySelectorAll('.jp-Cell').forEach((cell) => cell.remove())")
    cell = f"%%autograd_function\nclass Linear:\n    def backward():\n        {line}\n        return 1"
    page = in_notebook([("markdown", line), ("code", cell), ("code", "%gradcheck f(x)"), ("code", cell)], 2)
    page.get_by_role("button", name="New cell below").last.click()
    expect(page.locator(".fix .copy").last).to_contain_text("cell below")
    [[at, inserted]] = page.evaluate("nb.notebook.inserted")
    assert at == 3
    assert inserted["cell_type"] == "code"
    rows = inserted["source"].split("\n")
    assert (rows[:3], rows[4:]) == (cell.split("\n")[:3], cell.split("\n")[4:])
    assert rows[3] == "        " + ERRORS.strip()


def test_the_line_of_another_class_at_another_place_is_left_alone(in_notebook: Any) -> None:
    page = in_notebook([("code", "")], 0)
    line, told = gone(page), int(re.findall(r"line (\d+)", page.locator(".fix .bar").first.inner_text())[0])
    page.evaluate("() => document.querySelectorAll('.jp-Cell').forEach((cell) => cell.remove())")
    mine, other = "\n" * (told - 1) + line, f"class Other:\n{line}"
    page = in_notebook([("code", mine), ("code", other), ("code", "%gradcheck f(x)")], 2)
    page.get_by_role("button", name="New cell below").last.click()
    expect(page.locator(".fix .copy").last).to_contain_text("cell below")
    [[at, inserted]] = page.evaluate("nb.notebook.inserted")
    assert at == 3
    assert "class Other" not in inserted["source"]


def test_where_no_cell_holds_the_line_any_more_it_is_said_and_nothing_is_put_in(in_notebook: Any) -> None:
    page = in_notebook([("code", "x = 1")], None)
    page.get_by_role("button", name="New cell below").click()
    expect(page.locator(".fix .copy").last).to_contain_text("Its cell is gone")
    assert page.evaluate("nb.notebook.inserted") == []


def test_a_front_end_that_shares_no_notebook_has_no_button_for_a_cell(show: Any, wrong: Any) -> None:
    page = show(wrong)
    expect(page.get_by_role("button", name="Copy line")).to_have_count(1)
    expect(page.get_by_role("button", name="New cell below")).to_have_count(0)
