"""Reason for a ``.grad`` that is None: the first that holds, from the tensor to the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.build import Walk
from nbautograd.core.graphs.graph import AutogradGraph, Ghost, Node
from nbautograd.core.graphs.names import Names
from nbautograd.core.graphs.source_dataflow import CallerCode, Cut
from nbautograd.core.values import sizes_text


def why_none(
    tensor: torch.Tensor, tensors: Any, *, ran: AutogradGraph | None = None, names: Mapping[str, Any] | None = None
) -> Finding | None:
    """Say why a tensor has no gradient, with the line that cuts it off where the calling code shows one.

    Args:
        tensor: the tensor or parameter whose ``.grad`` is None.
        tensors: what was differentiated, as for ``graph``.
        ran: what ``nbautograd.backward`` returned, if it was run by that; tells a returned None from a missing path.
        names: variable name -> tensor, as for ``graph``.

    Returns:
        The reason as a finding of kind ``"note"``, or None when the tensor has a gradient.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> nbautograd.why_none(a, a.detach().sum(), names={"a": a}).code
        'grad_none_no_graph'
    """
    walk = Walk(tensors, Names(names))
    name = walk.names.label(tensor) or f"{type(tensor).__name__} {sizes_text(tensor.shape)}"
    reason = of_tensor(tensor) or ("no_graph" if all(root is None for root, _ in walk.roots) else "")
    if reason:
        return reason_finding(reason, name=name)
    if tensor.is_leaf and tensor.grad is not None:
        return None
    place = next((i for i, leaf in enumerate(walk.leaves) if leaf is tensor), None)
    if place is None:
        return _cut_off(tensor, name, walk.output_names())
    if ran is None or place >= len(ran.nodes):
        return reason_finding("not_run", name=name)
    return of_edges(ran, place, name)


def _cut_off(tensor: torch.Tensor, name: str, outputs: Sequence[str | Phrase]) -> Finding:
    """Return the finding that no way leads to the tensor, by the line that cuts it off if one is found."""
    code, listed = CallerCode.here(), _listed(outputs)
    cut = code.follow(tensor, name, [output for output in outputs if isinstance(output, str)])
    return reason_finding("not_a_part", name=name, outputs=listed) if cut is None else of_cut(cut, name, listed)


def of_cut(cut: Cut, name: str, outputs: Phrase | str) -> Finding:
    """Return the finding that a line cuts the tensor off."""
    return reason_finding("cut", cut.line, name=name, outputs=outputs, line=cut.line, text=cut.text)


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
    """Return some names as one, those of them that are words in the language of the moment."""
    if len(names) < 2:
        return names[0] if names else ""
    return Phrase("graphs.listed", first=_listed(names[:-1]), last=names[-1])


def reason_finding(reason: str, at: int | None = None, **params: Any) -> Finding:
    """Return the finding of a reason, such as ``"not_reached"``."""
    return Finding(f"grad_none_{reason}", "note", f"graphs.none.{reason}", params, line=at)


@dataclass(frozen=True)
class Answer:
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
    """Return the names that can be asked for: of the graph's tensors, of its ghosts, then of the user's other tensors.

    Args:
        graph: the graph.
        variables: the user's variables; modules and containers among them are looked into.
    """
    leaves = [node.label for node in graph.leaves if node.label]
    others = [node.label for node in graph.nodes if node.label and node.kind != "leaf"]
    known = [] if variables is None else Names(variables).tensors
    return list(dict.fromkeys([*leaves, *(ghost.name for ghost in graph.ghosts), *others, *known]))


def ask(
    graph: AutogradGraph, name: str, variables: Mapping[str, Any] | None = None, code: Sequence[str] = ()
) -> Answer:
    """Say why a tensor has no gradient from this graph, and how it is drawn.

    Args:
        graph: the graph, before or after ``nbautograd.backward``.
        name: one of ``askable``.
        variables: the user's variables, to look at tensors that the graph does not hold.
        code: cells or files in which a line that cuts the tensor off is looked for, the latest first.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.core.graphs.why_none import ask
        >>> a, n = torch.ones(3, requires_grad=True), torch.arange(3)
        >>> ask(nbautograd.graph((a * n).sum()), "n", {"a": a, "n": n}).finding.code
        'grad_none_integer'
    """
    node = next((n for n in graph.nodes if n.label == name), None)
    tensor = None if variables is None else Names(variables).tensors.get(name)
    if node is not None:
        return Answer(_of_node(graph, node, tensor), node.id)
    drawn = next((ghost for ghost in graph.ghosts if ghost.name == name), None)
    reason = "" if tensor is None else of_tensor(tensor)
    if drawn is None and reason in ("integer", "not_required"):
        ghost = Ghost(name, reason, None, "", tuple(tensor.shape), _user(graph, name))  # type: ignore[union-attr]
        return Answer(reason_finding(reason, name=name), None, ghost)
    return _not_a_part(graph, name, drawn, tensor, variables, code)


def _of_node(graph: AutogradGraph, node: Node, tensor: torch.Tensor | None) -> Finding:
    """Return the finding on a tensor that is a part of the graph."""
    if node.kind != "leaf" and not (tensor is not None and tensor.retains_grad):
        return reason_finding("not_a_leaf", name=node.label)
    if node.gradient is not None or (not graph.ran and tensor is not None and tensor.grad is not None):
        return reason_finding("has", name=node.label)
    if not graph.ran:
        return reason_finding("not_run", name=node.label)
    return of_edges(graph, node.id, node.label)


def _not_a_part(
    graph: AutogradGraph,
    name: str,
    drawn: Ghost | None,
    tensor: torch.Tensor | None,
    variables: Mapping[str, Any] | None,
    code: Sequence[str],
) -> Answer:
    """Answer that no way leads to the tensor: by the line that cuts it off, if one is found."""
    outputs = _listed([root for _, root in graph.roots])
    roots = [root for _, root in graph.roots if isinstance(root, str)]
    cut = CallerCode(code, variables or {}).follow(tensor, name, roots)
    if drawn is not None and drawn.line is not None:
        cut = Cut(drawn.reason, drawn.line, drawn.text)
    shape = () if tensor is None else tuple(tensor.shape)
    if cut is None:
        finding = reason_finding("not_a_part", name=name, outputs=outputs)
        return Answer(finding, None, drawn or Ghost(name, "unused", shape=shape))
    ghost = drawn or Ghost(name, cut.reason, cut.line, cut.text, shape, _user(graph, name))
    return Answer(of_cut(cut, name, outputs), None, ghost)


def _user(graph: AutogradGraph, name: str) -> int | None:
    """Return the first node that keeps the memory of the tensor of this name, if one does."""
    return next((n.id for n in graph.nodes if any(storage.name == name for storage in n.storages)), None)
