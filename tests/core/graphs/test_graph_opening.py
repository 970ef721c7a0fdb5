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


def test_a_wrapper_around_everything_is_looked_through():
    model, loss = models.resnet()
    outer = nn.ModuleDict({"model": nn.ModuleDict({"net": model})})
    folded = fold_to(nbautograd.graph(loss, names=outer), 300)
    assert [name for name in boxes(folded) if ".layer" in name] == [
        f"model.net.layer{k} Sequential" for k in (4, 3, 2, 1)
    ]


def test_blocks_of_ops_stay_whole_the_one_with_a_branch_of_its_own_too():
    blocks = [models.ResidualBlock(2, 2, 1, nn.ReLU()) for _ in range(2)]
    model = nn.ModuleDict({"layer": nn.Sequential(*blocks, models.ResidualBlock(2, 4, 2, nn.ReLU()))})
    loss = model["layer"](torch.ones(1, 2, 8, 8, requires_grad=True)).log_softmax(1).exp().sin().sum()
    folded = fold_to(nbautograd.graph(loss, names=model), 300)
    assert boxes(folded)[-3:] == [f"layer.{k} ResidualBlock" for k in (2, 1, 0)]


def test_what_a_hook_adds_to_each_part_of_a_list_is_named_beside_the_parts_class():
    model, _ = models.residual()
    for layer in model.layers:
        layer.register_forward_hook(lambda module, args, output: output * 2)
    with nbautograd.watch_modules():
        loss = model(torch.ones(3, 8)).sum()
    assert boxes(fold_to(nbautograd.graph(loss, names=model), 300)) == ["Residual + Mul ×6"]


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


@pytest.mark.parametrize(("make", "count"), [
    (models.resnet, 16), (models.residual, 6), (lambda: models.residual(frozen=2), 4),
])  # fmt: skip
def test_the_ends_of_blocks_are_inferred_as_they_are_when_watched(make, count):
    with nbautograd.watch_modules():
        model, loss = make()
    watched = nbautograd.graph(loss, names=model)
    model, loss = make()
    inferred = nbautograd.graph(loss, names=model)
    added = [
        (one.scope, two.scope)
        for one, two in zip(watched.nodes, inferred.nodes, strict=True)
        if one.name == "AddBackward0"
    ]
    assert len(added) == count
    assert all(one == two for one, two in added)


LAYERS = [f"layers.{k}" for k in range(5, -1, -1)]
UNET = ["join1", "join2", "join3", "middle", "down3", "down2", "down1"]

COLUMNS = {
    "residual": (models.resnet, [f"layer{k}" for k in (4, 3, 2, 1)], []),
    "residual frozen": (lambda: models.resnet(frozen=["layer2"]), [f"layer{k}" for k in (4, 3, 2, 1)], ["layer2"]),
    "residual blocks alone": (models.blocks_in_sequence, ["2", "1"], []),
    "transformer": (models.encoder, LAYERS, []),
    "transformer, norm first": (lambda: models.encoder(norm_first=True), LAYERS, []),
    "transformer frozen": (lambda: models.encoder([1, 3]), LAYERS, ["layers.3", "layers.1"]),
    "residual blocks in a dict": (
        lambda: models.residual(lambda parts: nn.ModuleDict(zip("abcdef", parts, strict=True))),
        [f"layers.{k}" for k in "fedcba"], []),
    "language model, head tied": (models.language_model, ["head", *[f"encoder.{path}" for path in LAYERS]], []),
    "language model frozen": (
        lambda: models.language_model([0, 1]), [f"encoder.{path}" for path in LAYERS],
        ["encoder.layers.1", "encoder.layers.0"],
    ),
    "U-Net": (models.unet, [f"net.{path}" for path in UNET], []),
}  # fmt: skip


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(("make", "column", "frozen"), COLUMNS.values(), ids=COLUMNS)
def test_a_model_opens_on_one_column_of_its_parts_none_of_which_is_torn(make, column, frozen, watched):
    """Frozen parts are known from the weights that their nodes saved; a part is told by its module's name."""
    with nbautograd.watch_modules() if watched else contextlib.nullcontext():
        model, loss = make()
    graph = nbautograd.graph(loss, names=model)
    folded = fold_to(graph, 300)
    kinds = [f"{path} {graph.scopes[path]}" for path in column]
    assert [name for name in boxes(folded) if name.split()[0] in column] == kinds
    assert [node.scope for node in folded.nodes if node.frozen] == frozen
    assert torn(graph, folded) == []
    assert not any(node.name == "AddBackward0" for node in folded.nodes)  # a residual edge is within its part
    assert is_acyclic(folded)
    assert sorted(m for node in folded.nodes for m in node.members) == list(range(len(graph.nodes)))


def torn(graph, folded):
    """The modules of which several boxes hold nodes, one of them others too."""
    held = [[graph.nodes[m].scope for m in node.members if graph.nodes[m].kind != "leaf"] for node in folded.nodes]

    def is_torn(path):
        inside = [[f"{scope}.".startswith(f"{path}.") for scope in scopes] for scopes in held]
        return sum(map(any, inside)) > 1 and any(any(some) and not all(some) for some in inside)

    return [path for path in graph.scopes if is_torn(path)]
