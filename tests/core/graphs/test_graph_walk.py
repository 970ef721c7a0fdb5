"""Reading a graph: complete, in every state, without side effects."""

from __future__ import annotations

import gc
import json
import pickle
import subprocess
import sys
import weakref

import graph_models as models
import pytest
import torch
from fn import Fn
from torch import nn

import nbautograd
from nbautograd import messages
from nbautograd.core.graphs import build, saved
from nbautograd.core.graphs.folding import fold_repeats, fold_to, open_boxes
from nbautograd.core.torch_private import nodes
from nbautograd.core.torch_private.nodes import SHOWS_SAVED, saved_peek

STATES = sorted(models.states())


@pytest.mark.parametrize("state", STATES)
def test_every_state_of_a_graph_is_read(state):
    made = nbautograd.graph(models.states()[state])
    assert all(node.id == i for i, node in enumerate(made.nodes))
    assert all(0 <= e.source < len(made.nodes) and 0 <= e.target < len(made.nodes) for e in made.edges)
    assert sorted(made.order) == list(range(len(made.nodes)))
    json.dumps(made.to_dict())


@pytest.mark.usefixtures("saved_tensors_shown")
def test_a_custom_function_is_one_node_with_its_ctx():
    names, loss = models.linear_function()
    made = nbautograd.graph(loss, names=names)
    (node,) = [n for n in made.nodes if n.kind == "function"]
    assert (node.name, node.function) == ("LinearBackward", "Linear")
    assert [(v.name, v.tensor.shape) for v in node.saved] == [("input", (5, 4)), ("weight", (3, 4))]
    assert node.ctx.attributes["note"].repr == "'kept'"
    assert node.ctx.needs_input_grad == (False, True, True)
    assert node.ctx.bytes == 8 * (20 + 12)
    assert node.inputs == ("input", "weight", "bias")
    assert node.line is not None
    assert node.stops == (0,)
    assert [(e.name, e.shape, e.dtype) for e in made.edges if e.source == node.id] == [
        ("weight", (3, 4), "float64"),
        ("bias", (3,), "float64"),
    ]


def test_parameters_have_their_paths_and_nodes_their_modules():
    model, loss = models.mlp()
    made = nbautograd.graph(loss, names={"model": model, "other": 3})
    assert {n.label for n in made.leaves} == {name for name, _ in model.named_parameters()}
    scopes = {n.name: n.scope for n in made.nodes if n.kind == "op"}
    assert scopes["AddmmBackward0"] in {"0", "2", "4"}
    assert {"0": "Linear", "2": "Linear", "4": "Linear"}.items() <= dict(made.scopes).items()


def test_several_outputs_are_named_by_their_places():
    x = torch.ones(2, requires_grad=True)
    made = nbautograd.graph({"loss": x.sum(), "parts": [x.sin(), x.detach()]}, names={})
    assert [name for _, name in made.roots] == ["loss", "parts[0]", "parts[1]"]
    assert made.roots[2][0] is None
    assert any("parts[1]" in str(note) for note in made.notes)


@pytest.mark.usefixtures("saved_tensors_shown")
def test_freed_buffers_of_ops_are_marked_in_small_and_in_large_graphs(monkeypatch):
    for limit in (300, 0):
        monkeypatch.setattr(build, "SAVED_OF_OPS", limit)
        x = torch.ones(3, requires_grad=True)
        loss = (x.exp() * 2).sum()
        assert not any(n.freed for n in nbautograd.graph(loss).nodes)
        loss.backward()
        assert "ExpBackward0" in [n.name for n in nbautograd.graph(loss).nodes if n.freed]


def test_what_torch_does_not_show_is_not_called_packed(monkeypatch):
    """As in torch 2.6, whose slots have neither attribute."""
    monkeypatch.setattr(saved, "saved_peek", lambda slot: saved_peek(object()))
    x = torch.ones(3, requires_grad=True)
    node = nbautograd.graph(x.exp(), saved=True).nodes[0]
    assert [v.repr for v in node.saved] == [f"not shown by torch {torch.__version__.split('+')[0]}"]
    assert not node.freed


def test_looking_leaves_the_version_error_to_backward():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = (y * y).sum()
    y.data.add_(0)
    with torch.no_grad():
        y.add_(1)
    nbautograd.graph(loss)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer writes the variables of a frame back")
def test_variables_end_with_their_last_name_in_a_function_that_draws_a_graph():
    taken, x = locals(), torch.ones(2, requires_grad=True)
    loss = x.sum()
    nbautograd.graph(loss)
    assert taken["loss"] is loss  # the user's own copy stays
    del taken
    exec("extra = 3")
    there = "extra" in locals()  # until Python 3.13 what exec() wrote stands in this copy alone
    nbautograd.graph(loss)
    still = "extra" in locals()
    assert still is there
    nbautograd.graph(loss)
    gone = weakref.ref(loss)
    del loss
    assert gone() is None


def test_looking_keeps_nothing_alive():
    x = torch.ones(3, requires_grad=True)
    y = Held.apply(x)
    gone = weakref.ref(y)
    made = nbautograd.graph(y, names={"x": x})
    del y
    gc.collect()
    assert gone() is None
    assert len(made.nodes) == 2


Held = Fn.of("Held", "x: save(x); return x.clone()", "grad_output: return grad_output")


def test_an_interrupt_gives_what_was_found(monkeypatch):
    def interrupt(self, root, index):
        index[root] = 0
        self.live.append(root)
        raise KeyboardInterrupt

    monkeypatch.setattr(build.Walk, "_descend", interrupt)
    made = nbautograd.graph(torch.ones(2, requires_grad=True).sum())
    assert len(made.nodes) == 1
    assert not made.complete
    assert made.notes[0].message_id == "graphs.cut"


@pytest.mark.usefixtures("saved_tensors_shown")
def test_an_op_that_saved_none_is_not_freed_until_backward():
    x = torch.ones(2, 4, requires_grad=True)
    loss = torch.nn.functional.layer_norm(x, (4,)).sum()
    index = x[torch.tensor([0])].sum()
    for value in (loss, index, torch.clamp(x, min=0).sum()):
        graph = nbautograd.graph(value, names={})
        assert not any(node.freed for node in graph.nodes)
        large = nbautograd.graph(value, names={}, saved=False)
        assert not any(node.freed for node in large.nodes)
        value.backward()
        assert any(node.freed for node in nbautograd.graph(value, names={}).nodes)


def test_names_of_boxes_and_outputs_are_read_in_the_language_of_the_moment():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), *(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(12)))
    with messages.speaking("en"):
        graph = nbautograd.graph(model(torch.ones(1, 2)).sum(), names=model)
        repeats = fold_repeats(graph)
        (box,) = [node for node in repeats.nodes if node.repeats]
        graphs = [graph.collapse(), repeats, fold_to(graph, 2), open_boxes(graph, [f"g{box.members[0]}"], 300)]
        boxes = [node for folded in graphs for node in folded.nodes if len(node.members) > 1]
        assert all("nodes" in node.name for node in boxes)
        assert any("the rest" in node.name for node in boxes)
        assert f"{graph.roots[0][1]:>8}" == "  output"
    with messages.speaking("zh"):
        assert all("个节点" in node.name and "nodes" not in node.name for node in boxes)
        assert any("其余部分" in node.name for node in boxes)
        assert "输出" in graph.to_svg()
        json.dumps(graph.collapse().to_dict())
    assert pickle.loads(pickle.dumps(boxes)) == boxes


@pytest.mark.parametrize("shown", [SHOWS_SAVED, False])
def test_a_freed_node_is_told_and_no_unpack_hook_runs_for_it(shown, monkeypatch):
    monkeypatch.setattr(nodes, "SHOWS_SAVED", shown)
    unpacked = []
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t):
        y = x.exp()
    z = y.sin()
    changed = z.cos()
    z.add_(1)
    assert not any(map(nodes.all_gone, (y.grad_fn, z.grad_fn, changed.grad_fn)))
    assert not unpacked
    y.sum().backward()
    assert len(unpacked) == 1
    assert nodes.all_gone(y.grad_fn)
    assert sys.getprofile() is None


def test_where_a_profiler_runs_it_stays_and_no_node_is_said_to_be_freed(monkeypatch):
    monkeypatch.setattr(nodes, "SHOWS_SAVED", False)
    y = torch.ones(3, requires_grad=True).exp()
    y.sum().backward()
    seen = []

    def profiler(*event):
        seen.append(event)

    sys.setprofile(profiler)
    try:
        gone, still = nodes.all_gone(y.grad_fn), sys.getprofile()
    finally:
        sys.setprofile(None)
    assert (gone, still) == (False, profiler)
    assert nodes.all_gone(y.grad_fn)


DEEP = """
import torch, nbautograd
from nbautograd.core.explaining.program import nodes_behind
from nbautograd.core.torch_private.nodes import graph_nodes
looks = (lambda y: nbautograd.graph(y).complete, lambda y: list(graph_nodes([y])), lambda y: nodes_behind(y.grad_fn))
for look in looks:
    y = torch.ones(2, requires_grad=True)
    for _ in range(100_000):
        y = y.sin()
    print(bool(look(y)))
    del y
print("ended")
"""


@pytest.mark.slow
def test_a_graph_of_any_depth_can_be_looked_at():
    ran = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.split()) == (0, ["False", "True", "True", "ended"]), ran.stderr
