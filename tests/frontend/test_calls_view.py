"""The Calls view on a page: the time line, the chosen pair, calls that are asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import expect

from nbautograd.core.recording.call import CallLog
from nbautograd.widgets.calls import one_call

pytestmark = pytest.mark.browser


def training(samples: Any, pairs: int) -> CallLog:
    """The calls of a loop: forward and backward in turn."""
    forward, backward = samples.calls()
    return CallLog(
        tuple(
            replace(call, index=2 * k + j, forward=2 * k if j else None)
            for k in range(pairs)
            for j, call in enumerate((forward, backward))
        )
    )


def test_a_pair_stands_side_by_side_with_ctx_between(show: Any, samples: Any) -> None:
    page = show(samples.calls())
    chips = page.locator(".track").get_by_role("button")
    expect(chips).to_have_count(2)
    expect(page.locator(".track path.link")).to_have_count(1)  # from forward to its backward
    front, kept, back = page.locator(".pair > section").all()
    expect(front).to_contain_text(
        re.compile(r"forward.*called from line 30.*inputs.*printed.*FORWARD: output=.*outputs", re.S)
    )
    expect(kept).to_contain_text("needs_input_grad = (True, True, False)")
    expect(back).to_contain_text(re.compile(r"backward.*grad_outputs.*returned gradients", re.S))
    expect(back.get_by_role("img", name="grad_weight: float64 2×3")).to_be_visible()


def test_arrows_walk_and_select(show: Any, samples: Any) -> None:
    page = show(samples.calls(), selection={"call": 0})
    chips = page.locator(".track").get_by_role("button")
    chips.first.focus()
    page.keyboard.press("ArrowRight")
    expect(chips.nth(1)).to_be_focused()
    assert page.evaluate("nb.model.get('selection').call") == 1


def test_many_calls_are_on_the_page_only_where_seen(show: Any, samples: Any) -> None:
    page = show(training(samples, 500))
    chips = page.locator(".chip")
    assert chips.count() < 30
    expect(page.get_by_role("button", name=re.compile("backward #999"))).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name=re.compile("backward #999")).focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name=re.compile("forward #0,"))).to_be_focused()
    assert chips.count() < 30


def test_older_calls_are_asked_for(show: Any, samples: Any) -> None:
    log = training(samples, 400)
    page = show(log, selection={"call": 0})
    expect(page.locator(".pair")).to_contain_text("Waiting for Python")
    question = page.evaluate("nb.sent.at(-1)")
    assert question["kind"] == "calls"
    assert question["calls"] == [0, 1]
    answer, _ = one_call(log, question)
    page.evaluate("content => nb.reply(content)", {"id": question["id"], **answer})
    expect(page.locator(".pair")).to_contain_text("returned gradients")
    expect(page.get_by_role("img", name="grad_weight: float64 2×3")).to_be_visible()


def test_an_exception_stands_where_the_outputs_would(show: Any, samples: Any) -> None:
    forward, backward = samples.calls()
    page = show(CallLog((forward, replace(backward, exception="TypeError: no", outputs=()))))
    expect(page.locator(".exception")).to_have_text("TypeError: no")
    expect(page.locator(".chip.bad")).to_contain_text("✗")
    expect(page.locator(".pair")).not_to_contain_text("returned gradients")


def test_a_value_met_before_is_named_not_drawn_again(show: Any, samples: Any) -> None:
    forward, backward = samples.calls()
    saved = tuple(replace(v, same_as=f"input {k}") for k, v in enumerate(forward.ctx.saved_tensors))
    ctx = replace(forward.ctx, saved_tensors=saved)
    page = show(CallLog((replace(forward, ctx=ctx), replace(backward, ctx=ctx))))
    expect(page.locator(".kept")).to_contain_text("the same as input 0")
    expect(page.locator(".kept").get_by_role("img")).to_have_count(0)
