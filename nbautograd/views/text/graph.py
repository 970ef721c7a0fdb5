"""Graphs and comparisons as plain text."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.comparison import Comparison
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


def comparison_text(comparison: Comparison) -> str:
    """A comparison: one sentence, then a line per quantity."""
    return "\n".join(
        [comparison_headline(comparison), *table(["", *comparison.names, ""], comparison_rows(comparison))]
    )


def comparison_headline(comparison: Comparison) -> str:
    """``f and mul agree.``"""
    first, second = comparison.names
    return messages.text(f"views.compare.{'agree' if comparison.agree else 'differ'}", first=first, second=second)


def comparison_rows(comparison: Comparison) -> list[list[str]]:
    """Quantity, the Function's, the reference's, the largest difference."""
    rows = []
    for k, pair in enumerate(comparison.outputs):
        rows.append(
            [messages.text("views.compare.output", index=k), *_pair(pair), _at(comparison.output_differences, k)]
        )
    for k, pair in enumerate(comparison.gradients):
        name = comparison.input_names[k] if k < len(comparison.input_names) else str(k)
        title = messages.text("views.compare.gradient", name=name)
        rows.append([title, *_pair(pair), _at(comparison.gradient_differences, k)])
    rows.append([messages.text("views.compare.saved"), *(numbers.size(b) for b in comparison.saved_bytes), ""])
    rows.append(
        [messages.text("views.compare.time"), *(f"{numbers.milliseconds(s)} ms" for s in comparison.seconds), ""]
    )
    if comparison.graphs is not None:
        rows.append([messages.text("views.compare.nodes"), *(str(len(g.nodes)) for g in comparison.graphs), ""])
    return rows


def _pair(pair: tuple[object, object]) -> list[str]:
    from nbautograd.core.values import Value

    return [contents(v.tensor) if isinstance(v, Value) and v.tensor else str(getattr(v, "repr", v)) for v in pair]


def _at(differences: tuple[float, ...], k: int) -> str:
    if k >= len(differences):
        return ""
    return f"{messages.text('views.compare.difference')} {numbers.error(differences[k])}"
