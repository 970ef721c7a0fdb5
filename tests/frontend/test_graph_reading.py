"""The graph as one reads it: opens on modules, search flies, stepping follows and adds up, a legend, a leaf."""

from __future__ import annotations

import re
from typing import Any

import graph_models as models
import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect
from widget_page import button, part_in_sight, words

import nbautograd
from nbautograd.messages import text
from nbautograd.views.layout import first_layout

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def network() -> Any:
    model, loss = models.resnet()
    return nbautograd.graph(loss, names=model)


@pytest.fixture(scope="module")
def branches() -> Any:
    """``h`` is used three times, so that three gradients meet at its node."""
    torch.manual_seed(0)
    x = torch.randn(2, 2, requires_grad=True)
    h = x.tanh()
    loss = (h.sin() * h + h.exp()).sum()
    return nbautograd.backward(loss, names={"x": x, "h": h, "loss": loss})


def scale(page: Page) -> float:
    frame = page.locator(".graph-frame")
    return frame.bounding_box()["width"] / part_in_sight(page)[2]


def in_sight(page: Page, key: str) -> bool:
    box, frame = (
        page.locator(f'.box[data-key="{key}"] rect').bounding_box(),
        page.locator(".graph-frame").bounding_box(),
    )
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    across = frame["x"] < middle[0] < frame["x"] + frame["width"]
    return across and frame["y"] < middle[1] < frame["y"] + frame["height"]


def test_search_flies_to_the_first_match_and_on(asking: Any, network: Any) -> None:
    page = asking(network)
    for _ in range(6):
        button(page, "widgets.zoom_less").click()
    assert scale(page) < 0.5
    page.get_by_role("searchbox").fill("Sequential")
    expect(page.locator(".search")).to_contain_text(words("widgets.found", count=4))
    expect(page.locator('.box[tabindex="0"]')).to_contain_text("layer4")
    part_in_sight(page)
    assert scale(page) >= 0.69
    page.keyboard.press("Enter")
    expect(page.locator('.box[tabindex="0"]')).to_contain_text("layer3")
    page.keyboard.press("Shift+Enter")
    expect(page.locator('.box[tabindex="0"]')).to_contain_text("layer4")


def test_search_finds_what_is_folded_and_enter_opens_it(asking: Any, network: Any) -> None:
    page = asking(network)
    page.get_by_role("searchbox").fill("layer3.2.conv2.weight")
    expect(page.locator(".search")).to_contain_text(words("widgets.found", count=1, inside=1))
    expect(page.locator(".box.found")).to_contain_text("layer3")
    page.get_by_role("searchbox").press("Enter")
    leaf = page.locator(".box.leaf", has_text="layer3.2.conv2.weight")
    expect(leaf).to_have_attribute("tabindex", "0")
    part_in_sight(page)
    assert in_sight(page, leaf.get_attribute("data-key"))
    expect(page.get_by_role("searchbox")).to_have_value("layer3.2.conv2.weight")


def test_stepping_follows_the_node(show: Any, network: Any) -> None:
    page = show(network)
    for _ in range(6):
        button(page, "widgets.zoom_more").click()
    for _ in range(8):
        button(page, "widgets.step_on").click()
        part_in_sight(page)
        now = page.locator(".box.now")
        expect(now).to_have_count(1)
        assert in_sight(page, now.get_attribute("data-key"))


def test_branches_add_up_before_ones_eyes(show: Any, branches: Any) -> None:
    page = show(branches)
    step = button(page, "widgets.step_on")
    tanh = page.locator(".box", has_text="TanhBackward0")
    expect(page.locator(".tag")).to_have_count(0)
    counts = []
    while not re.search(r"\bnow\b", tanh.get_attribute("class")):
        counts.append((tanh.locator(".tag").all_text_contents() or [""])[0])
        step.click()
    came = [text("widgets.arrived_count", came=came, count=3) for came in range(4)]
    assert [count for count in dict.fromkeys(counts) if count] == came
    expect(page.locator(".tag")).to_have_count(0)
    expect(page.locator(".said")).to_contain_text(words("widgets.step_adds", count=3))
    expect(page.locator(".said")).to_contain_text(re.compile(r": \w+ \+ \w+ \+ \w+$"))
    expect(page.locator(".edge.came")).to_have_count(3)
    terms = page.locator(".step .sum .term")
    expect(terms).to_have_count(4)
    expect(terms.last).to_contain_text(words("widgets.gradient_in"))


@pytest.fixture(scope="module")
def chain() -> Any:
    x = h = torch.ones(4, requires_grad=True)
    steps = (torch.sin, torch.exp, torch.tanh, torch.sigmoid, torch.cos)
    for k in np.random.default_rng(0).integers(len(steps), size=70):  # nothing repeats that could be folded
        h = steps[k](h)
    return nbautograd.graph(h.sum(), names={"x": x})


def test_a_wrapped_chain_is_wrapped_anew_where_there_is_less_room(asking: Any, chain: Any) -> None:
    page = asking(chain)
    width = """Math.max(...[...document.querySelector(".nbag-live").shadowRoot.querySelectorAll(".box")]
                         .map((box) => box.transform.baseVal[0].matrix.e))"""
    assert page.evaluate(width) > 600
    page.set_viewport_size({"width": 480, "height": 800})
    page.wait_for_function(f"{width} < 600")
    seen = part_in_sight(page)
    assert scale(page) >= 0.69
    assert page.evaluate(width) < seen[0] + seen[2]  # nothing stands beside what is in sight
    page.set_viewport_size({"width": 1000, "height": 800})
    page.wait_for_function(f"{width} > 600")


def test_words_that_leave_out_the_frame_around_a_box_fit_it(show: Any) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    model = torch.nn.ModuleDict({"emb": torch.nn.Embedding(20, 16), "tr": encoder, "head": torch.nn.Linear(16, 20)})
    encoder.layers[1].requires_grad_(False)
    loss = model["head"](encoder(model["emb"](torch.arange(10).reshape(2, 5)))).logsumexp(-1).mean()
    page = show(nbautograd.graph(loss, names={"m": model}))
    fits = "all => all.map(t => t.getBBox().width < t.parentNode.querySelector('rect').getBBox().width)"
    assert set(page.locator(".box.group text").evaluate_all(fits)) == {True}


FRAMES = """() => [...document.querySelector(".nbag-live").shadowRoot.querySelectorAll(".frames g")].map((frame) => {
  const [rect, text] = [...frame.children].map((part) => part.getBBox());
  return [frame.textContent, [rect.x, rect.y, rect.x + rect.width, rect.y + rect.height],
          [text.x, text.y, text.x + text.width, text.y + text.height]];
})"""


def nested_blocks() -> Any:
    model = torch.nn.Sequential(*[models.ResidualBlock(2, 2, 1, torch.nn.ReLU()) for _ in range(2)])
    return model, model(torch.ones(1, 2, 4, 4, requires_grad=True)).sum()


def apart(one: list[float], two: list[float]) -> bool:
    return one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]


NUMBERED = ["1 ResidualBlock", "0 ResidualBlock"]


@pytest.mark.parametrize(
    ("make", "names"),
    [(models.unet, ["net", "net"]), (models.language_model, ["encoder.layers"]), (nested_blocks, NUMBERED)],
    ids=["two columns", "one column", "nested"],
)
def test_frames_hold_their_edges_and_their_names_stand_apart(show: Any, make: Any, names: list[str]) -> None:
    model, loss = make()
    value = nbautograd.graph(loss, names=model)
    frames = show(value).evaluate(FRAMES)
    assert [name for name, _, _ in frames][: len(names)] == names
    made = first_layout(value)
    held = 0
    for _, (left, top, right, bottom), _ in frames:
        inside = {b.key for b in made.boxes if left <= b.x and b.x + b.width <= right and top <= b.y < bottom}
        own = [path.points for path in made.paths if {path.source, path.target} <= inside]
        held += sum(len({x for x, _ in points}) > 1 for points in own)
        assert all(left <= x <= right and top <= y <= bottom for points in own for x, y in points)
    assert held or make is models.language_model
    texts = [text for _, _, text in frames]
    assert all(apart(one, two) for k, one in enumerate(texts) for two in texts[:k])
