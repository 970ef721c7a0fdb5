"""From the verdict to its evidence on a page: linked selection, the microscope, sliders, other points, the last run."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from functions_checked import CubedWrong
from playwright.sync_api import expect
from widget_page import answer

import nbautograd
from nbautograd.core.user_source import FunctionSource, Returned
from nbautograd.widgets.jacobian import again, elsewhere, microscope

pytestmark = pytest.mark.browser

SOURCE = FunctionSource(
    "LinearFunction", "<cell>", 21, "class LinearFunction:\n    a = 1\n    b = 2\n", "combined",
    gradients=(Returned("grad_input", 22, None), Returned("grad_weight", 23, None)),
)  # fmt: skip


@pytest.fixture
def cubed() -> Any:
    return nbautograd.gradcheck(CubedWrong, torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True))


def ask(page: Any, reply: Any, report: Any, question: Any) -> None:
    """Answer the page's question as Python does."""
    answer(page, question, reply(report, question))


def test_an_entry_leads_to_its_elements_its_line_and_its_call(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, source=SOURCE), tab="jacobian", selection={"block": [0, 1], "entry": [0, 3]})
    panel = page.get_by_role("tabpanel", name="Jacobian")
    expect(panel).to_contain_text(re.compile(r"output\[0,0\] = 3.0.*weight\[1,0\] = 3.0", re.S))
    panel.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("nb.model.get('selection')") == {"block": [0, 1], "entry": [0, 4], "line": 23, "call": 1}
    expect(panel).to_contain_text("weight[1,1] = 4.0")
    panel.get_by_role("button", name="Show in Gradcheck").click()
    expect(page.locator("tr:has(> th > [aria-pressed='true'])")).to_contain_text("d output / d weight")
    page.get_by_role("tab", name="Source").click()
    expect(page.locator(".source .marked")).to_have_text(re.compile(r"23\s+b = 2"))
    page.get_by_role("tab", name="Calls").click()
    expect(page.get_by_role("button", name=re.compile("backward #1"))).to_have_attribute("aria-pressed", "true")


def test_show_me_of_a_finding_goes_to_the_worst_entry(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, source=SOURCE))
    page.get_by_role("button", name="Show in Jacobian").first.click()
    expect(page.get_by_role("tabpanel", name="Jacobian")).to_contain_text("output[0,0] = 3.0")
    assert page.evaluate("nb.model.get('selection').entry") == [0, 3]


def test_the_microscope_asks_and_shows_both_slopes(show: Any, cubed: Any) -> None:
    page = show(cubed)
    page.get_by_role("button", name="Microscope").click()
    question = page.evaluate("nb.sent.at(-1)")
    assert (question["kind"], question["block"], question["entry"]) == ("microscope", [0, 0], [1, 1])
    ask(page, microscope, cubed, question)
    detail = page.locator("section.detail")
    expect(detail).to_contain_text("Microscope: d output[1] / d x[1]")
    expect(detail).to_contain_text(
        re.compile(r"Step 0.01, float64: finite differences give 27.0001, your backward gives 9.0")
    )
    expect(detail.locator("line.claimed, line.secant")).to_have_count(2)
    detail.get_by_role("slider", name="step").last.press("Home")
    expect(detail).to_contain_text("Step 1e-12, float64")
    detail.get_by_role("combobox", name="Precision").select_option("float32")
    expect(detail).to_contain_text("Step 1e-12, float32: finite differences give 0.0,")
    detail.get_by_role("slider", name="step").last.press("End")
    expect(detail).to_contain_text("Step 1.0, float32: finite differences give 28.0,")


def test_the_microscope_says_that_there_is_nothing_to_see_where_nothing_moves(show: Any, cubed: Any) -> None:
    page = show(cubed, kind="jacobian", selection={"block": [0, 0], "entry": [0, 1]})  # d output[0] / d x[1]
    page.get_by_role("button", name="Microscope").click()
    ask(page, microscope, cubed, page.evaluate("nb.sent.at(-1)"))
    detail = page.locator("section.detail")
    expect(detail).to_contain_text("the output element stays 8.0: this entry is 0")
    expect(detail.locator("svg")).to_have_count(0)
    expect(detail.get_by_role("slider")).to_have_count(0)


def test_when_the_function_is_gone_the_microscope_says_so(show: Any, samples: Any) -> None:
    page = show(samples.gradcheck(wrong=True))
    page.get_by_role("button", name="Microscope").click()
    with pytest.raises(Exception, match="are gone") as gone:
        microscope(samples.gradcheck(wrong=True), {"block": [0, 1], "entry": [0, 0]})
    page.evaluate("([id, error]) => nb.reply({ id, error })", [page.evaluate("nb.sent.at(-1).id"), str(gone.value)])
    expect(page.locator("section.detail")).to_contain_text("Run the check again.")


def test_a_step_judges_again_from_kept_numbers(show: Any, samples: Any) -> None:
    page = show(samples.gradcheck(wrong=True))
    said = page.locator(".detail").get_by_role("status").first
    expect(said).to_contain_text("finite differences at step 1e-6 are good to")
    page.get_by_role("button", name="d output / d input").click()
    expect(said).to_contain_text("are good to")
    assert page.evaluate("nb.sent.length") == 0


def test_a_slider_stands_on_the_step_that_the_sentence_names(show: Any, samples: Any) -> None:
    report = samples.gradcheck(wrong=True)
    steps = np.array([3e-9, 6.6e-7, 2e-4, 0.13])
    block = replace(report.blocks[0, 1], steps=steps, errors=np.array([1e-6, 1e-9, 1e-7, 1e-3]))
    page = show(replace(report, blocks={**report.blocks, (0, 1): block}))
    slider, said = page.get_by_role("slider", name="step"), page.locator(".detail").get_by_role("status").first
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        slider.press(key)
        step = slider.get_attribute("aria-valuetext")
        expect(said).to_contain_text(f"at step {step}")
        seen.append(step)
    assert seen == ["3e-9", "6.6e-7", "0.0002", "0.13", "0.13"]


def test_where_no_step_has_an_error_a_sentence_stands_for_the_curve(show: Any, samples: Any) -> None:
    report = samples.gradcheck(wrong=True)
    block = replace(report.blocks[0, 1], steps=np.array([1e-6, 1e-3]), errors=np.zeros(2))
    page = show(replace(report, blocks={**report.blocks, (0, 1): block}))
    expect(page.locator(".curve")).to_contain_text("None: finite differences are exact")
    expect(page.locator(".curve svg")).to_have_count(0)


def test_another_random_point_is_asked_for(show: Any, cubed: Any) -> None:
    page = show(cubed)
    page.get_by_role("button", name="Another random point").click()
    ask(page, elsewhere, cubed, page.evaluate("nb.sent.at(-1)"))
    expect(page.get_by_role("status").first).to_contain_text(
        re.compile("Random point 1: .*wrong.*CubedWrong: backward is wrong for x")
    )


def test_what_cannot_be_told_is_decided_by_a_button(show: Any) -> None:
    report = nbautograd.gradcheck(CubedWrong, (torch.tensor([2.0, 3.0]).half().requires_grad_(),), budget=1e-9)
    page = show(report)
    page.get_by_role("button", name="Check without a time limit").click()
    expect(page.get_by_role("status").first).to_have_text("Checking…")
    ask(page, lambda checked, _question: again(checked), report, page.evaluate("nb.sent.at(-1)"))
    expect(page.get_by_role("status").first).to_contain_text(re.compile("wrong.*backward is wrong for x"))
