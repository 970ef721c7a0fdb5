"""Folding: fewer nodes, no cycle, nothing lost."""

from __future__ import annotations

import graph_models as models
import pytest
import torch
from torch import nn

import nbautograd
from nbautograd.core.graphs.folding import fold_to, largest
from nbautograd.core.graphs.graph import Edge
from nbautograd.core.values import summarise


def is_acyclic(graph):
    waiting = [0] * len(graph.nodes)
    following = [[] for _ in graph.nodes]
    for edge in graph.edges:
        waiting[edge.target] += 1
        following[edge.source].append(edge.target)
    ready = [i for i, count in enumerate(waiting) if count == 0]
    for i in ready:
        for target in following[i]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return len(ready) == len(graph.nodes)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return x + torch.softmax(self.q(x) @ self.k(x).transpose(-2, -1), -1) @ self.v(x)


def transformer(blocks=4, leaf=False):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(Attention(), nn.LayerNorm(4)) for _ in range(blocks)])
    return model, model(torch.randn(2, 3, 4, requires_grad=leaf)).mean()


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_folding_by_module_makes_no_cycle_and_loses_no_node(depth):
    model, loss = transformer()
    graph = nbautograd.graph(loss, names=model)
    folded = graph.collapse(depth)
    assert is_acyclic(folded)
    assert sorted(m for node in folded.nodes for m in node.members) == list(range(len(graph.nodes)))
    assert sorted(folded.order) == list(range(len(folded.nodes)))
    assert len(folded.nodes) <= len(graph.nodes)


def test_without_modules_the_far_end_is_folded():
    _, loss = models.rnn(100)
    graph = nbautograd.graph(loss, names={})
    folded = fold_to(graph, 60)
    assert len(folded.nodes) <= 70
    assert is_acyclic(folded)
    assert sorted(m for node in folded.nodes for m in node.members) == list(range(len(graph.nodes)))


@pytest.mark.parametrize("spoilt", [float("nan"), float("inf")])
def test_of_several_gradients_the_largest_is_one_that_is_not_finite(spoilt):
    edges = [Edge(0, 1, k, 0, gradient=summarise(torch.tensor(g))) for k, g in enumerate([[1.0, 2.0], [spoilt] * 2])]
    assert largest(edges) is largest(edges[::-1]) is edges[1]
