"""What the graph view answers: lenses, why a gradient is None, the outline, a Function's calls and blocks."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from fn import Fn
from playwright.sync_api import Page, expect
from torch import nn
from widget_page import button, panel, tab, words

import nbautograd
from nbautograd.core.graphs.backward import backward
from nbautograd.core.graphs.build import graph
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.messages import text
from nbautograd.views.layout import layout
from nbautograd.widgets.graph import graph_questions

pytestmark = pytest.mark.browser


def leaf() -> torch.Tensor:
    return torch.ones(3, requires_grad=True)


def cut() -> AutogradGraph:
    """One tensor is detached, NaN flows, and one gradient is only zeros."""
    a, b, c = leaf(), leaf(), leaf()
    z = (b - b).sqrt() + a * 2 + c.detach() * a
    loss = z.sum() * 2 + (a * 0).sum()
    return backward(loss, names={"a": a, "b": b, "c": c, "loss": loss})


def stale(saved: bool | None = None) -> AutogradGraph:
    a, b = leaf(), leaf()
    y = torch.sigmoid(a * b)
    z = y * a
    y.mul_(2)
    return graph((z + y).sum(), names={"a": a, "b": b, "y": y, "z": z}, saved=saved)


def nested() -> AutogradGraph:
    model = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, 2)))
    loss = model(torch.ones(1, 4)).sum()
    return backward(loss, names={"model": model, "loss": loss})


def box(page: Page, name: str) -> Any:
    return page.locator(".drawing .box", has_text=name).first


def lens(page: Page, name: str) -> Any:
    """Choose a lens, and return the line that it tells."""
    page.locator("[data-at=lens]").select_option(name)
    return page.locator(".lens")


def test_the_memory_lens_tells_and_draws_as_a_bar_what_each_node_keeps(asking: Any) -> None:
    value = stale()
    page = asking(value)
    page.locator("[data-at=lens]").focus()
    whole = value.saved_bytes()[""]
    expect(lens(page, "memory")).to_have_text(words("graphs.kept_in_all", size=f"{whole} B"))
    expect(box(page, "SigmoidBackward0")).to_contain_text("12 B")
    expect(page.locator("[data-at=lens]")).to_be_focused()  # though the picture is another one
    kept = {node.id for node in value.nodes if node.bytes}
    barred = page.locator('.box[style*="--t"]')
    assert {int(key[1:]) for key in barred.evaluate_all("all => all.map(e => e.dataset.key)")} == kept
    part = "all => all.map(e => new DOMMatrix(getComputedStyle(e.querySelector('.bar-of')).transform).a)"
    most = max(node.bytes for node in value.nodes)
    keys = barred.evaluate_all("all => all.map(e => +e.dataset.key.slice(1))")
    assert barred.evaluate_all(part) == pytest.approx([value.nodes[k].bytes / most for k in keys])
    expect(lens(page, "")).to_be_hidden()
    expect(box(page, "SigmoidBackward0")).not_to_contain_text("12 B")


def test_sizes_in_the_memory_lens_stand_apart_from_boxes_and_from_each_other(show: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    page = show(graph((x.exp() * x.sin() + x.tanh() * x.cos().exp()).sum(), names={"x": x}))
    lens(page, "memory")
    expect(page.locator(".tag")).not_to_have_count(0)
    measure = "all => all.map(e => e.getBoundingClientRect()).map(r => [r.left, r.top, r.right, r.bottom])"
    tags = page.locator(".tag").evaluate_all(measure)
    others = page.locator(".box rect").evaluate_all(measure)
    meet = lambda a, b: a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]  # noqa: E731
    assert not any(meet(tag, other) for k, tag in enumerate(tags) for other in tags[:k])
    assert not any(meet(tag, [b[0] + 2, b[1] + 8, b[2] - 2, b[3]]) for tag in tags for b in others)


def test_the_lens_on_changes_shows_versions_the_edge_and_the_op(show: Any) -> None:
    page = show(stale())
    legend = lens(page, "stale")
    told = ("y v0 → v1: ", words("widgets.lens.saved_by"), " MulBackward0, ", words("widgets.lens.changed_by"),
            " y.mul_(2) (", words("views.line"))  # fmt: skip
    expect(legend).to_contain_text(re.compile("".join(getattr(one, "pattern", None) or re.escape(one) for one in told)))
    hot = page.locator(".edge.bad.hot")
    expect(hot).not_to_have_count(0)
    assert "v0 → v1" in hot.first.text_content()
    assert page.locator(".box.dim").count() > 0
    legend.get_by_role("button", name="y.mul_(2)").click()
    expect(page.locator(".box.chosen")).to_contain_text("y MulBackward0")


@pytest.mark.parametrize("chosen", ["memory", "stale"])
def test_of_what_was_not_read_a_lens_says_that_and_nothing_else(show: Any, chosen: str) -> None:
    page = show(stale(saved=False))
    expect(lens(page, chosen)).to_have_text(words("widgets.lens.unread"))


def test_the_lens_on_gradients_shows_sizes_and_the_first_bad_one(show: Any) -> None:
    value = cut()
    page = show(value)
    told = lens(page, "gradients")
    norms = [
        e.gradient.norm for e in value.edges if e.gradient and e.gradient.norm and not e.gradient.nan + e.gradient.inf
    ]
    expect(told).to_contain_text(f"|g| {min(n for n in norms if n > 0):.3g}"[:7])
    widths = page.locator('.edge[style*="--t"] path').evaluate_all(
        "all => all.map(e => getComputedStyle(e).strokeWidth)"
    )
    assert len(set(widths)) > 1
    told.get_by_role("button", name="SqrtBackward0").click()
    expect(page.locator(".box.chosen.hot")).to_contain_text("SqrtBackward0")


def test_what_flows_in_the_lens_moves_nothing_and_the_smallest_is_one_of_the_gradients(asking: Any) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    loss = model(torch.ones(1, 3, 8)).square().mean()
    names = {"model": model, "loss": loss}
    page = asking(graph(loss, names=names))
    told = lens(page, "gradients")
    places = "all => all.map(e => ['transform', 'd', 'x', 'y', 'width'].map(name => e.getAttribute(name)))"
    drawn = page.locator(".drawing :is(g, path, rect)")
    before = drawn.evaluate_all(places)
    assert len(before) > 20
    button(page, "widgets.lens.run_backward").click()
    expect(told.locator("strong")).to_be_visible()
    assert drawn.evaluate_all(places) == before
    flowed = backward(loss, names=names)
    norms = [part.gradient.norm for part in (*flowed.nodes, *flowed.edges) if part.gradient]
    least = f"{min(n for n in norms if n):.3g}"[:4]
    expect(told.locator("strong")).to_contain_text(least)


def test_why_is_this_grad_none_says_why_and_shows_it(asking: Any) -> None:
    page = asking(cut())
    why, said = page.locator("[data-at=why]"), page.locator(".why")
    why.focus()
    why.select_option("c")
    expect(said).to_contain_text(words("graphs.none.not_a_part.what", name="c"))
    expect(page.locator(".box.ghost.asked")).to_contain_text("c")
    expect(page.locator(".edge.none.asked")).to_contain_text(words("graphs.cut.unused"))
    expect(why).to_be_focused()
    why.select_option("a")
    expect(said).to_contain_text(words("graphs.none.has.what", name="a"))
    expect(page.locator(".box.asked")).to_contain_text("a")


def test_a_tensor_that_the_graph_does_not_hold_becomes_a_ghost(asking: Any) -> None:
    n = torch.arange(3)
    a = leaf()
    value = graph((a * n).sum(), names={"a": a, "n": n})
    page = asking(value)
    assert page.locator(".box.ghost").count() == 0
    page.locator("[data-at=why]").select_option("n")
    expect(page.locator(".why")).to_contain_text(words("graphs.none.integer.what", name="n"))
    expect(page.locator(".box.ghost.asked")).to_contain_text("n")
    box(page, "a 3").click()
    button(page.locator(".detail"), "widgets.why_none").click()
    expect(page.locator(".why")).to_contain_text(words("graphs.none.not_run.what", name="a"))
    expect(page.locator(".box.ghost")).to_have_count(0)


def test_the_outline_is_a_tree_of_modules_with_the_same_boxes(show: Any) -> None:
    value = nested()
    page = show(value)
    page.locator("details.outline > summary").click()
    tree = page.get_by_role("tree")
    expect(tree.get_by_role("treeitem", expanded=False)).to_have_count(2)
    top = tree.locator("> li")
    assert [top.nth(k).get_attribute("aria-posinset") for k in range(top.count())] == [
        str(k + 1) for k in range(top.count())
    ]
    top.first.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
    expect(tree.get_by_role("treeitem", expanded=False)).to_have_count(0)
    levels = {
        li.get_attribute("aria-label"): li.get_attribute("aria-level") for li in tree.get_by_role("treeitem").all()
    }
    assert levels["1"] == "1"
    assert levels["1.1"] == "2"
    boxes = [b for b in layout(value).boxes if b.kind != "portal"]
    said = page.locator(".drawing .box").evaluate_all("all => all.map(e => e.getAttribute('aria-label'))")
    assert set(said) <= set(levels)
    assert len(levels) == len(boxes) + 4  # the modules 0, 1, 1.0 and 1.1
    item = tree.get_by_role("treeitem", name=re.compile("^TanhBackward0")).first
    item.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".box.chosen")).to_contain_text("TanhBackward0")
    expect(item).to_be_focused()
    tree.get_by_role("treeitem", name=re.compile(r"^1\.1\.bias")).focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(tree.get_by_role("treeitem", name="1.1", exact=True)).to_have_attribute("aria-expanded", "false")


def test_in_the_outline_a_folded_box_is_opened_by_the_right_arrow(asking: Any) -> None:
    block = lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh())  # noqa: E731
    model = nn.Sequential(*[block() for _ in range(30)])
    loss = model(torch.ones(1, 4)).sum()
    page = asking(graph(loss, names={"model": model, "loss": loss}))
    before = page.locator(".box.group").count()
    assert before
    page.locator("details.outline > summary").click()
    folded = page.get_by_role("tree").get_by_role("treeitem", expanded=False)
    folded.last.focus()
    page.keyboard.press("ArrowRight")
    expect(button(page, "widgets.fold_all")).to_be_visible()
    expect(page.locator(".graph")).to_contain_text(words("graphs.folded"))


def test_a_function_opens_its_call_and_its_block(show: Any, samples: Any) -> None:
    page = show(samples.report(wrong=True), tab="graph")
    page.locator('.box[tabindex="0"]').focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen = page.evaluate("nb.model.get('selection')")
    assert (chosen["node"], chosen["call"], chosen["block"]) == (1, 1, [0, 1])
    detail = page.locator(".graph > .detail")
    expect(detail).to_contain_text(re.compile("forward #0.*backward #1", re.DOTALL))
    detail.get_by_role("button", name="d output / d input").click()
    expect(tab(page, "jacobian")).to_have_attribute("aria-selected", "true")
    assert page.evaluate("nb.model.get('selection').block") == [0, 0]
    tab(page, "graph").click()
    detail.get_by_role("button", name="forward #0").click()
    expect(panel(page, "calls").locator('.chip[aria-pressed="true"]')).to_contain_text("forward")


DOUBLED = Fn.of("Doubled", "x, w: save(x, w); return x * w", "g: x, w = saved; return 2 * g * w, g * x")


@pytest.mark.parametrize("in_report", [False, True])
def test_a_gradient_that_the_latest_check_found_wrong_is_red_with_a_cross(show: Any, in_report: bool) -> None:
    x, w = (torch.ones(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    report = nbautograd.inspect(DOUBLED, x, w)
    page = show(report, tab="graph") if in_report else show(nbautograd.graph(DOUBLED.apply(x, w), names={"x": x}))
    edge = page.locator(".edge.wrong")
    expect(edge).to_have_count(1)
    said = words("graphs.wrong", name="x", function="Doubled", inputs="x float64 3, w float64 3")
    expect(edge.locator("text")).to_have_text(re.compile("^✗ "))
    expect(edge.locator("title")).to_have_text(said)
    expect(page.locator(".box.wrong")).to_contain_text("x")
    expect(page.locator(".box.function")).to_have_attribute(
        "aria-label", re.compile(f"x 3 {text('views.verdict.wrong')}")
    )
    expect(page.locator(".graph > .faint", has_text=said)).to_have_count(0 if in_report else 1)


def test_by_itself_the_graph_shows_a_functions_calls(
    asking: Any, monkeypatch: pytest.MonkeyPatch, samples: Any
) -> None:
    from nbautograd.core.recording import api as log

    monkeypatch.setattr(log, "calls", lambda cls=None: samples.calls())
    page = asking(samples.graph())
    page.locator(".box.function").click()
    detail = page.locator(".graph > .detail")
    expect(detail).to_contain_text("FORWARD: output=")
    expect(detail).to_contain_text("grad_output")


def test_the_counts_of_nodes_and_boxes_stay_true() -> None:
    big = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(20)])
    loss = big(torch.ones(1, 4)).sum()
    value = graph(loss, names={"model": big, "loss": loss})
    answer = graph_questions(value)["picture"]
    opened: list[str] = []
    for _ in range(3):
        made = answer({"opened": opened}).layout
        boxes = {b.key.split(".e")[0] for b in made.boxes if b.kind in ("op", "function", "group", "leaf")}
        if len(boxes) < len(value.nodes):
            assert made.note == text("graphs.folded", nodes=len(value.nodes), shown=len(boxes))
        opened += [b.key for b in made.boxes if b.kind == "group"][:1]
    assert len(boxes) > 3
