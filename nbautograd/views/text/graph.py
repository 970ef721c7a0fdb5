"""Graphs as plain text."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.views import numbers
from nbautograd.views.tables import table
from nbautograd.views.tensors import contents
from nbautograd.views.words import counted

MOST_NODES = 40


def graph_text(graph: AutogradGraph) -> str:
    """A graph: how large, then a line per node in the engine's order."""
    if not graph.nodes:
        return "\n".join([messages.text("views.graph.empty"), *graph.notes])
    head = graph_headline(graph)
    header = [messages.text(f"views.column.{c}") for c in ("node", "shapes", "gradient", "goes_to")]
    rows = graph_rows(graph)
    lines = [head, *table(header, rows[:MOST_NODES])]
    if len(rows) > MOST_NODES:
        lines.append(messages.text("views.graph.folded", n=numbers.count(len(rows) - MOST_NODES)))
    if not graph.complete and not graph.notes:
        lines.append(messages.text("views.graph.incomplete"))
    return "\n".join([*lines, *graph.notes])


def graph_headline(graph: AutogradGraph) -> str:
    """``Backward graph: 3 nodes, 2 edges.``"""
    return messages.text("views.graph.headline", **graph_size(graph))


def graph_size(graph: AutogradGraph) -> dict[str, str]:
    """How many nodes and edges, in words."""
    return {"nodes": counted("nodes", len(graph.nodes)), "edges": counted("edges", len(graph.edges))}


def graph_rows(graph: AutogradGraph) -> list[list[str]]:
    """Per node: its name, the shape of its gradient, the gradient that flowed, whom it gives gradients to."""
    gives: dict[int, list[str]] = {}
    for edge in graph.edges:
        gives.setdefault(edge.source, []).append(node_name(graph.nodes[edge.target]))
    return [_row(node, gives.get(node.id, [])) for node in in_order(graph)]


def in_order(graph: AutogradGraph) -> list[Node]:
    """Nodes in the engine's order; those that the order does not name come last."""
    named = [graph.nodes[k] for k in graph.order]
    listed = set(graph.order)
    return [*named, *(n for n in graph.nodes if n.id not in listed)]


def node_name(node: Node) -> str:
    """A leaf's variable name, else the node's name with its label."""
    if node.kind == "leaf":
        return node.label or node.name
    return f"{node.name} ({node.label})" if node.label else node.name


def _row(node: Node, gives: list[str]) -> list[str]:
    shape = "" if node.shape is None else numbers.shape(node.shape) or messages.text("views.tensor.scalar")
    gradient = "" if node.gradient is None else contents(node.gradient)
    more = [messages.text("views.more", n=len(gives) - 4)] if len(gives) > 4 else []
    return [node_name(node), shape, gradient, messages.text("views.comma").join([*gives[:4], *more])]
