"""The graph on a page when it is large, when it is stepped through, when scopes are opened, and when it is saved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from playwright.sync_api import expect
from torch import nn
from widget_page import RENDER, button, part_in_sight, words

from nbautograd.core.graphs.backward import backward
from nbautograd.core.graphs.build import graph
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.messages import text
from nbautograd.views.layout import layout
from nbautograd.widgets.graph import graph_questions

pytestmark = pytest.mark.browser

SHOWN = "document.querySelector('.nbag-live').shadowRoot.querySelectorAll('.drawing *').length"
MOST_SHOWN = 3_000  # elements of a drawing in the page, however large the graph is


def deep(blocks: int = 24) -> AutogradGraph:
    """A network of blocks of which no more than some can be drawn unfolded."""
    block = lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 4), nn.Tanh()))  # noqa: E731
    model = nn.Sequential(*[block() for _ in range(blocks)])
    loss = model(torch.randn(2, 4)).sum()
    return graph(loss, names={"model": model, "loss": loss})


def chain(length: int) -> AutogradGraph:
    """A recurrence in which one weight is used at every step."""
    w = torch.randn(3, requires_grad=True)
    h = torch.ones(3)
    for _ in range(length):
        h = torch.tanh(h * w)
    loss = h.sum()
    return graph(loss, names={"w": w, "loss": loss})


def branches() -> tuple[AutogradGraph, dict[str, torch.Tensor]]:
    """A graph in which gradients meet at an op and at a leaf, after backward."""
    a = torch.tensor([[1.0, 2.0]], requires_grad=True)
    b = torch.tensor([[3.0, -1.0]], requires_grad=True)
    y = a * b
    loss = (y.exp() + y.sin()).sum() + (b * b).sum()
    return backward(loss, names={"a": a, "b": b, "loss": loss}), {"a": a, "b": b}


def unfolded(show: Callable[..., Any], load: Callable[..., Any], value: AutogradGraph) -> Any:
    """Draw every node of a graph in a box of its own."""
    page = load(value)
    made = layout(value, boxes=None).to_dict()
    page.evaluate("l => nb.change({ layout: l })", made)
    page.evaluate(RENDER)
    expect(page.locator(".drawing .box").first).to_be_attached()  # the page draws after the state is decoded
    return page


def test_a_large_graph_keeps_few_elements_in_the_page_and_the_focused_box(show: Any, load: Any) -> None:
    page = unfolded(show, load, chain(300))
    assert len(page.evaluate("nb.decode(nb.model.get('state')).then((s) => s.layout.boxes)")) > 800
    assert 10 < page.evaluate(SHOWN) < MOST_SHOWN
    stop = page.locator('.box[tabindex="0"]')
    stop.focus()
    page.keyboard.press("Home")
    key = stop.get_attribute("data-key")
    frame = page.locator(".graph-frame").bounding_box()
    before = part_in_sight(page)[1]
    for _ in range(6):
        page.mouse.move(frame["x"] + 200, frame["y"] + 400)
        page.mouse.down()
        page.mouse.move(frame["x"] + 200, frame["y"] + 20, steps=3)
        page.mouse.up()
        assert page.evaluate(SHOWN) < MOST_SHOWN
    assert part_in_sight(page)[1] > before + 2 * frame["height"]
    assert page.locator(".drawing .box").count() > 5
    expect(stop).to_have_attribute("data-key", key)  # it stays, though out of sight
    stop.focus()
    page.keyboard.press("ArrowDown")
    assert stop.get_attribute("data-key") != key
    for _ in range(12):
        button(page, "widgets.zoom_less").click()
    assert page.evaluate(SHOWN) < MOST_SHOWN


def test_every_box_tells_where_its_gradients_go(show: Any, samples: Any) -> None:
    page = show(samples.graph())
    made = layout(samples.graph())
    expect(page.get_by_role("application", name=made.title)).to_be_visible()
    for path in made.paths:  # what an edge says is told with the box that it leaves
        said = page.locator(f'.box[data-key="{path.source}"]').get_attribute("aria-label")
        assert path.label in said


def queues(value: AutogradGraph) -> Iterator[tuple[int, set[int]]]:
    """Each node in the order of backward, with the others that have all of their gradients by then."""
    left = Counter(edge.target for edge in value.edges)
    ready = {node.id for node in value.nodes if not left[node.id]}
    for node in value.ran:
        ready.remove(node)
        yield node, {*ready}
        sent = [edge.target for edge in value.edges if edge.source == node]
        left.subtract(sent)
        ready |= {target for target in sent if not left[target]}


def test_stepping_shows_the_queue_that_the_engine_has(show: Any) -> None:
    value, _ = branches()
    page = show(value)
    page.locator('.box[tabindex="0"]').focus()
    for node, others in queues(value):
        page.keyboard.press("]")
        expect(page.locator(".box.now").first).to_have_attribute("data-key", re.compile(rf"^n{node}\b"))
        ready = page.locator(".box.ready").evaluate_all("all => all.map(e => e.dataset.key.split('.')[0])")
        assert set(ready) == {f"n{one}" for one in others}
    for node in reversed(value.ran[:-1]):
        page.keyboard.press("[")
        expect(page.locator(".box.now").first).to_have_attribute("data-key", re.compile(rf"^n{node}\b"))


def test_pointing_at_a_chip_shows_every_use(show: Any) -> None:
    value = chain(5)
    page = show(value)
    chips = page.locator(".box.leaf")
    chips.first.hover()
    lit = page.locator(".box.leaf.use").count()
    assert lit == sum(box.kind == "leaf" for box in layout(value).boxes) > 1
    expect(page.locator(".said")).to_have_text(words("graphs.leaf_title", name="w", uses=5))
    page.mouse.move(2, 2)
    expect(page.locator(".use")).to_have_count(0)


@pytest.mark.parametrize("twice", [False, True])
def test_a_folded_module_opens_by_its_button_or_a_double_click_and_folds_again(asking: Any, twice: bool) -> None:
    value = deep(60)
    page = asking(value)
    group = next(box for box in layout(value).boxes if box.kind == "group" and box.y < 400)
    box = page.locator(f'.box[data-key="{group.key}"]')
    before = box.get_attribute("aria-label")
    if twice:
        box.dblclick()
    else:
        box.click()
        page.get_by_role("button", name=text("widgets.unfold"), exact=True).click()
    expect(button(page, "widgets.fold", name="Sequential ×60")).to_be_visible()
    assert page.locator(f'.box.group[data-key="{group.key}"]').get_attribute("aria-label") != before
    expect(page.locator(".box:focus")).to_be_in_viewport()
    button(page, "widgets.fold_all").click()
    expect(box).to_have_attribute("aria-label", before)


@pytest.mark.parametrize("question", [
    {"kind": "picture", "opened": "everything"}, {"kind": "picture", "opened": [3]},
    {"kind": "picture", "name": 3}, {"kind": "function", "node": -1}, {"kind": "nodes", "nodes": ["0"]},
    {"kind": "nodes", "nodes": [10**9]}, {"kind": "nodes", "nodes": [True]}, {"kind": "nodes"},
])  # fmt: skip
def test_questions_that_make_no_sense_are_refused(question: dict[str, Any]) -> None:
    from nbautograd.errors import InputError

    with pytest.raises(InputError):
        graph_questions(branches()[0])[question["kind"]](question)
