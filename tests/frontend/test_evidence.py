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
from widget_page import answer, button, panel, tab, words

import nbautograd
from nbautograd.core.user_source import FunctionSource, Returned
from nbautograd.errors import InputError
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
    shown = panel(page, "jacobian")
    expect(shown).to_contain_text(re.compile(r"output\[0,0\] = 3.0.*weight\[1,0\] = 3.0", re.S))
    shown.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.evaluate("nb.model.get('selection')") == {"block": [0, 1], "entry": [0, 4], "line": 23, "call": 1}
    expect(shown).to_contain_text("weight[1,1] = 4.0")
    button(shown, "widgets.show_gradcheck").click()
    expect(page.locator("tr:has(> th > [aria-pressed='true'])")).to_contain_text("d output / d weight")
    tab(page, "source").click()
    expect(page.locator(".source .marked")).to_have_text(re.compile(r"23\s+b = 2"))
    tab(page, "calls").click()
    expect(page.get_by_role("button", name="backward #1")).to_have_attribute("aria-pressed", "true")


def test_show_me_of_a_finding_goes_to_the_worst_entry(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True, source=SOURCE))
    button(page, "widgets.show_jacobian").first.click()
    expect(panel(page, "jacobian")).to_contain_text("output[0,0] = 3.0")
    assert page.evaluate("nb.model.get('selection').entry") == [0, 3]


def test_the_microscope_asks_and_shows_both_slopes(show: Any, cubed: Any) -> None:
    page = show(cubed)
    button(page, "widgets.microscope").click()
    question = page.evaluate("nb.sent.at(-1)")
    assert (question["kind"], question["block"], question["entry"]) == ("microscope", [0, 0], [1, 1])
    ask(page, microscope, cubed, question)
    detail = page.locator("section.detail")
    expect(detail).to_contain_text("d output[1] / d x[1]")
    step = detail.get_by_role("slider").last

    def says(**numbers: str) -> None:
        expect(detail).to_contain_text(words("widgets.microscope_say", **numbers))

    says(step="0.01", dtype="float64", secant="27.0001", claimed="9.0")
    expect(detail.locator("line.claimed, line.secant")).to_have_count(2)
    step.press("Home")
    says(step="1e-12", dtype="float64")
    detail.get_by_role("combobox").select_option("float32")
    says(step="1e-12", dtype="float32", secant="0.0")
    step.press("End")
    says(step="1.0", dtype="float32", secant="28.0")


def test_the_microscope_says_that_there_is_nothing_to_see_where_nothing_moves(show: Any, cubed: Any) -> None:
    page = show(cubed, kind="jacobian", selection={"block": [0, 0], "entry": [0, 1]})  # d output[0] / d x[1]
    button(page, "widgets.microscope").click()
    ask(page, microscope, cubed, page.evaluate("nb.sent.at(-1)"))
    detail = page.locator("section.detail")
    expect(detail).to_contain_text(words("widgets.microscope_flat", value="8.0"))
    expect(detail.locator("svg, input")).to_have_count(0)


def test_when_the_function_is_gone_the_microscope_says_so(show: Any, samples: Any) -> None:
    page = show(samples.gradcheck(wrong=True))
    button(page, "widgets.microscope").click()
    with pytest.raises(InputError) as gone:
        microscope(samples.gradcheck(wrong=True), {"block": [0, 1], "entry": [0, 0]})
    page.evaluate("([id, error]) => nb.reply({ id, error })", [page.evaluate("nb.sent.at(-1).id"), str(gone.value)])
    expect(page.locator("section.detail")).to_contain_text(str(gone.value).replace("`", ""))


def test_a_slider_judges_again_from_kept_numbers_at_the_step_that_the_sentence_names(show: Any, samples: Any) -> None:
    report = samples.gradcheck(wrong=True)
    steps = np.array([3e-9, 6.6e-7, 2e-4, 0.13])
    block = replace(report.blocks[0, 1], steps=steps, errors=np.array([1e-6, 1e-9, 1e-7, 1e-3]))
    page = show(replace(report, blocks={**report.blocks, (0, 1): block}))
    slider, said = page.locator(".detail").get_by_role("slider"), page.locator(".detail").get_by_role("status").first
    seen = []
    for key in ("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"):
        slider.press(key)
        step = slider.get_attribute("aria-valuetext")
        expect(said).to_contain_text(words("widgets.naive", step=step))
        seen.append(step)
    assert seen == ["3e-9", "6.6e-7", "0.0002", "0.13", "0.13"]
    page.get_by_role("button", name="d output / d input").click()
    expect(said).to_contain_text(words("widgets.naive"))
    assert page.evaluate("nb.sent.length") == 0
    exact = replace(block, errors=np.zeros(4))
    page = show(replace(report, blocks={**report.blocks, (0, 1): exact}))
    expect(page.locator(".curve").last).to_contain_text(words("widgets.curve_exact"))
    expect(page.locator(".curve").last.locator("svg")).to_have_count(0)


WRONG = words("views.headline.wrong_for", function="CubedWrong", inputs="x")


def test_another_random_point_is_asked_for(show: Any, cubed: Any) -> None:
    page = show(cubed)
    button(page, "widgets.elsewhere").click()
    ask(page, elsewhere, cubed, page.evaluate("nb.sent.at(-1)"))
    said = page.get_by_role("status").first
    expect(said).to_contain_text(words("widgets.elsewhere_says", seed=1))
    expect(said).to_contain_text(WRONG)


def test_what_cannot_be_told_is_decided_by_a_button(show: Any) -> None:
    report = nbautograd.gradcheck(CubedWrong, (torch.tensor([2.0, 3.0]).half().requires_grad_(),), budget=1e-9)
    page = show(report)
    button(page, "widgets.again.limit").click()
    said = page.get_by_role("status").first
    expect(said).to_have_text(words("widgets.checking"))
    ask(page, lambda checked, _question: again(checked), report, page.evaluate("nb.sent.at(-1)"))
    expect(said).to_contain_text(WRONG)


def test_a_block_that_came_in_brief_is_asked_for_when_it_is_looked_at(show: Any, samples: Any) -> None:
    block = samples.gradcheck().blocks[0, 0]
    blocks = {(0, i): replace(block, input=i, input_name=f"x{i}") for i in range(151)}
    report = nbautograd.types.GradcheckReport("F", "wrong", blocks=blocks)  # a right one is folded
    page = show(report)
    page.evaluate("nb.model.set('selection', { block: [0, 150] })")
    page.wait_for_function("nb.sent.length")
    question = page.evaluate("nb.sent[0]")
    assert (question["kind"], question["block"]) == ("block", [0, 150])
    answer(page, question, report.widget().questions()["block"](question))
    detail = page.locator("section.detail")
    expect(detail.get_by_text(words("views.witness.finite_differences")).first).to_be_visible()
    expect(detail).to_contain_text("d output / d x150")
