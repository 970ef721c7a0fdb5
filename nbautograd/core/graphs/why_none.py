"""Reason for a ``.grad`` that is None: the first that holds, from the tensor to the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.build import Walk
from nbautograd.core.graphs.graph import AutogradGraph, Ghost
from nbautograd.core.graphs.names import Names
from nbautograd.core.values import sizes_text


def of_leaf(leaf: torch.Tensor, losses: Sequence[torch.Tensor], names: Mapping[str, Any]) -> Finding:
    """Say why a leaf whose ``.grad`` is None has no gradient from these losses."""
    walk = Walk(losses, Names(names))
    name = walk.names.label(leaf) or f"{type(leaf).__name__} {sizes_text(leaf.shape)}"
    # a leaf's node is the one that accumulates into it
    place = next((i for i, one in enumerate(walk.leaves) if one is leaf), None)
    return _reason(walk.finish(), name, leaf, place)


@dataclass(frozen=True)
class NoneReason:
    """The answer about one tensor.

    Attributes:
        finding: the reason; its code is ``"grad_none_has"`` when there is a gradient after all.
        node: id of the node that stands for the tensor in the graph, or None.
        ghost: how the tensor is drawn when no way leads to it; None when it is a part of the graph.
    """

    finding: Finding
    node: int | None = None
    ghost: Ghost | None = None


def askable(graph: AutogradGraph) -> list[str]:
    """Return the names that can be asked for: of the graph's tensors, of its ghosts, then of the other tensors that
    had a name when the graph was made.
    """
    leaves = [node.label for node in graph.leaves if node.label]
    others = [node.label for node in graph.nodes if node.label and node.kind != "leaf"]
    return list(dict.fromkeys([*leaves, *(ghost.name for ghost in graph.ghosts), *others, *graph.tensors.names]))


def ask(graph: AutogradGraph, name: str) -> NoneReason:
    """Say why the tensor that had a name when the graph was made has no gradient, and how it is drawn.

    Args:
        graph: the graph, before or after ``nbautograd.backward``.
        name: one of ``askable``.
    """
    node = next((node.id for node in graph.nodes if node.label == name), None)
    ghost = next((ghost for ghost in graph.ghosts if ghost.name == name), None)
    tensor = graph.tensors.get(name)
    if tensor is None and node is None and ghost is None:
        return NoneReason(reason_finding("unknown", name=name))
    finding = _reason(graph, name, tensor, node)
    if node is None and ghost is None and tensor is not None:
        itself = of_tensor(tensor)
        user = next((n.id for n in graph.nodes if any(storage.name == name for storage in n.storages)), None)
        ghost = Ghost(name, itself if itself in ("integer", "not_required") else "unused", tuple(tensor.shape), user)
    return NoneReason(finding, node, None if node is not None else ghost)


def _reason(graph: AutogradGraph, name: str, tensor: torch.Tensor | None, place: int | None) -> Finding:
    itself = "" if tensor is None else of_tensor(tensor)
    if itself:
        return reason_finding(itself, name=name, at="")
    if tensor is not None and tensor.grad is not None:
        return reason_finding("has", name=name)
    if all(root is None for root, _ in graph.roots):
        return reason_finding("no_graph", name=name)
    if place is None:
        return reason_finding("not_a_part", name=name, outputs=_listed([root for _, root in graph.roots]))
    carried = graph.nodes[place].gradient is not None
    if tensor is None:  # what has become of it since is not known; what the graph itself saw is
        if carried:
            return reason_finding("has", name=name)
        known = graph.ran and graph.nodes[place].kind == "leaf"
        return of_edges(graph, place, name) if known else reason_finding("unknown", name=name)
    if carried:
        return reason_finding("removed", name=name)
    return of_edges(graph, place, name) if graph.ran else reason_finding("not_run", name=name)


def of_tensor(tensor: torch.Tensor) -> str:
    """Return a reason that lies in the tensor itself."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return "integer"
    if not tensor.requires_grad:
        return "not_required"
    if not tensor.is_leaf and not tensor.retains_grad:
        return "not_a_leaf"
    return ""


def of_edges(ran: AutogradGraph, place: int, name: str) -> Finding:
    """Return the finding on a part of the graph: what came, or did not come, along the tensor's edges."""
    edges = [edge for edge in ran.edges if edge.target == place]
    silent = next((edge for edge in edges if edge.state == "none"), None)
    if silent is None:
        return reason_finding("not_reached", name=name)
    source = ran.nodes[silent.source]
    return reason_finding(
        "returned_none",
        source.line,
        name=name,
        source=source.function or str(source.name),
        argument=silent.name or name,
    )


def _listed(names: Sequence[str | Phrase]) -> Phrase | str:
    if len(names) < 2:
        return names[0] if names else ""
    return Phrase("graphs.listed", first=_listed(names[:-1]), last=names[-1])


def reason_finding(reason: str, line: int | None = None, **params: Any) -> Finding:
    """Return the finding of a reason, such as ``"not_reached"``."""
    return Finding(f"grad_none_{reason}", "note", f"graphs.none.{reason}", params, line=line)
