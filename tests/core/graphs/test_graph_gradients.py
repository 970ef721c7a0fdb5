"""Running backward: the user's gradients stay bit for bit the same, and every edge tells what it carried."""

from __future__ import annotations

import gc
import weakref

import graph_models as models
import pytest
import torch
from said import says

import nbautograd
from nbautograd.core.graphs import backward

MAKERS = [models.linear_function, models.mlp, models.rnn, models.resnet]


def leaves_of(kept):
    if isinstance(kept, torch.nn.Module):
        return list(kept.parameters())
    return [t for t in (kept.values() if isinstance(kept, dict) else kept) if t.requires_grad]


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_grad_accumulates_bit_for_bit_as_torch_does(make):
    kept, loss = make()
    nbautograd.backward(loss, retain_graph=True)
    nbautograd.backward(loss)
    twin, same = make()
    same.backward(retain_graph=True)
    same.backward()
    for ours, theirs in zip(leaves_of(kept), leaves_of(twin), strict=True):
        assert torch.equal(ours.grad, theirs.grad)


def test_a_gradient_that_is_too_large_is_shown_as_the_engine_sums_it():
    x, shift = torch.ones(4, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    made = nbautograd.backward(models.Broadcasting.apply(x, shift).sum())
    (edge,) = [e for e in made.edges if e.name == "shift"]
    assert edge.gradient.shape == (3,)
    assert edge.gradient.values == (4.0, 4.0, 4.0)


def test_leaf_nodes_hold_what_was_accumulated_now():
    a = torch.full((2,), 3.0, requires_grad=True)
    a.grad = torch.ones(2)
    made = nbautograd.backward((a * a).sum())
    (leaf,) = made.leaves
    assert leaf.gradient.values == (6.0, 6.0)
    assert [e.gradient.values for e in made.edges if e.target == leaf.id] == [(3.0, 3.0), (3.0, 3.0)]
    assert torch.equal(a.grad, torch.full((2,), 7.0))


def test_hooks_leave_no_trace(monkeypatch):
    kept = []

    class Watched(backward.BackwardFlow):
        def __init__(self) -> None:
            super().__init__()
            kept.append(weakref.ref(self))

    monkeypatch.setattr(backward, "BackwardFlow", Watched)
    x = torch.ones(2, requires_grad=True)
    loss = models.Linear.apply(x.reshape(1, 2), torch.ones(2, 2), None).exp().sum()
    nbautograd.backward(loss, retain_graph=True)
    gc.collect()
    assert kept[0]() is None  # though the graph still lives: no hook holds it
    first = x.grad.clone()
    loss.backward()
    assert torch.equal(x.grad, 2 * first)


def test_create_graph_gives_a_gradient_that_can_be_differentiated():
    x = torch.tensor([2.0], requires_grad=True)
    nbautograd.backward(x.pow(3).sum(), create_graph=True)
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    assert second.item() == 12.0


def test_the_users_exception_goes_on_its_way():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="not today"):
        nbautograd.backward(models.Raising.apply(x).sum())


def test_what_flowed_until_the_exception_can_be_asked_for():
    x = torch.ones(2, requires_grad=True)
    made = nbautograd.backward(models.Raising.apply(x).sum(), raises=False)
    assert not made.complete
    assert made.notes[0].params == {"node": "RaisingBackward", "error": "ValueError: not today"}
    assert {made.nodes[e.target].kind: e.state for e in made.edges} == {"function": "flowed", "leaf": "not reached"}


@pytest.mark.usefixtures("saved_tensors_shown")
def test_ctx_is_shown_as_it_stood_before_backward():
    _, loss = models.linear_function()
    made = nbautograd.backward(loss)
    (node,) = [n for n in made.nodes if n.kind == "function"]
    assert [v.tensor.shape for v in node.saved] == [(5, 4), (3, 4)]
    assert nbautograd.graph(loss).nodes[node.id].freed


@pytest.mark.parametrize("state", sorted(n for n, t in models.states().items() if isinstance(t, torch.Tensor)))
def test_every_state_can_be_run_or_says_why_not(state):
    tensors = models.states()[state]
    nbautograd.backward(tensors, gradient=torch.ones_like(tensors), raises=False)


def test_the_first_infinity_is_marked_in_a_folded_graph_too():
    y = x = torch.zeros(2, requires_grad=True)
    for _ in range(30):
        y = y.sqrt()
    made = nbautograd.backward(y.sum(), names={"x": x})
    (marked,) = [node for node in made.nodes if node.first_bad]
    assert marked.first_bad == "Inf"
    assert marked.id == made.ran[1]
    assert says(made.to_svg(), "graphs.first_bad_here", what="Inf")
