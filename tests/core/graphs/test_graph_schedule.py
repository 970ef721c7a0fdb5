"""The steps of backward: the queue as the engine keeps it, and every gradient sent once."""

from __future__ import annotations

import graph_models as models
import pytest
import torch

import nbautograd
from nbautograd.core.graphs.schedule import MOST_READY

MAKERS = [models.linear_function, models.mlp, models.rnn, models.residual_network]


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_steps_follow_the_engine_and_send_every_gradient_once(make):
    _kept, loss = make()
    graph = nbautograd.backward(loss)
    steps = graph.schedule()
    assert tuple(step.node for step in steps) == graph.ran
    assert sorted(e for step in steps for e in step.sent) == list(range(len(graph.edges)))
    assert sorted(e for step in steps for e in step.arrived) == list(range(len(graph.edges)))
    assert [s.accumulated for s in steps if s.accumulated is not None] == [
        i for i in graph.ran if graph.nodes[i].kind == "leaf"
    ]


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_the_engine_takes_the_first_of_the_queue_and_of_the_highest_number(make):
    _kept, loss = make()
    graph = nbautograd.graph(loss)
    queue = {root for root, _ in graph.roots}
    for step in graph.schedule():
        assert step.ready[0] == step.node
        assert set(step.ready) == queue if step.queued <= MOST_READY else set(step.ready) < queue
        assert step.queued == len(queue)
        numbers = {i: graph.nodes[i].sequence for i in queue}
        assert numbers[step.node] is None or all(n is not None and n <= numbers[step.node] for n in numbers.values())
        queue = (queue - {step.node}) | set(step.woken)
    assert not queue


def test_a_gradient_waits_for_its_other_branch():
    a = torch.ones(3, requires_grad=True)
    steps = nbautograd.graph((a.exp() + a.sin()).sum(), names={}).schedule()
    leaf = steps[-1]
    assert leaf.accumulated == leaf.node
    assert len(leaf.arrived) == 2
    assert [step.waiting for step in steps] == [(0,), (0, 0), (1,), (0,), ()]


def test_a_long_queue_is_told_in_part():
    a = torch.ones(3, requires_grad=True)
    steps = nbautograd.graph(torch.stack([a.exp() for _ in range(50)]).sum(), names={}).schedule()
    assert max(step.queued for step in steps) == 50
    assert max(len(step.ready) for step in steps) == MOST_READY


def test_a_backward_that_stopped_or_left_nodes_out_has_the_steps_that_ran():
    x = torch.ones(2, requires_grad=True)
    stopped = nbautograd.backward(models.Raising.apply(x.sin()).sum(), raises=False)
    assert tuple(step.node for step in stopped.schedule()) == stopped.ran
    y = torch.ones(2, requires_grad=True)
    some = nbautograd.backward((x.sin() * y.cos()).sum(), inputs=[x])
    assert tuple(step.node for step in some.schedule()) == some.ran


def test_every_state_and_every_folded_graph_has_a_schedule():
    for value in models.states().values():
        graph = nbautograd.graph(value, names={})
        assert [s.node for s in graph.schedule()] == list(graph.order)
    model, loss = models.residual_network()
    folded = nbautograd.graph(loss, names=model).collapse(1)
    assert [s.node for s in folded.schedule()] == list(folded.order)
