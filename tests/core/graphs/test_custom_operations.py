"""An operation of torch.library in the graph: one node with its own name, and the names that its author gave."""

from __future__ import annotations

import torch

import nbautograd


@torch.library.custom_op("nbautograd_graphs::swish", mutates_args=())
def swish(x: torch.Tensor, beta: float) -> torch.Tensor:
    return x * torch.sigmoid(beta * x)


def setup_context(ctx, inputs, output):
    x, ctx.beta = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    s = torch.sigmoid(ctx.beta * x)
    return grad * (s + ctx.beta * x * s * (1 - s)), None


swish.register_autograd(backward, setup_context=setup_context)


def test_an_operation_is_one_node_with_its_ctx():
    x = torch.randn(3, requires_grad=True)
    graph = nbautograd.graph(swish(x, 2.0).sum())
    [node] = [node for node in graph.nodes if node.kind == "function"]
    assert (node.function, node.name) == ("nbautograd_graphs::swish", "nbautograd_graphs::swishBackward")
    assert node.inputs == ("x", "beta")
    assert [value.name for value in node.ctx.saved_tensors] == ["x"]
    assert node.ctx.attributes["beta"].repr == "2.0"
    assert "nbautograd_graphs::swish" in str(graph)
    assert "nbautograd_graphs::swish" in graph.to_svg()
