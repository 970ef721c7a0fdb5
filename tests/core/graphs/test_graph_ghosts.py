"""Tensors that no gradient reaches: found and drawn."""

from __future__ import annotations

import graph_models as models
import pytest
import torch
from torch import nn

import nbautograd
from nbautograd.core.display import Phrase
from nbautograd.views.layout import layout


def leaf():
    return torch.ones(3, requires_grad=True)


@pytest.mark.usefixtures("saved_tensors_shown")
def test_the_node_that_used_the_values_is_found_without_any_line():
    a, b = leaf(), leaf()
    graph = nbautograd.graph((nn.Identity()(a).data * b).sum(), names={"a": a, "b": b})
    (ghost,) = graph.ghosts
    assert graph.nodes[ghost.node].name == "MulBackward0"
    assert ghost.reason == "detach"


def test_a_parameter_that_its_module_left_out():
    model = nn.ModuleDict({"used": nn.Linear(3, 2), "left": nn.Linear(3, 2, bias=False)})
    graph = nbautograd.graph(model["used"](torch.ones(1, 3)).sum(), names=model)
    assert [(g.name, g.reason, g.shape) for g in graph.ghosts] == [("left.weight", "unused", (2, 3))]


def test_a_namespace_full_of_other_things_gives_no_ghost():
    a, others = leaf(), {f"v{i}": leaf() for i in range(40)}
    assert nbautograd.graph(a.exp().sum(), names={"a": a, **others}).ghosts == ()
    assert nbautograd.graph(a.exp().sum()).ghosts == ()


def test_a_folded_graph_keeps_its_ghosts():
    model, loss = models.mlp()
    more = nn.ModuleDict({"net": model, "left": nn.Linear(2, 2, bias=False)})
    graph = nbautograd.graph(loss, names=more)
    assert [g.name for g in graph.collapse(1).ghosts] == ["left.weight"]


@pytest.mark.usefixtures("saved_tensors_shown")
def test_a_ghost_is_a_dashed_chip_with_a_word_on_its_edge():
    a, b = leaf(), leaf()
    loss = (a.detach() * b).sum()
    graph = nbautograd.graph(loss)
    made = layout(graph)
    (box,) = [box for box in made.boxes if box.kind == "ghost"]
    (path,) = [path for path in made.paths if path.target == box.key]
    assert path.style == "none"
    assert path.label == "detach"
    assert path.source == f"n{graph.ghosts[0].node}"
    assert 'class="ghost"' in graph.to_svg()
    assert graph.notes[-1] == Phrase("graphs.ghost", name="a")
