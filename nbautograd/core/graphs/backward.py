"""Run backward and keep what flowed on every edge, leaving no trace in the graph or in the gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from nbautograd.core import stumbles
from nbautograd.core.display import Phrase
from nbautograd.core.graphs.build import BackwardFlow, Walk
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.names import Names
from nbautograd.core.stumbles import RAISED, hands_over, is_ours
from nbautograd.core.torch_private.nodes import next_sequence_number, node_name
from nbautograd.core.values import TensorSummary, summarise

Gradients = Sequence[torch.Tensor | None]


def backward(
    tensors: torch.Tensor | Sequence[torch.Tensor],
    gradient: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: torch.Tensor | Sequence[torch.Tensor] | None = None,
    *,
    names: Any = None,
    raises: bool = True,
) -> AutogradGraph:
    """Run ``torch.autograd.backward`` and return the graph with the gradient on every node and every edge.

    ``.grad`` of the leaves accumulates bit for bit as without this function. A node's gradient is the sum of what the
    edges into it carry.

    Args:
        tensors: the tensor or tensors to differentiate, as for ``torch.autograd.backward``.
        gradient: the cotangent of each; None for scalars.
        retain_graph, create_graph, inputs: as for ``torch.autograd.backward``.
        names: variable name -> tensor or module for the labels, as for ``graph``.
        raises: False returns what flowed, with a note, when backward raises; True passes the exception on.

    Returns:
        The graph as it stood before backward, with summaries of the gradients.

    Raises:
        Exception: whatever the user's backward or torch raises, unless ``raises`` is False.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> graph = nbautograd.backward((a * a).sum())
        >>> [edge.gradient.norm for edge in graph.edges if edge.target == 2]
        [1.7320508075688772, 1.7320508075688772]
    """
    walk, flow = Walk(tensors, Names(names)), BackwardFlow()
    handles = [node.register_prehook(_arrived(i, flow)) for i, node in enumerate(walk.live)]
    handles += [node.register_hook(_left(i, walk, flow)) for i, node in enumerate(walk.live)]
    try:
        _run(tensors, gradient, retain_graph, create_graph, inputs=inputs)
    except KeyboardInterrupt:
        walk.notes.append(Phrase("graphs.backward_raised", node="backward", error="KeyboardInterrupt"))
    except RAISED as error:
        if raises or is_ours(error):
            raise
        node = node_name(walk.live[flow.ran[-1]]) if flow.ran else "backward"
        said = (stumbles.said(error).strip().splitlines() or [""])[0]
        walk.notes.append(Phrase("graphs.backward_raised", node=node, error=f"{type(error).__name__}: {said}"))
    finally:
        for handle in handles:
            handle.remove()
    flow.first_bad = _first_bad(walk, flow)
    if flow.first_bad is not None:
        bad, what = flow.first_bad
        walk.remarks.append(Phrase("graphs.first_bad", what=what, node=node_name(walk.live[bad])))
    return walk.finish(flow)


def drawn_tensor(graph: AutogradGraph) -> torch.Tensor | None:
    """Return the tensor that a graph was drawn of, if it is one with a name that still lives."""
    return graph.tensors.get(str(graph.roots[0][1]) if len(graph.roots) == 1 else "")


def runs_backward(tensor: torch.Tensor | None) -> bool:
    """Return True for a real scalar, whose backward needs no gradient."""
    return tensor is not None and tensor.requires_grad and tensor.numel() == 1 and not tensor.is_complex()


def with_saved(graph: AutogradGraph, tensor: torch.Tensor) -> AutogradGraph:
    """Return the graph that was drawn of a tensor with what all its nodes keep, which a large one leaves out."""
    read = Walk(tensor, Names({name: graph.tensors.get(name) for name in graph.tensors.names}), saved=True).finish()
    if [node.name for node in read.nodes] != [node.name for node in graph.nodes]:
        return read  # changed in place since
    nodes = [
        replace(node, saved=now.saved, storages=now.storages, stale=now.stale)
        for node, now in zip(graph.nodes, read.nodes, strict=True)
    ]
    edges = [replace(edge, stale=now.stale) for edge, now in zip(graph.edges, read.edges, strict=True)]
    return replace(graph, nodes=tuple(nodes), edges=tuple(edges), read=True)


def backward_of_drawn(graph: AutogradGraph, tensor: torch.Tensor) -> AutogradGraph:
    """Run backward of the tensor that a graph was drawn of, keep it, and return the same graph with what flowed."""
    names = {name: graph.tensors.get(name) for name in graph.tensors.names}
    ran = backward(tensor, retain_graph=True, names=names, raises=False)
    if [node.name for node in ran.nodes] != [node.name for node in graph.nodes]:
        return ran  # changed in place since
    nodes = [
        replace(node, gradient=now.gradient, first_bad=now.first_bad, freed=now.freed)
        for node, now in zip(graph.nodes, ran.nodes, strict=True)
    ]
    notes = dict.fromkeys((*graph.notes, *ran.notes))
    return replace(graph, nodes=tuple(nodes), edges=ran.edges, ran=ran.ran, notes=tuple(notes))


@hands_over
def _run(*args: Any, **kwargs: Any) -> None:
    torch.autograd.backward(*args, **kwargs)


def _arrived(i: int, flow: BackwardFlow) -> Callable[[Gradients], None]:

    def hook(grad_outputs: Gradients) -> None:
        flow.ran.append(i)
        flow.nodes[i] = tuple(map(_summary, grad_outputs))
        if torch.is_grad_enabled():  # create_graph: what is made from here on is the derivative of this node
            number = next_sequence_number() or 0
            flow.made[i] = number, number

    return hook


def _left(i: int, walk: Walk, flow: BackwardFlow) -> Callable[[Gradients, Gradients], None]:

    def hook(grad_inputs: Gradients, grad_outputs: Gradients) -> None:
        if i in flow.made:
            flow.made[i] = flow.made[i][0], next_sequence_number() or 0
        for _, position, _ in walk.following[i]:
            if position < len(grad_inputs):
                flow.edges[i, position] = _summary(grad_inputs[position], walk.expected(i, position))

    return hook


def _summary(gradient: torch.Tensor | None, expected: tuple[int, ...] | None = None) -> TensorSummary | None:
    """Summarise a gradient as the engine passes it on: summed to the shape that is expected."""
    if gradient is None:
        return None
    try:
        with torch.no_grad():
            if expected is not None and tuple(gradient.shape) != expected:
                gradient = gradient.sum_to_size(expected)
            return summarise(gradient)
    except RuntimeError as error:  # a wrong shape is the engine's to complain about; sparse and nested ones cannot sum
        shape = tuple(gradient.shape)
        return TensorSummary(shape, str(gradient.dtype).removeprefix("torch."), reason=stumbles.said(error))


def _first_bad(walk: Walk, flow: BackwardFlow) -> tuple[int, str] | None:
    for i in flow.ran:
        if any(summary is not None and (summary.nan or summary.inf) for summary in flow.nodes.get(i, ())):
            continue
        for _, position, _ in walk.following[i]:
            sent = flow.edges.get((i, position))
            if sent is not None and (sent.nan or sent.inf):
                return i, "NaN" if sent.nan else "Inf"
    return None
