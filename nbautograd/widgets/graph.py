"""The Graph view: the layout that the static picture draws, with details of every node and edge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nbautograd import messages
from nbautograd.core.display import plain
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.core.recording.call import Call
from nbautograd.errors import InputError
from nbautograd.views.builders.calls import ctx_column, values_column
from nbautograd.views.document import Document
from nbautograd.views.layout.columns import WIDE
from nbautograd.views.tensors import contents
from nbautograd.views.to_json import array, matrix
from nbautograd.widgets import graph_why
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.graph_lenses import lens_state
from nbautograd.widgets.graph_links import calls_of, node_calls
from nbautograd.widgets.graph_pictures import first_picture, picture
from nbautograd.widgets.states import EdgeState, GradientState, GraphState, NodesAnswer, NodeState

MOST_DETAILS = 1_500  # nodes whose details are sent at first; the page asks for those of the others
MOST_ASKED = 60  # nodes whose details go in one answer
MOST_THUMBNAILS = 60  # nodes and edges whose gradients go with a thumbnail


def graph_state(graph: AutogradGraph, calls: Iterable[Call] = ()) -> GraphState:
    """The laid-out graph, and what is known of its nodes and edges.

    Args:
        graph: the graph.
        calls: the recorded calls of the Function that it is shown with.
    """
    few = len(graph.nodes) + len(graph.edges) <= MOST_THUMBNAILS
    return GraphState(
        **vars(first_picture(graph)),
        total=len(graph.nodes),
        widest=WIDE,
        nodes=[_node(node, few) for node in graph.nodes[:MOST_DETAILS]],
        edges=[_edge(edge, few) for edge in graph.edges[: 2 * MOST_DETAILS]],
        whole=_whole(graph),
        notes=list(map(str, graph.notes)),
        complete=graph.complete,
        lenses=lens_state(graph),
        names=graph_why.names(graph),
        calls=node_calls(graph, calls),
    )


def _whole(graph: AutogradGraph) -> int:
    """Count the nodes that come with all their edges, from the first one on."""
    left = (min(edge.source, edge.target) for edge in graph.edges[2 * MOST_DETAILS :])
    return min(len(graph.nodes), MOST_DETAILS, *left)


def _node(node: Node, thumbnails: bool) -> NodeState:
    return NodeState(
        id=node.id,
        name=str(node.name),
        kind=node.kind,
        label=node.label,
        scope=node.scope,
        sequence=node.sequence,
        freed=node.freed,
        line=node.line,
        dtype=node.dtype,
        shape=node.shape,
        saved=_saved(node),
        gradient=_gradient(node.gradient, thumbnails),
    )


def _saved(node: Node) -> Document:
    """Return what a node keeps: of a custom Function its ctx."""
    if node.ctx is not None:
        return ctx_column(node.ctx)
    return values_column(messages.text("views.call.saved"), node.saved) if node.saved else ()


def _edge(edge: Edge, thumbnails: bool) -> EdgeState:
    return EdgeState(
        source=edge.source,
        target=edge.target,
        input_nr=edge.input_nr,
        output_nr=edge.output_nr,
        dtype=edge.dtype,
        shape=edge.shape,
        gradient=_gradient(edge.gradient, thumbnails),
    )


def _gradient(summary: Any, thumbnails: bool) -> GradientState | None:
    if summary is None:
        return None
    drawn = thumbnails and summary.thumbnail is not None and summary.thumbnail.size
    return GradientState(
        dtype=summary.dtype,
        shape=summary.shape,
        norm=plain(summary.norm),
        contents=contents(summary),
        thumbnail=array(matrix(summary.thumbnail), "float32") if drawn else None,
        exact=bool(drawn) and summary.thumbnail.size == summary.numel,
        sampled=bool(summary.sampled),
    )


def graph_questions(graph: AutogradGraph | None) -> dict[str, Question]:
    """Answer what the page may ask about a graph: another picture of it, details of nodes, calls of a Function."""
    if graph is None:
        return {}
    return {
        "picture": lambda question: picture(graph, question),
        "nodes": lambda question: _details(graph, question),
        "function": lambda question: calls_of(graph, question),
    }


def _details(graph: AutogradGraph, question: Mapping[str, Any]) -> NodesAnswer:
    """Some nodes, the edges at them and the nodes at their far ends; their gradients without thumbnails."""
    asked = question.get("nodes")
    if not isinstance(asked, list) or not all(type(i) is int and 0 <= i < len(graph.nodes) for i in asked):
        raise InputError("widgets.no_box")
    wanted = set(asked[:MOST_ASKED])
    edges = [edge for edge in graph.edges if edge.source in wanted or edge.target in wanted][: 4 * MOST_ASKED]
    near = wanted | {end for edge in edges for end in (edge.source, edge.target)}
    nodes = [_node(graph.nodes[i], False) for i in sorted(near)]
    return NodesAnswer(nodes=nodes, edges=[_edge(edge, False) for edge in edges])


class GraphWidget(ViewWidget):
    """The backward graph: pan, zoom, search, step through backward in the engine's order, open a node."""

    KIND = "graph"

    def make_state(self, value: AutogradGraph) -> GraphState:
        """Layout and details."""
        return graph_state(value)

    def questions(self) -> dict[str, Question]:
        """The page may open scopes, ask why a gradient is missing, and ask for details."""
        return graph_questions(self.value)
