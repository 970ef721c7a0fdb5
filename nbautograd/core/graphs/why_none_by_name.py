"""Why has this tensor no gradient, asked of a graph of plain data by the tensor's name, when its nodes may be gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.findings import Finding
from nbautograd.core.graphs.graph import AutogradGraph, Ghost, Node
from nbautograd.core.graphs.names import Names
from nbautograd.core.graphs.source_cuts import Cut, find_cut
from nbautograd.core.graphs.why_none import finding, of_cut, of_edges, of_tensor


@dataclass(frozen=True)
class Asked:
    """The answer about one tensor.

    Attributes:
        finding: the reason; its code is ``"grad_none_has"`` when there is a gradient after all.
        node: id of the node that stands for the tensor in the graph, or None.
        ghost: how the tensor is drawn when no way leads to it; None when it is a part of the graph.
    """

    finding: Finding
    node: int | None = None
    ghost: Ghost | None = None


def askable(graph: AutogradGraph, variables: Mapping[str, Any] | None = None) -> list[str]:
    """The names that can be asked for: of the graph's tensors, of its ghosts, then of the user's other tensors.

    Args:
        graph: the graph.
        variables: the user's variables; modules and containers among them are looked into.
    """
    leaves = [node.label for node in graph.leaves if node.label]
    others = [node.label for node in graph.nodes if node.label and node.kind != "leaf"]
    known = [] if variables is None else Names(variables).labels.values()
    return list(dict.fromkeys([*leaves, *(ghost.name for ghost in graph.ghosts), *others, *known]))


def ask(graph: AutogradGraph, name: str, variables: Mapping[str, Any] | None = None, code: Sequence[str] = ()) -> Asked:
    """Say why a tensor has no gradient from this graph, and how it is drawn.

    Args:
        graph: the graph, before or after ``nbautograd.backward``.
        name: one of ``askable``.
        variables: the user's variables, to look at tensors that the graph does not hold.
        code: cells or files in which a line that cuts the tensor off is looked for, the latest first.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.core.graphs.why_none_by_name import ask
        >>> a, n = torch.ones(3, requires_grad=True), torch.arange(3)
        >>> ask(nbautograd.graph((a * n).sum()), "n", {"a": a, "n": n}).finding.code
        'grad_none_integer'
    """
    node = next((n for n in graph.nodes if n.label == name), None)
    tensor = None if variables is None else _tensor(name, variables)
    if node is not None:
        return Asked(_of_node(graph, node, tensor), node.id)
    drawn = next((ghost for ghost in graph.ghosts if ghost.name == name), None)
    reason = "" if tensor is None else of_tensor(tensor)
    if drawn is None and reason in ("integer", "not_required"):
        ghost = Ghost(name, reason, None, "", tuple(tensor.shape), _user(graph, name))  # type: ignore[union-attr]
        return Asked(finding(reason, name=name), None, ghost)
    return _cut_off(graph, name, drawn, tensor, code)


def _tensor(name: str, variables: Mapping[str, Any]) -> torch.Tensor | None:
    """The user's tensor of this name, now; named as ``graph`` names it."""
    wanted = {key for key, label in Names(variables).labels.items() if label == name}
    return next((t for t in _tensors(variables) if id(t) in wanted), None) if wanted else None


def _tensors(variables: Mapping[str, Any]) -> list[torch.Tensor]:
    """All tensors among the variables, in modules and in containers."""
    found: list[torch.Tensor] = []
    stack = [(value, 0) for value in list(variables.values())]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, torch.nn.Module):
            found += value.parameters()
        elif isinstance(value, (list, tuple, dict)) and depth < 3:
            items = value.values() if isinstance(value, dict) else value
            stack += [(item, depth + 1) for item in list(items)[:256]]
    return found


def _of_node(graph: AutogradGraph, node: Node, tensor: torch.Tensor | None) -> Finding:
    """The tensor is a part of the graph."""
    if node.kind != "leaf" and not (tensor is not None and tensor.retains_grad):
        return finding("not_a_leaf", name=node.label)
    if node.gradient is not None or (not graph.ran and tensor is not None and tensor.grad is not None):
        return finding("has", name=node.label)
    if not graph.ran:
        return finding("not_run", name=node.label)
    return of_edges(graph, node.id, node.label)


def _cut_off(
    graph: AutogradGraph, name: str, drawn: Ghost | None, tensor: torch.Tensor | None, code: Sequence[str]
) -> Asked:
    """No way leads to the tensor: by the line that cuts it off, if one is found."""
    outputs = ", ".join(root for _, root in graph.roots)
    cut: Cut | None = next((hit for text in code if (hit := find_cut(name, text))), None)
    if drawn is not None and drawn.line is not None:
        cut = Cut(drawn.reason, drawn.line, drawn.text, drawn.where, drawn.sure)
    if cut is None:
        shape = () if tensor is None else tuple(tensor.shape)
        return Asked(
            finding("not_a_part", name=name, outputs=outputs), None, drawn or Ghost(name, "unused", shape=shape)
        )
    found = of_cut(cut, name, outputs)
    shape = () if tensor is None else tuple(tensor.shape)
    return Asked(found, None, drawn or Ghost(name, cut.reason, cut.line, cut.text, shape, _user(graph, name)))


def _user(graph: AutogradGraph, name: str) -> int | None:
    """The first node that keeps the memory of the tensor of this name, if one does."""
    return next((n.id for n in graph.nodes if any(storage.name == name for storage in n.storages)), None)
