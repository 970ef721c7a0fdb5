"""The engine's order as predicted, against the engine."""

from __future__ import annotations

import graph_models as models
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import nbautograd
from nbautograd.core.graphs.schedule import engine_order


@pytest.mark.parametrize(
    "make", [models.linear_function, models.mlp, models.rnn, models.residual_network], ids=lambda m: m.__name__
)
def test_predicted_order_is_the_engines(make):
    _kept, loss = make()
    predicted = nbautograd.graph(loss).order
    assert nbautograd.backward(loss).ran == predicted


def test_predicted_order_of_several_roots_is_the_engines():
    x = torch.ones(3, requires_grad=True)
    y = x.sin()
    tensors = [y.sum(), (y * x).sum(), y.exp().sum()]
    predicted = nbautograd.graph(tensors).order
    assert nbautograd.backward(tensors).ran == predicted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=25))
def test_predicted_order_of_any_expression_is_the_engines(recipe):
    leaves = [torch.ones(2, requires_grad=True) for _ in range(4)]
    made = list(leaves)
    for a, b, c in recipe:  # sums of three: up to three leaves become ready at once
        made.append(torch.stack([made[a % len(made)], made[b % len(made)], made[c % len(made)]]).sum(0))
    loss = made[-1].sum()
    predicted = nbautograd.graph(loss, names={}).order
    assert nbautograd.backward(loss, names={}).ran == predicted


def test_every_node_waits_for_all_of_its_gradients():
    following = [[1, 2], [3], [3], []]
    assert engine_order(following, [9, 2, 5, 1], [0]) == [0, 2, 1, 3]
