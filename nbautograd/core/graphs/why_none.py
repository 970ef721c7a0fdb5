"""Why is this ``.grad`` None: the first reason that holds, from the tensor to the loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from nbautograd import messages
from nbautograd.core.findings import Finding
from nbautograd.core.graphs.build import Walk
from nbautograd.core.graphs.caller_code import CallersCode
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.core.graphs.names import Names
from nbautograd.core.graphs.source_cuts import Cut


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
    name = walk.names.label(tensor) or f"{type(tensor).__name__} {tuple(tensor.shape)}"
    reason = of_tensor(tensor) or _of_outputs(walk)
    if reason:
        return finding(reason, name=name)
    if tensor.is_leaf and tensor.grad is not None:
        return None
    place = next((i for i, leaf in enumerate(walk.leaves) if leaf is tensor), None)
    if place is None:
        return _cut_off(tensor, name, walk.output_names())
    if ran is None or place >= len(ran.nodes):
        return finding("not_run", name=name)
    return of_edges(ran, place, name)


def _cut_off(tensor: torch.Tensor, name: str, outputs: Sequence[str]) -> Finding:
    """No way leads to the tensor: by the line that cuts it off, if one is found."""
    code, said = CallersCode(), ", ".join(outputs)
    cut = code.follow(tensor, name, outputs) or code.cut(name)
    return finding("not_a_part", name=name, outputs=said) if cut is None else of_cut(cut, name, said)


def of_cut(cut: Cut, name: str, outputs: str) -> Finding:
    """A line cuts the tensor off, or most likely does."""
    where = messages.text("graphs.none.where", where=cut.where) if cut.where else ""
    reason = "cut" if cut.sure else "cut_likely"
    return finding(reason, cut.line, name=name, outputs=outputs, line=cut.line, text=cut.text, where=where)


def of_tensor(tensor: torch.Tensor) -> str:
    """A reason that lies in the tensor itself."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return "integer"
    if not tensor.requires_grad:
        return "not_required"
    if not tensor.is_leaf and not tensor.retains_grad:
        return "not_a_leaf"
    return ""


def _of_outputs(walk: Walk) -> str:
    """A reason that lies in what was differentiated."""
    return "no_graph" if all(root is None for root, _ in walk.roots) else ""


def of_edges(ran: AutogradGraph, place: int, name: str) -> Finding:
    """The tensor is a part of the graph: what came, or did not come, along its edges."""
    edges = [edge for edge in ran.edges if edge.target == place]
    silent = next((edge for edge in edges if edge.state == "none"), None)
    if silent is None:
        return finding("not_reached", name=name)
    source = ran.nodes[silent.source]
    return finding("returned_none", source.line, name=name, source=_called(source), argument=silent.name or name)


def _called(node: Node) -> str:
    return node.function or node.name


def finding(reason: str, at: int | None = None, **params: Any) -> Finding:
    """The finding of a reason, such as ``"not_reached"``."""
    return Finding(f"grad_none_{reason}", "note", f"graphs.none.{reason}", params, line=at)
