"""The Calls view on a page: the time line, the chosen pair, calls that are asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from fn import Fn
from playwright.sync_api import expect
from widget_page import RENDER, answer, button, words

import nbautograd
from nbautograd.core.recording.call import CallLog
from nbautograd.messages import text
from nbautograd.widgets.calls import some_calls

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
    page = show(samples.calls(), selection={"call": 0})
    chips = page.locator(".track").get_by_role("button")
    expect(chips).to_have_count(2)
    expect(page.locator(".track path.link")).to_have_count(1)  # from forward to its backward
    front, kept, back = page.locator(".pair > section").all()
    parts = ("caller", "inputs", "printed", "outputs"), ("grad_outputs", "gradients")
    for half, names in zip((front, back), parts, strict=True):
        expect(half).to_contain_text(re.compile(".*".join(words(f"views.call.{n}").pattern for n in names), re.S))
    expect(front).to_contain_text("FORWARD: output=")
    expect(kept).to_contain_text("needs_input_grad: True, True, False")
    expect(back.get_by_role("img", name=words("views.tensor.thumb", name="grad_weight"))).to_be_visible()
    chips.first.focus()
    page.keyboard.press("ArrowRight")
    expect(chips.nth(1)).to_be_focused()
    assert page.evaluate("nb.model.get('selection').call") == 1


def test_where_each_of_several_functions_counts_its_calls_a_chip_names_the_function(show: Any, samples: Any) -> None:
    one = samples.calls()[0]
    calls = [replace(one, index=k, number=1, function=name) for k, name in enumerate(["Cube", "Square"], start=1)]
    page = show(CallLog(tuple(calls)))
    assert page.locator(".chip .faint").all_text_contents() == ["Cube #1", "Square #1"]


def test_many_calls_are_on_the_page_only_where_seen(show: Any, samples: Any) -> None:
    page = show(training(samples, 250))
    chips = page.locator(".chip")
    assert chips.count() < 30
    chosen = page.get_by_role("button", name="backward #499")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    chosen.focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("button", name="forward #0,")).to_be_focused()
    assert chips.count() < 30


def test_an_exception_stands_where_the_outputs_would(show: Any, samples: Any) -> None:
    forward, backward = samples.calls()
    page = show(CallLog((forward, replace(backward, exception="TypeError: no", outputs=()))))
    expect(page.locator(".method pre").last).to_have_text("TypeError: no")
    expect(page.locator(".chip.bad")).to_have_count(1)
    expect(page.locator(".pair")).not_to_contain_text(words("views.call.gradients"))


def test_a_sample_says_so(show: Any) -> None:
    with nbautograd.recording(Halved) as log:
        Halved.apply(torch.arange(10_000.0).reshape(100, 100).requires_grad_()).sum().backward()
    page = show(log)
    tip = page.locator(".thumb .tip:visible")
    page.locator(".pair").get_by_role("img").first.hover(position={"x": 3, "y": 3})
    expect(tip).to_have_text(words("widgets.cell_sampled"))
    page.get_by_role("img", name="grad_output").first.hover(position={"x": 3, "y": 3})
    expect(tip).to_have_text(words("widgets.cell_range", first="grad_output[0,0]", last="[3,3]", low=1.0, high=1.0))


def test_a_value_met_before_is_named_not_drawn_again(show: Any, samples: Any) -> None:
    forward, backward = samples.calls()
    saved = tuple(replace(v, same_as=f"input {k}") for k, v in enumerate(forward.ctx.saved_tensors))
    ctx = replace(forward.ctx, saved_tensors=saved)
    page = show(CallLog((replace(forward, ctx=ctx), replace(backward, ctx=ctx))))
    expect(page.locator(".kept")).to_contain_text(words("views.tensor.same", other="input 0"))
    expect(page.locator(".kept").get_by_role("img")).to_have_count(0)


Halved = Fn.of("Halved", "x: return x / 2", "grad_output: return grad_output / 2")


def diverging(samples: Any, pairs: int, bad: int) -> CallLog:
    """A training whose gradients are NaN from one backward on."""
    log = training(samples, pairs)

    def spoilt(call: Any) -> Any:
        if call.index < 2 * bad or call.method != "backward":
            return call
        return replace(
            call,
            outputs=tuple(
                replace(one, tensor=one.tensor and replace(one.tensor, nan=2, norm=1.0)) for one in call.outputs
            ),
        )

    return CallLog(tuple(map(spoilt, log.calls)))


def lists(page: Any, first: int, last: int, count: int) -> None:
    """Expect the page to list these calls of all."""
    shown = words("widgets.trend_range", first=first, last=last, count=count)
    expect(page.locator(".trends")).to_contain_text(shown)


def test_lines_show_how_gradients_and_time_go_and_the_first_bad_call_is_one_click_away(show: Any, samples: Any) -> None:
    page = show(diverging(samples, 100, 60))
    for name in ("incoming", "outgoing", "bad", "seconds"):
        said = words("widgets.trend_of", name=text(f"widgets.trend.{name}"), count=200)
        expect(page.get_by_role("img", name=said)).to_be_visible()
    assert len(page.locator(".trend.incoming polyline").get_attribute("points").split()) == 100  # of backwards
    assert page.locator(".bad-mark").get_attribute("style") == "left:60.75%"  # of call 122 of 200
    button(page, "widgets.trend_bad", call="#121").click()
    assert page.evaluate("nb.model.get('selection').call") == 121
    expect(page.get_by_role("button", name="backward #121")).to_have_attribute("aria-pressed", "true")
    lists(page, 102, 142, 200)


def test_a_brush_lists_the_calls_under_it(show: Any, samples: Any) -> None:
    page = show(training(samples, 100))
    area = page.get_by_role("slider")
    box = area.bounding_box()
    y = box["y"] + 5
    page.mouse.move(box["x"] + box["width"] * 0.25 + 1, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3 - 1, y, steps=4)
    page.mouse.up()
    lists(page, 51, 60, 200)
    expect(page.locator(".track")).to_have_attribute("aria-label", re.compile(r"\(10\)"))
    assert page.evaluate("nb.model.get('selection').call") == 59
    area.press("ArrowRight")
    lists(page, 61, 70, 200)
    area.press("Escape")
    expect(page.locator(".track")).to_have_attribute("aria-label", re.compile(r"\(200\)"))


def test_calls_that_are_not_on_the_page_are_asked_for(show: Any, samples: Any) -> None:
    log = training(samples, 1500)
    page = show(log)
    lists(page, 2501, 3000, 3000)
    expect(page.locator(".trends")).to_contain_text(words("widgets.trend_help"))
    expect(page.locator(".calls")).not_to_contain_text(words("widgets.dropped"))
    page.get_by_role("slider").focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    lists(page, 1, 500, 3000)
    asked = page.evaluate("nb.sent.filter((q) => q.kind === 'some_calls').at(-1)")
    assert (asked["first"], asked["count"]) == (0, 500)
    answer(page, asked, some_calls(log, asked))
    expect(page.locator(".track")).to_have_attribute("aria-label", re.compile(r"\(500\)"))
    expect(page.get_by_role("button", name="backward #499")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    lists(page, 2501, 3000, 3000)
    assert len(page.evaluate("nb.sent.filter((q) => q.kind === 'some_calls')")) == 5


def test_a_saved_copy_says_which_calls_it_cannot_list(load: Any, samples: Any) -> None:
    page = load(training(samples, 300))
    page.evaluate("nb.model.knows = () => false")
    page.evaluate(RENDER)
    expect(page.locator(".calls")).to_contain_text(words("widgets.dropped", count=100))


FAR = 1e9


def large() -> CallLog:
    """The calls of a report on inputs of 60,000 elements, one of which is far off and one NaN."""
    x = torch.linspace(-1, 1, 60_000, dtype=torch.float64).reshape(200, 300)
    x[17, 41], x[100, 200] = FAR, float("nan")
    return nbautograd.inspect(Halved, x.requires_grad_()).calls


def test_of_a_large_tensor_each_cell_says_the_range_under_it(show: Any) -> None:
    page = show(large())
    inputs = page.locator(".pair > section").first
    expect(inputs).to_contain_text(words("views.panel.pooled", rows=7, cols=10))
    expect(inputs).to_contain_text(words("views.tensor.nan", n=1))
    expect(inputs).not_to_contain_text(words("views.tensor.sampled"))
    picture = inputs.get_by_role("img").first
    box = picture.bounding_box()
    tip = page.locator(".thumb .tip:visible")

    def point(row: int, col: int) -> None:
        picture.hover(position={"x": (col + 0.5) * box["width"] / 30, "y": (row + 0.5) * box["height"] / 29})

    for place, said, first, last, most in (
        ((2, 4), "cell_range", "x[14,40]", "[20,49]", "1e9"),
        ((14, 20), "cell_range_nan", "x[98,200]", "[104,209]", "0."),
        ((28, 29), "cell_range", "x[196,290]", "[199,299]", "1.0"),
    ):
        point(*place)
        expect(tip).to_have_text(words(f"widgets.{said}", first=first, last=last, high=most))
