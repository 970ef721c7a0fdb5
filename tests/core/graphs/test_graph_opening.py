"""What a large graph opens on: its modules, in the most detail that takes at most twelve boxes."""

from __future__ import annotations

import contextlib

import graph_models as models
import pytest
import torch
from test_graph_folding import is_acyclic
from torch import nn

import nbautograd
from nbautograd.core.graphs.folding import OPENING, fold_to


def boxes(graph):
    """The groups of a folded graph, without how many nodes they hold."""
    return [str(node.name).rpartition(" · ")[0] for node in graph.nodes if len(node.members) > 1]


@pytest.mark.parametrize("watched", [False, True])
def test_a_residual_network_opens_on_its_layers(watched):
    with nbautograd.watch_modules() if watched else contextlib.nullcontext():
        model, loss = models.resnet()
    graph = nbautograd.graph(loss, names=model)
    folded = fold_to(graph, 300)
    assert len(graph.nodes) > 200
    assert len(folded.nodes) + len(folded.roots) <= OPENING
    layers = [name for name in boxes(folded) if name.startswith("layer")]
    assert layers == ["layer4 Sequential", "layer3 Sequential", "layer2 Sequential", "layer1 Sequential"]
    assert is_acyclic(folded)
    assert sorted(m for node in folded.nodes for m in node.members) == list(range(len(graph.nodes)))


def test_a_wrapper_around_everything_is_looked_through():
    model, loss = models.resnet()
    outer = nn.ModuleDict({"model": nn.ModuleDict({"net": model})})
    folded = fold_to(nbautograd.graph(loss, names=outer), 300)
    assert [name for name in boxes(folded) if ".layer" in name] == [
        f"model.net.layer{k} Sequential" for k in (4, 3, 2, 1)
    ]


def test_custom_functions_have_boxes_of_their_own_where_there_is_room():
    model, loss = models.resnet()
    graph = nbautograd.graph(models.Cube.apply(models.Cube.apply(loss)), names=model)
    folded = fold_to(graph, 300)
    assert [node.function for node in folded.nodes if node.function] == ["Cube", "Cube"]
    assert len(folded.nodes) + len(folded.roots) <= OPENING


def test_many_custom_functions_are_named_on_the_boxes_that_hold_them():
    model, loss = models.resnet(models.CubeModule())
    folded = fold_to(nbautograd.graph(loss, names=model), 300)
    assert len(folded.nodes) + len(folded.roots) <= OPENING
    assert "layer1 Sequential · Cube ×6" in boxes(folded)


def test_the_ends_of_blocks_are_inferred_as_they_are_when_watched():
    with nbautograd.watch_modules():
        model, loss = models.resnet()
    watched = nbautograd.graph(loss, names=model)
    model, loss = models.resnet()
    inferred = nbautograd.graph(loss, names=model)
    added = [
        (one.scope, two.scope)
        for one, two in zip(watched.nodes, inferred.nodes, strict=True)
        if one.name == "AddBackward0"
    ]
    assert len(added) == 16
    assert all(one == two for one, two in added)


def test_a_list_opens_on_its_parts_each_with_what_lies_between():
    """Of six layers none is split: what nobody is known to have made stands in a part's box, and in its name.

    The first layer's sum is of what an embedding gives: what is computed from that is not the embedding's.
    """
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    models = {"emb": nn.Embedding(4, 8), "tr": nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)}
    loss = models["tr"](models["emb"](torch.tensor([[0, 1, 2], [3, 2, 1]]))).sum()
    names = boxes(fold_to(nbautograd.graph(loss, names=models), 300))
    layers = [name for name in names if name.startswith("tr.layers")]
    assert [name.split()[0] for name in layers] == [f"tr.layers.{k}" for k in range(5, -1, -1)]
    assert "Transpose" in layers[1]


def test_frozen_modules_are_named_from_the_weights_that_their_nodes_saved():
    model, _ = models.resnet()
    model.layer2.requires_grad_(False)
    loss = model(torch.randn(2, 3, 32, 32)).sum()
    folded = fold_to(nbautograd.graph(loss, names=model), 300)
    assert [node.scope for node in folded.nodes if node.frozen] == ["layer2"]
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 6, enable_nested_tensor=False)
    encoder.layers[1].requires_grad_(False)
    graph = nbautograd.graph(encoder(torch.randn(2, 3, 8)).sum(), names=encoder)
    assert len(graph.nodes) > 300
    assert {node.scope[:8] for node in fold_to(graph, 300).nodes if node.frozen} == {"layers.1"}
