"""Repeats: equal parts found and folded as one box with the norms at each part; opened again; never a cycle."""

from __future__ import annotations

import graph_models as models
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from said import says
from test_graph_folding import is_acyclic, transformer
from torch import nn

import nbautograd
from nbautograd import messages
from nbautograd.core.graphs.folding import fold_to, open_boxes
from nbautograd.core.graphs.segments import LEAST_SAVED, find_repeats
from nbautograd.views.layout import layout
from nbautograd.views.layout.clusters import box_key

OPS = [torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.exp, torch.relu, torch.abs, torch.square]


def told(graph):
    return [(str(run.name), run.times, len(run.nodes) // run.times) for run in find_repeats(graph)]


def members(graph):
    return sorted(m for node in graph.nodes for m in node.members)


def test_the_norms_are_those_that_arrive_at_each_layer():
    model = nn.Sequential(*[nn.Linear(4, 4, bias=False) for _ in range(50)])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.eye(4) * 0.5)
    graph = nbautograd.backward(model(torch.ones(1, 4)).sum(), names=model)
    assert told(graph) == [("Linear ×50", 50, 2)]
    (box,) = [node for node in fold_to(graph, 300).nodes if node.repeats]
    assert box.norms == pytest.approx([2.0 * 0.5**k for k in range(50)])
    made = layout(graph)
    (drawn,) = [b for b in made.boxes if b.kind == "group"]
    words = [line.text for line in drawn.lines]
    assert any(text.startswith("|g| 2.0 █") and text.endswith("3.55e-15") for text in words)
    assert says(words, "graphs.vanishing")
    assert "2.0, 1.0, 0.5, 0.25" in drawn.title


def test_steps_of_a_loop_share_their_weights_outside_the_box():
    leaves, loss = models.rnn(20)
    graph = nbautograd.backward(loss, names={"wx": leaves[0], "wh": leaves[1]})
    folded = fold_to(graph, 300)
    assert {node.label for node in folded.nodes if node.kind == "leaf"} == {"wx", "wh"}
    assert [node.repeats for node in folded.nodes if node.repeats] == [19]  # the first state has no step before it


def test_a_first_layer_without_a_gradient_for_its_input_belongs_to_the_repeat():
    model = nn.Sequential(*[layer for _ in range(50) for layer in (nn.Linear(4, 4), nn.ReLU())])
    assert told(nbautograd.graph(model(torch.ones(2, 4)).sum(), names=model)) == [("ReLU, Linear ×50", 50, 3)]
    with nbautograd.watch_modules():
        loss = model(torch.ones(2, 4)).sum()
    assert told(nbautograd.graph(loss, names=model)) == [("ReLU, Linear ×50", 50, 3)]


def test_frozen_parts_are_a_repeat_of_their_own_that_says_which_they_are():
    model = nn.Sequential(*[models.ResidualBlock(4, 4, 1, nn.ReLU()) for _ in range(12)])
    model[:5].requires_grad_(False)
    graph = nbautograd.graph(model(torch.ones(2, 4, 8, 8, requires_grad=True)).sum(), names=model)
    found = [(str(node.name), node.frozen) for node in fold_to(graph, 300).nodes if node.repeats]
    assert found == [
        (messages.text("graphs.repeat_group", name=name, count=count), frozen)
        for name, count, frozen in (("5–11 ResidualBlock ×7", 13, False), ("0–4 ResidualBlock ×5", 7, True))
    ]


def test_nan_in_a_part_is_counted():
    y = torch.zeros(3, requires_grad=True)
    for _ in range(30):
        y = y.abs().sqrt()
    graph = nbautograd.backward(y.sum(), names={})
    (box,) = [b for b in layout(graph).boxes if b.kind == "group"]
    assert any(line.style == "bad" and "of 30" in line.text for line in box.lines)


recipes = st.lists(st.integers(0, len(OPS) - 1), max_size=9)


def build(recipe, y, weights):
    for op in recipe:
        y = OPS[op](y) if op % 3 else OPS[op](y) * weights[op % 2] + y
    return y


@settings(max_examples=40)
@example([], [0] * 7 + [3], [], 4)  # the one sigmoid of a part stands in its middle
@given(recipes, recipes.filter(lambda r: 1 in map(r.count, r)), recipes, st.integers(4, 12))
def test_any_block_that_is_repeated_is_found_folded_and_opened_without_a_cycle(before, block, after, times):
    weights = [torch.ones(2, requires_grad=True) for _ in range(2)]
    y = build(before, torch.ones(2, requires_grad=True) * 2, weights)
    lone = len(nbautograd.graph(build(block, y, weights), names={}).order) - len(nbautograd.graph(y, names={}).order)
    for _ in range(times):
        y = build(block, y, weights)
    graph = nbautograd.graph(build(after, y, weights).sum(), names={})
    runs = find_repeats(graph)
    if lone * (times - 2) >= 2 * LEAST_SAVED:
        assert sum(len(run.nodes) for run in runs) >= 0.5 * lone * times
    folded = fold_to(graph, 300)
    assert is_acyclic(folded)
    opened: list[str] = []
    for _ in range(3):
        assert is_acyclic(folded)
        if folded is not graph:
            assert members(folded) == list(range(len(graph.nodes)))
        opened += [box_key(node) for node in folded.nodes if len(node.members) > 1]
        folded = open_boxes(graph, opened, 300)
    assert all(run.nodes == sorted(run.nodes, key=graph.order.index) for run in runs)


def test_a_repeat_opens_to_its_parts_and_a_part_to_its_nodes():
    model, loss = transformer(12, leaf=True)
    graph = nbautograd.graph(loss, names=model)
    (box,) = [node for node in fold_to(graph, 300).nodes if node.repeats]
    once = open_boxes(graph, [box_key(box)], 300)
    blocks = [node for node in once.nodes if len(node.members) > 1]
    assert [node.scope for node in blocks] == [str(k) for k in reversed(range(12))]
    twice = open_boxes(graph, [box_key(box), box_key(blocks[3])], 300)
    assert {node.scope for node in twice.nodes if node.scope.startswith("8.")} == {"8.0", "8.1"}
    assert is_acyclic(twice)


def test_ten_thousand_equal_steps_open_by_steps():
    y = torch.ones((), requires_grad=True)
    for _ in range(10_000):
        y = y * 1.0
    graph = nbautograd.graph(y, names={})
    (box,) = [node for node in fold_to(graph, 300).nodes if node.repeats]
    assert box.repeats == 10_000
    once = open_boxes(graph, [box_key(box)], 300)
    assert [node.repeats for node in once.nodes if node.repeats] == [250] * 40


def test_a_part_is_a_whole_module_even_where_its_halves_are_equal():
    def half():
        return nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh(), half()) for _ in range(20)])
    assert told(nbautograd.graph(model(torch.ones(2, 4)).sum(), names=model)) == [("Sequential ×20", 20, 6)]
