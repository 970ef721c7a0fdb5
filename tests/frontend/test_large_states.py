"""What is heavy: a state and answers that come deflated, blocks that are asked for one by one."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

import nbautograd
from nbautograd.widgets import encoding

pytestmark = pytest.mark.browser

DEFLATE = """(text) => {
  const bytes = new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  nb.model.set("state", { packed: bytes });
}"""
DRAW = """async () => { const el = document.createElement("div"); el.id = "view"; document.body.append(el);
                    nb.cleanup = await nb.widget.render({ model: nb.model, el }); }"""


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_state_that_comes_deflated_is_drawn(load: Any, samples: Any) -> None:
    report = samples.report(wrong=True)
    page = load(report)
    view = report.widget()
    page.evaluate(DEFLATE, text(encoding.deflate(view.state)))
    view.close()
    page.evaluate(DRAW)
    expect(page.locator("#view")).to_contain_text("LinearFunction: backward is wrong for weight.")
    page.get_by_role("tab", name="Jacobian").click()
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".reading").first).to_contain_text("d output")  # the arrays are there


@pytest.mark.parametrize("deflated", [False, True])
def test_a_block_that_came_in_brief_is_asked_for_when_it_is_looked_at(show: Any, samples: Any, deflated: bool) -> None:
    block = samples.gradcheck().blocks[0, 0]
    blocks = {(0, i): replace(block, input=i, input_name=f"x{i}") for i in range(151)}
    report = nbautograd.GradcheckReport("F", "right", blocks=blocks)
    page = show(report)
    page.evaluate("nb.model.set('selection', { block: [0, 150] })")
    page.wait_for_function("nb.sent.length")
    question = page.evaluate("nb.sent[0]")
    assert (question["kind"], question["block"]) == ("block", [0, 150])
    answer, _ = report.widget().questions()["block"](question)
    if deflated:
        page.evaluate(
            "([id, data]) => nb.reply({ id, packed: true }, [data])", [question["id"], text(encoding.deflate(answer))]
        )
    else:
        page.evaluate("([id, answer]) => nb.reply({ id, ...answer })", [question["id"], answer])
    detail = page.locator("section.detail")
    expect(detail.get_by_text("finite differences").first).to_be_visible()
    expect(detail).to_contain_text("d output / d x150")


def test_many_nodes_say_what_showing_them_costs(show: Any) -> None:
    import torch

    y = x = torch.ones(2, requires_grad=True)
    for _ in range(2_500):
        y = y.sin() * x
    page = show(nbautograd.graph(y.sum()))
    expect(page.get_by_role("button", name="Show all 5,002 nodes")).to_have_text("Show all 5,002 nodes (about 300 kB)")
