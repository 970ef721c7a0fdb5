"""Memory and versions: bytes counted once, changed tensors found, nothing run."""

from __future__ import annotations

import graph_models as models
import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.core.graphs.saved import find_change

KeepsItsOutput = Fn.of("KeepsItsOutput", "x: y = x.exp(); save(y); return y",
    "grad_output: (y,) = saved; return grad_output * y")  # fmt: skip


def leaf(count=3):
    return torch.ones(count, requires_grad=True)


def node(graph, name):
    return next(n for n in graph.nodes if n.name.startswith(name))


@pytest.mark.usefixtures("saved_tensors_shown")
def test_a_tensor_changed_under_no_grad_is_found_with_the_line():
    y = leaf().exp()
    z = (y * 2 * y).sum()
    with torch.no_grad():
        y.add_(1)
    graph = nbautograd.graph(z)
    found = node(graph, "Mul").stale
    assert [(s.name, s.saved, s.now, s.by) for s in found] == [("y", 0, 1, "y.add_(1)")]
    assert ": `y.add_(1)`)" in str(graph.notes[0])
    assert [s.slot for s in node(graph, "Exp").stale] == ["result"]
    with pytest.raises(RuntimeError, match="inplace"):
        z.backward()


@pytest.mark.usefixtures("saved_tensors_shown")
def test_a_change_that_the_graph_knows_is_named_by_its_op():
    y = leaf().exp()
    z = (y * y).sum()
    y.mul_(3)
    assert {s.by for s in node(nbautograd.graph(z, names={}), "Mul").stale} == {"MulBackward0"}


@pytest.mark.usefixtures("saved_tensors_shown")
def test_functions_that_saved_an_input_or_their_output():
    b = torch.ones(3, 4)
    out = models.Linear.apply(b, torch.ones(2, 4, requires_grad=True), None)
    b.zero_()
    assert [(s.slot, s.now) for s in node(nbautograd.graph(out, names={}), "Linear").stale] == [("input", 1)]
    y = KeepsItsOutput.apply(leaf())
    z = y.sum()
    with torch.no_grad():
        y += 1
    assert [(s.slot, s.saved, s.now) for s in node(nbautograd.graph(z), "Keeps").stale] == [("y", 0, 1)]


@pytest.mark.usefixtures("saved_tensors_shown")
def test_bytes_are_those_of_the_storages_each_once():
    x = torch.ones(10, requires_grad=True)
    y = x.exp()
    graph = nbautograd.graph((y * y).sum() + (y * x).sum(), names={})
    assert node(graph, "Exp").bytes == 40
    assert graph.saved_bytes()[""] == 80
    assert sum(n.bytes for n in graph.nodes) == 40 + 40 + 80


def test_ways_to_change_a_tensor_in_place():
    ways = ["y.add_(1)", "y += 1", "y[0] = 2", "y[1:] *= 3", "y.data.mul_(2)"]
    assert [way for way in ways if find_change("y", way) or find_change("y.data", way)] == ways
    assert find_change("y", "y.requires_grad_()") is None
    assert find_change("y", "y = y + 1") is None
