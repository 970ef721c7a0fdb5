"""The Graph view: the layout that the static picture draws, with details of every node and edge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbautograd.core.display import plain
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.errors import InputError
from nbautograd.views.layout import layout
from nbautograd.widgets import parts
from nbautograd.widgets.base import Buffers, Question, ViewWidget
from nbautograd.widgets.graph_scopes import opened_layout

MOST_DETAILS = 1_500  # nodes whose details are sent at first; the page asks for those of the others
MOST_ASKED = 60  # nodes whose details go in one answer
MOST_OPENED = 1_000  # boxes opened at once
MOST_DRAWN = 30_000  # nodes that are laid out one by one
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


def graph_questions(graph: AutogradGraph | None) -> dict[str, Question]:
    """What the page may ask about a graph: scopes opened, and details of nodes."""
    if graph is None:
        return {}
    return {"unfold": lambda question: _unfold(graph, question), "nodes": lambda question: _details(graph, question)}


def _unfold(graph: AutogradGraph, question: Mapping[str, Any]) -> tuple[dict[str, Any], Buffers]:
    """The layout with some boxes opened, or with every node in a box of its own."""
    opened = question.get("opened")
    if opened == "all" and len(graph.nodes) <= MOST_DRAWN:
        return {"layout": layout(graph, boxes=None).to_dict()}, []
    if not isinstance(opened, list) or len(opened) > MOST_OPENED or not all(isinstance(key, str) for key in opened):
        raise InputError("widgets.no_box")
    return {"layout": opened_layout(graph, opened).to_dict()}, []


def _details(graph: AutogradGraph, question: Mapping[str, Any]) -> tuple[dict[str, Any], Buffers]:
    """Some nodes, the edges at them and the nodes at their far ends, without thumbnails."""
    asked = question.get("nodes")
    if not isinstance(asked, list) or not all(type(i) is int and 0 <= i < len(graph.nodes) for i in asked):
        raise InputError("widgets.no_box")
    wanted = set(asked[:MOST_ASKED])
    edges = [edge for edge in graph.edges if edge.source in wanted or edge.target in wanted][: 4 * MOST_ASKED]
    near = wanted | {end for edge in edges for end in (edge.source, edge.target)}
    nodes = [_without_thumbnails(_node(graph.nodes[i], False)) for i in sorted(near)]
    return {"nodes": nodes, "edges": [_edge(edge, False) for edge in edges]}, []


def _without_thumbnails(state: Any) -> Any:
    """State that goes as mere JSON."""
    if isinstance(state, dict):
        return {k: _without_thumbnails(v) for k, v in state.items() if k != "thumbnail"}
    return [_without_thumbnails(v) for v in state] if isinstance(state, list) else state


class GraphWidget(ViewWidget):
    """The backward graph: pan, zoom, search, step through backward in the engine's order, open a node."""

    KIND = "graph"

    def make_state(self, value: AutogradGraph) -> dict[str, Any]:
        """Layout and details."""
        return graph_state(value)

    def questions(self) -> dict[str, Question]:
        """The page may open scopes and ask for details."""
        return graph_questions(self.value)
