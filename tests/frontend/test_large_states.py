"""What is heavy: blocks that are asked for one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect
from widget_page import answer

import nbautograd

pytestmark = pytest.mark.browser


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
    expect(detail.get_by_text("finite differences").first).to_be_visible()
    expect(detail).to_contain_text("d output / d x150")
