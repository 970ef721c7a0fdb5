"""Lenses of the graph view: memory kept per node and scope, what was changed in place, gradient norms."""

from __future__ import annotations

import numpy as np

from nbautograd.core.display import plain
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.views.to_json import array
from nbautograd.widgets.states import KeptMemory, LensState, StaleState

MOST_SCOPES = 8  # modules whose memory is told
MOST_STALE = 20
NO_GRADIENT = -1.0  # in place of a norm; a gradient with NaN or Inf is NaN


def lens_state(graph: AutogradGraph) -> LensState:
    """Return the facts behind the lenses."""
    return LensState(
        kept=_kept(graph),
        stale=[_stale(graph, node, i) for node in graph.nodes for i in range(len(node.stale))][:MOST_STALE],
        norms=array(list(map(_norm, graph.edges)), "float32") if any(e.gradient for e in graph.edges) else None,
        bad=first_bad(graph),
    )


def first_bad(graph: AutogradGraph) -> int | None:
    """The first node, in the engine's order, that sends NaN or Inf on."""
    bad = {edge.source for edge in graph.edges if _norm(edge) != _norm(edge)}
    return next((i for i in (graph.ran or graph.order) if i in bad), None) if bad else None


def _kept(graph: AutogradGraph) -> KeptMemory | None:
    """List the storages of each node, as (number, bytes), and the totals of the modules, shared memory once."""
    nodes = {node.id: [s[:2] for s in node.storages] for node in graph.nodes if node.storages}
    if not nodes:
        return None
    sizes = graph.saved_bytes()
    scopes = sorted(((size, scope) for scope, size in sizes.items() if scope and size), reverse=True)
    holders = [s.number for node in graph.nodes for s in node.storages]
    shared = {s.number: s.bytes for node in graph.nodes for s in node.storages if holders.count(s.number) > 1}
    told = [(scope, size) for size, scope in scopes[:MOST_SCOPES]]
    return KeptMemory(nodes=nodes, scopes=told, all=sizes[""], shared=sum(shared.values()))


def _stale(graph: AutogradGraph, node: Node, position: int) -> StaleState:
    """One saved tensor that was changed since, with the node of the op that changed it, where there is exactly one."""
    stale = node.stale[position]
    makers = [n.id for n in graph.nodes if n.id != node.id and n.label and n.label == stale.name]
    named = [n.id for n in graph.nodes if n.name == stale.by]
    maker = next((ids[0] for ids in (named, makers) if len(ids) == 1), None)
    return StaleState(
        node=node.id,
        of=node.function or str(node.name),
        name=stale.name or stale.slot,
        maker=maker,
        saved=stale.saved,
        now=stale.now,
        by=stale.by,
        line=stale.line,
    )


def _norm(edge: Edge) -> float:
    gradient = edge.gradient
    if gradient is None:
        return NO_GRADIENT
    if gradient.nan or gradient.inf:
        return float(np.nan)
    norm = plain(gradient.norm)
    return float(norm) if isinstance(norm, (int, float)) else NO_GRADIENT
