"""The Graph view: the layout that the static picture draws, with details of every node and edge."""

from __future__ import annotations

from typing import Any

from nbautograd.core.display import plain
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.views.layout import layout
from nbautograd.widgets import parts
from nbautograd.widgets.base import ViewWidget

MOST_DETAILS = 1_500  # nodes whose details are sent
MOST_THUMBNAILS = 60  # nodes and edges whose gradients go with a thumbnail


def graph_state(graph: AutogradGraph) -> dict[str, Any]:
    """The laid-out graph, and what is known of its nodes and edges."""
    few = len(graph.nodes) + len(graph.edges) <= MOST_THUMBNAILS
    return {
        "layout": layout(graph).to_dict(),
        "nodes": [_node(node, few) for node in graph.nodes[:MOST_DETAILS]],
        "edges": [_edge(edge, few) for edge in graph.edges[: 2 * MOST_DETAILS]],
        "order": list(graph.order),
        "notes": list(graph.notes),
        "complete": graph.complete,
    }


def _node(node: Node, thumbnails: bool) -> dict[str, Any]:
    names = ("id", "name", "kind", "label", "scope", "sequence", "freed", "line", "dtype")
    return {
        **{name: getattr(node, name) for name in names},
        "shape": plain(node.shape),
        "saved": parts.values(node.saved),
        "ctx": None if node.ctx is None else parts.ctx(node.ctx),
        "gradient": _gradient(node.gradient, thumbnails),
    }


def _edge(edge: Edge, thumbnails: bool) -> dict[str, Any]:
    names = ("source", "target", "input_nr", "output_nr", "dtype")
    return {
        **{name: getattr(edge, name) for name in names},
        "shape": plain(edge.shape),
        "gradient": _gradient(edge.gradient, thumbnails),
    }


def _gradient(summary: Any, thumbnails: bool) -> dict[str, Any] | None:
    if summary is None:
        return None
    facts = parts.tensor(summary)
    return facts if thumbnails else {k: v for k, v in facts.items() if k != "thumbnail"}


class GraphWidget(ViewWidget):
    """The backward graph: pan, zoom, search, step through backward in the engine's order, open a node."""

    KIND = "graph"

    def make_state(self, value: AutogradGraph) -> dict[str, Any]:
        """Layout and details."""
        return graph_state(value)
