"""Graphs as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core.graphs.folding import fold_repeats
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.views import formats
from nbautograd.views.layout.contents import norm_texts, stale_text
from nbautograd.views.tables import table
from nbautograd.views.tensors import contents
from nbautograd.views.words import counted

MOST_NODES = 40
MOST_MODULES = 12


def graph_text(graph: AutogradGraph) -> str:
    """A graph: how large, a line per node or repeat in the engine's order, what is kept, what is to be noted."""
    if not graph.nodes:
        return "\n".join([messages.text("views.graph.empty"), *map(str, graph.notes)])
    header, rows = graph_table(graph)
    lines = [graph_headline(graph), *table(header, rows[:MOST_NODES])]
    if len(rows) > MOST_NODES:
        lines.append(messages.text("views.graph.folded", n=formats.count(len(rows) - MOST_NODES)))
    lines += memory_lines(graph)
    if not graph.complete and not graph.notes:
        lines.append(messages.text("views.graph.incomplete"))
    return "\n".join([*lines, *map(str, graph.notes)])


def graph_headline(graph: AutogradGraph) -> str:
    """``Backward graph: 3 nodes, 2 edges.``"""
    return messages.text("views.graph.headline", **graph_size(graph))


def graph_size(graph: AutogradGraph) -> dict[str, str]:
    """How many nodes and edges, in words."""
    return {"nodes": counted("nodes", len(graph.nodes)), "edges": counted("edges", len(graph.edges))}


def graph_table(graph: AutogradGraph) -> tuple[list[str], list[list[str]]]:
    """The heads of the columns, and a row per node, equal nodes that follow one another in one row.

    Columns: its name, the shape of its gradient, the gradient that flowed, whom it gives gradients to; where known, how
    much it keeps for backward, each memory once, and what was changed in place since it was saved.
    """
    header = [messages.text(f"views.column.{c}") for c in ("node", "shapes", "gradient", "goes_to")]
    graph = fold_repeats(graph)
    nodes = in_order(graph)
    rows = graph_rows(graph)
    for word, column in (("keeps", kept(nodes)), ("changed", [_changed(node) for node in nodes])):
        if any(column):
            header.append(messages.text(f"graphs.column.{word}"))
            rows = [[*row, cell] for row, cell in zip(rows, column, strict=True)]
    return header, rows


def kept(nodes: Sequence[Node]) -> list[str]:
    """Per node how much it keeps, and the names of what an earlier one keeps too; that is counted there."""
    names = {storage.number: storage.name for node in nodes for storage in node.storages if storage.name}
    met: set[int] = set()
    cells = []
    for node in nodes:
        own = [storage for storage in node.storages if storage.number not in met]
        shared = [names.get(s.number, f"#{s.number}") for s in node.storages if s.number in met]
        met |= {storage.number for storage in own}
        parts = [formats.size(sum(storage.bytes for storage in own))] if own else []
        parts += [messages.text("graphs.shares", names=", ".join(shared[:3]))] if shared else []
        cells.append(", ".join(parts))
    return cells


def _changed(node: Node) -> str:
    """``y: v0 → v1 · line 3 · y.add_(1)``."""
    return "; ".join(dict.fromkeys([" · ".join(filter(None, [stale_text(s), s.by])) for s in node.stale]))


def memory_lines(graph: AutogradGraph) -> list[str]:
    """What all nodes keep, and what the nodes of each module do, shared memory counted once in each."""
    held = graph.saved_bytes()
    if not held[""]:
        return []
    modules = sorted(((size, path) for path, size in held.items() if path), reverse=True)
    lines = [messages.text("graphs.kept_in_all", size=formats.size(held[""]))]
    if modules:
        named = [[f"{path} {graph.scopes.get(path, '')}".strip(), formats.size(size)] for size, path in modules]
        lines += table(
            [messages.text("graphs.column.module"), messages.text("graphs.column.keeps")], named[:MOST_MODULES]
        )
        if len(named) > MOST_MODULES:
            lines.append(messages.text("graphs.more", count=len(named) - MOST_MODULES))
    return lines


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
        return node.label or str(node.name)
    return f"{node.name} ({node.label})" if node.label else str(node.name)


def _row(node: Node, gives: list[str]) -> list[str]:
    shape = "" if node.shape is None else formats.shape(node.shape) or messages.text("views.tensor.scalar")
    gradient = "" if node.gradient is None else contents(node.gradient)
    if node.norms:
        gradient = "; ".join(text for text, _ in norm_texts(node.norms))
    more = [messages.text("views.more", n=len(gives) - 4)] if len(gives) > 4 else []
    return [node_name(node), shape, gradient, messages.text("views.comma").join([*gives[:4], *more])]
