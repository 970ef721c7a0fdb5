"""The live views in JupyterLab: they ask Python, Python reads them, and none piles up or is left behind."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fn import typed
from jupyter_app import cell, execute, ours, run_all, run_cell, visit, write
from playwright.sync_api import expect
from widget_page import button, panel, reads, tab, words

from nbautograd.messages import text

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

CLASS = typed("Square", "x: save(x); return x * x", "g: x, = saved; return (2 * x + (x > 2.5)) * g")
SQUARE = f"""import torch, nbautograd
{CLASS}
x = torch.linspace(-3, 3, 300, dtype=torch.float64, requires_grad=True)"""
OPEN = """from nbautograd.widgets import live
print("open:", len(live._open))"""


def views(page: Any, number: int) -> Any:
    return cell(page, number).locator(".nbag-live")


def test_a_cell_run_again_has_one_view_with_its_tab_its_height_and_its_place(page, lab):
    """JupyterLab itself scrolls to the top of a cell that it runs, when that is out of sight: here it is in sight."""
    much = "print(*range(80), sep='\\n')"
    report = "nbautograd.inspect(Square, x)"
    visit(page, lab, write(lab, "loop.ipynb", SQUARE.replace("300", "6"), much, report, much, OPEN))
    run_all(page)
    expect(views(page, 3)).to_have_count(1, timeout=60_000)
    output = cell(page, 3)
    tab(output, "jacobian").click()
    expect(output.get_by_role("application")).to_be_visible()
    output.locator(".cm-content").click()
    for _ in range(4):
        before = output.locator(".jp-Cell-outputWrapper").evaluate(
            """wrapper => {
              const outer = wrapper.closest(".jp-WindowedPanel-outer"), cell = wrapper.closest(".jp-Cell");
              outer.scrollTop += cell.getBoundingClientRect().top - outer.getBoundingClientRect().top - 30;
              wrapper.querySelector(".nbag-live").dataset.old = "";
              cancelAnimationFrame(window.frame);
              window.heights = new Set();
              window.places = new Set();
              const look = () => {
                heights.add(wrapper.getBoundingClientRect().height);
                places.add(`${outer.scrollTop} ${cell.getBoundingClientRect().top}`);
                window.frame = requestAnimationFrame(look);
              };
              look();
              return wrapper.getBoundingClientRect().height;
            }"""
        )
        page.keyboard.press("Control+Enter")
        expect(output.locator(".nbag-live:not([data-old])")).to_have_count(1, timeout=60_000)
        expect(panel(output, "jacobian")).to_be_visible()
        assert before > 200
        assert page.evaluate("[...heights]") == [pytest.approx(before, abs=2)] * page.evaluate("heights.size")
        assert page.evaluate("places.size") == 1
        expect(views(page, 3)).to_have_count(1)
        expect(output.locator(".nbautograd")).to_be_hidden()
    run_cell(page, 5)
    expect(cell(page, 5).locator(".jp-OutputArea")).to_contain_text("open: 1")  # the old ones were closed
    assert ours(page.errors) == []


@pytest.mark.nightly
def test_reloaded_the_view_is_back_and_a_restarted_kernel_leaves_something_to_read(page, lab):
    name = write(lab, "reloaded.ipynb", SQUARE, "nbautograd.gradcheck(Square, (x,))")
    visit(page, lab, name)
    run_all(page)
    expect(views(page, 2)).to_have_count(1, timeout=60_000)
    execute(page, "docmanager:save")
    page.goto("about:blank")
    visit(page, lab, name)
    expect(views(page, 2)).to_have_count(1, timeout=60_000)
    expect(cell(page, 2).locator(".nbautograd")).to_be_hidden()
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'", timeout=60_000
    )
    expect(cell(page, 2).locator(".jp-OutputArea")).to_contain_text(words("views.headline.wrong_for"))


def test_backward_in_slow_motion_runs_when_it_is_opened(page, lab):
    slow = "report = nbautograd.gradcheck(Square, (x,))\nreport"
    visit(page, lab, write(lab, "motion.ipynb", SQUARE.replace("300", "6"), slow, "report.slow_motion()"))
    run_all(page)
    expect(views(page, 2)).to_have_count(1, timeout=60_000)
    cell(page, 2).get_by_text(words("widgets.motion_part")).click()
    for number in (2, 3):
        motion = cell(page, number).get_by_role("group", name=words("widgets.motion_help"))
        motion.focus()
        page.keyboard.press("End")
        expect(motion.locator(".edge.wrong")).to_have_count(1)
        expect(motion.locator(".row.wrong")).to_have_text(re.compile("return .2 . x"))
        expect(motion.get_by_role("status")).to_contain_text(words("views.motion.returns_wrong", names="x"))
    assert ours(page.errors) == []


def test_zoom_asks_python_and_python_reads_the_selection(page, lab):
    show = "view = nbautograd.jacobian(Square, (x,)).widget()\nview"
    visit(page, lab, write(lab, "zoom.ipynb", SQUARE, show, "print(view.selection)"))
    run_cell(page, 1)
    run_cell(page, 2)
    expect(views(page, 2)).to_have_count(1, timeout=60_000)
    output = cell(page, 2)
    expect(output.locator(".note")).to_have_text(words("widgets.pooled", rows=5, cols=5))
    maps = output.get_by_role("application")
    maps.focus()
    page.keyboard.press("PageDown")
    page.keyboard.press("End")
    expect(output.get_by_role("status")).to_contain_text(re.compile(r"\[295\]…\[299\] / d x\[295\]…\[299\]"))
    page.keyboard.press("Enter")
    expect(button(output, "widgets.zoom_out")).to_be_visible()
    page.keyboard.press("PageDown")
    page.keyboard.press("End")
    expect(output.get_by_role("status")).to_contain_text("d x[299]")
    reads(output.get_by_role("status"), analytical="7.0", numerical="6.0")
    page.keyboard.press("Enter")
    expect(cell(page, 2)).to_be_visible()
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.content.widgets.length === 3")  # no cell made
    expect_selection(page)
    assert ours(page.errors) == []


def expect_selection(page: Any) -> None:
    """Run the cell that prints the selection until what was chosen on the page has arrived in Python."""
    printed = cell(page, 3).locator(".jp-OutputArea")
    for _ in range(20):
        run_cell(page, 3)
        expect(printed).to_contain_text("{")
        if "'entry': [299, 299]" in printed.inner_text():
            return
    expect(printed).to_contain_text("'entry': [299, 299]")


def test_a_button_runs_the_backward_that_a_lens_needs(page, lab):
    made = "%load_ext nbautograd\nimport torch\nw = torch.ones(3, requires_grad=True)\ncost = (w * w).sum()"
    visit(page, lab, write(lab, "lens.ipynb", f"{made}\n%autograd_graph cost", "print(w.grad)"))
    run_cell(page, 1)
    lens = cell(page, 1).locator("[data-at=lens]")
    lens.select_option("gradients")
    expect(cell(page, 1).locator(".lens")).to_contain_text("cost.backward(")
    button(cell(page, 1), "widgets.lens.run_backward").click()
    expect(cell(page, 1).locator(".lens").get_by_text("|g| 1.73").first).to_be_visible(timeout=60_000)
    expect(lens).to_be_focused()
    run_cell(page, 2)
    expect(cell(page, 2).locator(".jp-OutputArea")).to_contain_text("tensor([2., 2., 2.])")
    assert ours(page.errors) == []


CUBED = typed("Cubed", "x: save(x); return x ** 3", "grad_output: x, = saved; return 2 * x ** 2 * grad_output")
WRONG = f"%%autograd_function\n{CUBED}"
CHECK = """%gradcheck Cubed.apply(torch.linspace(1, 2, 3, dtype=torch.float64, requires_grad=True))"""


@pytest.mark.parametrize("served", ["lab", pytest.param("notebook7", marks=pytest.mark.nightly)])
def test_the_class_with_the_tried_change_comes_in_a_cell_below_and_runs(served, page, request):
    app = request.getfixturevalue(served)
    visit(page, app, write(app, "below.ipynb", "%load_ext nbautograd\nimport torch", WRONG, CHECK, "print('last')"))
    run_all(page)
    expect(views(page, 3)).to_have_count(1, timeout=60_000)
    expect(cell(page, 2).locator(".jp-OutputArea")).to_contain_text(words("magics.card_waiting", names="Cubed"))
    below = button(cell(page, 3), "widgets.cell_below")
    more = cell(page, 3).get_by_text(text("widgets.more"), exact=True)
    expect(more).to_be_visible(timeout=60_000)  # with the JupyterLab extension the first button applies the change
    more.click()
    below.click()
    expect(cell(page, 4)).to_contain_text("class Cubed")
    expect(cell(page, 4)).to_contain_text("3 * x ** 2 * grad_output")
    expect(cell(page, 5)).to_contain_text("last")
    run_cell(page, 4)
    run_cell(page, 3)
    expect(cell(page, 3).locator(".verdict.good").first).to_be_visible(timeout=60_000)
    assert ours(page.errors) == []
