"""Which module made each node: exactly, when the modules were watched."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nbautograd
from nbautograd import watch_modules


class Block(nn.Module):
    """Ops of its own before and after its children, and a module without parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.act = nn.Tanh()

    def forward(self, x):
        y = x * 2
        return self.act(self.inner(y)).sin() + x


def test_every_node_is_in_the_module_that_made_it():
    torch.manual_seed(0)
    model = nn.Sequential(Block(), nn.ReLU(), Block())
    with watch_modules():
        loss = model(torch.ones(1, 3)).mean()
    graph = nbautograd.graph(loss, names=model)
    scopes = {n.name: n.scope for n in graph.nodes if n.sequence is not None and n.scope.startswith(("1", "2"))}
    assert scopes == {
        "AddBackward0": "2",
        "SinBackward0": "2",
        "TanhBackward0": "2.act",
        "AddmmBackward0": "2.inner",
        "MulBackward0": "2",
        "ReluBackward0": "1",
        "TBackward0": "2.inner",
    }
    assert {n.scope for n in graph.nodes if n.name == "MeanBackward0"} == {""}


def test_a_forward_that_raises_leaves_no_hook_and_no_call_open():
    class Raises(nn.Module):
        def forward(self, x):
            raise ValueError("not today")

    model = nn.Sequential(nn.Linear(2, 2), Raises())
    hooks = torch.nn.modules.module._global_forward_pre_hooks
    before = len(hooks)
    try:
        with watch_modules():
            model(torch.ones(1, 2))
    except ValueError:
        pass
    assert len(hooks) == before
    with watch_modules():
        loss = model[0](torch.ones(1, 2)).sum()
    assert {n.scope for n in nbautograd.graph(loss, names=model).nodes if n.name == "AddmmBackward0"} == {"0"}


def test_outside_of_the_watch_scopes_are_inferred():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    graph = nbautograd.graph(model(torch.ones(1, 2)).sum(), names=model)
    assert {n.scope for n in graph.nodes} == {"", "0", "1"}
    assert {n.calls for n in graph.nodes} == {()}


@pytest.mark.parametrize("read", [nbautograd.graph, nbautograd.backward])
def test_a_model_that_is_one_frozen_layer_is_read(read):
    model = nn.Linear(2, 2).requires_grad_(False)
    graph = read(model(torch.ones(1, 2, requires_grad=True)).sum(), names=model)
    assert [(node.scope, node.frozen) for node in graph.nodes] == [("", False), ("", True), ("", False)]


def test_what_a_shared_module_makes_belongs_to_whoever_calls_it():
    class Uses(nn.Module):
        def __init__(self, act) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.act = act

        def forward(self, x):
            return self.act(self.inner(x))

    act = nn.Tanh()
    model = nn.Sequential(Uses(act), Uses(act))
    with watch_modules():
        loss = model(torch.ones(1, 3)).sum()
    graph = nbautograd.graph(loss, names=model)
    assert [n.scope for n in graph.nodes if n.name == "TanhBackward0"] == ["1", "0.act"]
    assert [n.scope for n in graph.collapse(1).nodes if len(n.members) > 1] == ["1", "0"]
