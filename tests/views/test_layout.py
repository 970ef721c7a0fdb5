"""The layout: nothing overlaps, nothing crosses without need, always the same."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise

import graph_models as models
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nbautograd
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.views.layout import layout
from nbautograd.views.layout.build import with_flow
from nbautograd.views.layout.sugiyama import ranks


@st.composite
def graphs(draw):
    """Any DAG with ops, Functions-to-be and leaves."""
    count = draw(st.integers(1, 28))
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=70))
    edges = sorted((a, b) for a, b in pairs if a < b)
    sources = {a for a, _ in edges}
    nodes = tuple(
        Node(i, f"Op{'x' * (i % 17)}Backward0", "op" if i in sources else "leaf", label=f"v{i}" if i % 3 else "")
        for i in range(count)
    )
    made = tuple(Edge(a, b, k, 0, (i % 5, 2), "float32") for k, (i, (a, b)) in enumerate(enumerate(edges)))
    targets = {b for _, b in edges}
    roots = tuple((i, f"out{i}") for i in range(count) if i not in targets)
    return AutogradGraph(nodes, made, roots, tuple(range(count)), slots=(0,) * len(roots))


def overlap(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


@settings(max_examples=120)
@given(graphs())
def test_no_box_overlaps_another_and_all_are_inside(graph):
    made = layout(graph, boxes=None)
    assert not [(a.key, b.key) for a, b in combinations(made.boxes, 2) if overlap(a, b)]
    assert all(b.x >= 0 and b.y >= 0 and b.x + b.width <= made.width for b in made.boxes)
    assert all(b.y + b.height <= made.height for b in made.boxes)
    assert all(0 <= x <= made.width and 0 <= y <= made.height for p in made.paths for x, y in p.points)


@settings(max_examples=60)
@given(graphs())
def test_every_node_and_every_edge_is_drawn(graph):
    made = layout(graph, boxes=None)
    keys = [box.key for box in made.boxes]
    assert len(keys) == len(set(keys))
    assert {n for box in made.boxes for n in box.nodes} >= {n.id for n in graph.nodes}
    assert {e for path in made.paths for e in path.edges} == set(range(len(graph.edges)))
    assert all(path.source in keys and path.target in keys for path in made.paths)


@settings(max_examples=30)
@given(graphs())
def test_the_same_graph_is_laid_out_the_same(graph):
    assert layout(graph, boxes=None) == layout(graph, boxes=None)
    json.dumps(layout(graph, boxes=None).to_dict())


@settings(max_examples=60)
@given(graphs())
def test_edges_lead_downwards(graph):
    below = [[e.target for e in graph.edges if e.source == n.id] for n in graph.nodes]
    found = ranks(below)
    assert all(found[v] < found[w] for v, targets in enumerate(below) for w in targets)


def test_a_leaf_used_twice_nearby_stands_once_and_tells_the_sum():
    a = torch.ones(2, requires_grad=True)
    made = layout(nbautograd.graph((a * a).sum()))
    (leaf,) = [b for b in made.boxes if b.kind == "leaf"]
    assert leaf.fan_in == 2
    assert any("Σ 2" in line.text for line in leaf.lines)
    assert sum(path.target == leaf.key for path in made.paths) == 2


def test_a_weight_used_far_apart_is_a_chip_at_each_use():
    w, h = torch.ones(2, 2, requires_grad=True), torch.ones(1, 2)
    for _ in range(30):
        h = torch.tanh(h @ w)
    made = layout(nbautograd.graph(h.sum(), names={"w": w}), boxes=None)
    assert sum(box.kind == "leaf" for box in made.boxes) == 30
    assert "30" in made.boxes[-1].title


def test_a_very_long_edge_becomes_a_portal():
    x = torch.ones(2, requires_grad=True)
    y = skip = x.exp()
    for _ in range(200):
        y = y.sin()
    made = layout(nbautograd.graph((y + skip).sum(), names={"x": x}), boxes=None)
    assert {b.key[-2:] for b in made.boxes if b.kind == "portal"} == {".s", ".t"}
    assert made.width < 700


def test_a_chain_of_ten_thousand_is_laid_out():
    y = torch.ones((), requires_grad=True)
    for _ in range(10_000):
        y = y * 1.0
    graph = nbautograd.graph(y, names={})
    assert len(layout(graph, boxes=None).boxes) == 10_002
    assert len(layout(graph).boxes) <= 302


@pytest.mark.parametrize("boxes", [20, 60])
def test_folding_keeps_to_the_number_of_boxes(boxes):
    y = torch.ones(2, requires_grad=True)
    for _ in range(300):
        y = y.sin()
    made = layout(nbautograd.graph(y.sum(), names={}), boxes=boxes)
    assert len(made.boxes) <= boxes + 4
    assert "302" in made.note


def test_nothing_to_draw_is_drawn():
    assert layout(AutogradGraph()).boxes == ()
    (box,) = layout(nbautograd.graph(torch.ones(2), names={})).boxes
    assert box.kind == "output"


def test_a_folded_layout_speaks_of_the_graph_that_was_folded():
    weight = torch.ones(3, requires_grad=True)
    far = x = torch.ones(3, requires_grad=True) * 2
    for _ in range(400):
        x = (x * weight).tanh()
    graph = nbautograd.graph((x * far).sum(), names={})
    made = layout(graph, boxes=60)
    assert {n for box in made.boxes for n in box.nodes} == {n.id for n in graph.nodes}
    edges = {e for path in made.paths for e in path.edges}
    assert edges <= set(range(len(graph.edges)))
    keys = {box.key: set(box.nodes) for box in made.boxes}
    for path in made.paths:
        for e in path.edges:
            assert graph.edges[e].source in keys[path.source]


def chain(length):
    y = torch.ones(2, requires_grad=True)
    for k in range(length):
        y = y.sin() if k % 2 else y.exp().neg()
    return nbautograd.graph(y.sum(), names={})


def test_edges_to_the_next_column_cross_no_box():
    made = layout(chain(30), boxes=None)
    turning = [path for path in made.paths if len(path.points) > 10]
    assert turning
    for path in turning:
        for (x0, y0), (x1, y1) in pairwise(path.points[::3]):
            for box in made.boxes:
                across = min(x0, x1) < box.x + box.width and box.x < max(x0, x1)
                along = min(y0, y1) < box.y + box.height and box.y < max(y0, y1)
                assert not (across and along)


def test_frozen_modules_say_so_in_words_too():
    model, loss = models.encoder([1, 3])
    made = layout(nbautograd.graph(loss, names=model))
    said = [box.key for box in made.boxes if any("frozen" in line.text for line in box.lines)]
    assert said == [box.key for box in made.boxes if box.frozen]
    assert len(said) == 2


@pytest.mark.parametrize("spoilt", [1, float("nan")])
def test_an_arrow_that_stands_for_several_tells_the_largest_whenever_it_is_drawn(spoilt):
    model, loss = models.resnet()
    loss = loss * spoilt
    names = {"model": model, "loss": loss}
    before, after = nbautograd.graph(loss, names=names), nbautograd.backward(loss, names=names)
    drawn, filled = layout(after).paths, with_flow(layout(before), after).paths
    several = [path for path in drawn if len(path.edges) > 1]
    assert several
    assert {path.style for path in several} == {"bad" if spoilt != 1 else ""}
    assert all("|g| ≤ " in path.label or path.style for path in several)
    assert [path.style for path in drawn] == [path.style for path in filled]


@pytest.mark.parametrize(
    "draw", [AutogradGraph.to_svg, lambda graph: graph.to_dot().source, str], ids=["svg", "dot", "text"]
)
def test_a_gradient_that_a_check_found_wrong_is_crossed_in_every_picture(draw):
    x = torch.ones(3, requires_grad=True)
    made = nbautograd.graph(x.exp().sum(), names={"x": x})
    judged = replace(made, edges=(*made.edges[:-1], replace(made.edges[-1], wrong="Wrong, by a check.")))
    assert ["✗" in draw(graph) for graph in (made, judged)] == [False, True]
    (path,) = [path for path in layout(judged).paths if path.title]
    assert (path.style, path.title) == ("wrong", "Wrong, by a check.")


def test_a_folded_module_tells_that_a_gradient_inside_is_wrong():
    model, loss = models.resnet()
    made = nbautograd.graph(loss, names=model)
    place = next(k for k, edge in enumerate(made.edges) if made.nodes[edge.target].label == "layer2.1.conv1.weight")
    edges = [replace(edge, wrong="Wrong, by a check.") if k == place else edge for k, edge in enumerate(made.edges)]
    boxes = layout(replace(made, edges=tuple(edges))).boxes
    (box,) = [box for box in boxes if any("✗" in line.text for line in box.lines)]
    assert box.lines[0].text.startswith("layer2")
    assert box.title.endswith("Wrong, by a check.")
