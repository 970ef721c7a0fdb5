"""The graph of a gradient, tied to the graph that the gradient came from."""

from __future__ import annotations

from itertools import combinations

import torch
from said import says

import nbautograd
from nbautograd.views.layout import layout


def test_nodes_of_the_second_graph_tell_whose_derivative_they_are():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    first = nbautograd.backward((x.sin() * x.exp()).sum(), create_graph=True, inputs=[x], names={"x": x})
    second = nbautograd.graph(x.grad.sum(), first=first, names={"x": x})
    x.grad = None
    origins = {node.name: node.origin for node in second.nodes if node.origin is not None}
    assert origins["CosBackward0"].name == "SinBackward0"
    assert not origins["CosBackward0"].same
    assert origins["SinBackward0"].same
    assert first.nodes[origins["SinBackward0"].node].name == "SinBackward0"
    assert {o.name for o in origins.values()} >= {"SinBackward0", "ExpBackward0", "MulBackward0"}
    assert second.nodes[0].origin is None
    assert says(second.to_svg(), "graphs.derivative_of", name="SinBackward0")
    assert says(second.to_svg(), "graphs.the_same")


def test_both_graphs_are_drawn_with_a_line_from_each_node_to_where_it_comes_from():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    first = nbautograd.backward((x.sin() * x.exp()).sum(), create_graph=True, inputs=[x], names={"x": x})
    second = nbautograd.graph(x.grad.sum(), first=first, names={"x": x})
    x.grad = None
    made = layout(second)
    ties = [path for path in made.paths if path.style in ("tie", "same")]
    boxes = {box.key: box for box in made.boxes}
    assert len(ties) == sum(node.origin is not None for node in second.nodes)
    for path in ties:
        (node,) = boxes[path.source].nodes
        origin = second.nodes[node].origin
        assert boxes[path.target].lines[0].text in (first.nodes[origin.node].name, first.nodes[origin.node].label)
        assert (path.style == "same") is origin.same
        assert path.points[0][0] > path.points[-1][0]
    assert not [(a.key, b.key) for a, b in combinations(made.boxes, 2) if overlap(a, b)]
    assert {n for box in made.boxes for n in box.nodes} == {node.id for node in second.nodes}
    legends = [[says(one.to_svg(), f"graphs.legend.{key}") for key in ("tie", "same")] for one in (first, second)]
    assert legends == [[False, False], [True, True]]


def overlap(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height
