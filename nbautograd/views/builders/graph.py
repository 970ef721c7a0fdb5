"""A backward graph as a document: its picture, its nodes in the order in which backward runs them, what they keep."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.graphs.folding import fold_repeats
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.views.builders import build
from nbautograd.views.document import (
    Cell,
    Code,
    Document,
    Drawing,
    Fold,
    Paragraph,
    Strong,
    Table,
    paragraph,
    sentences,
)
from nbautograd.views.layout.contents import norm_texts, stale_text
from nbautograd.views.phrases import contents, counted

MAX_NODES = 40
MAX_MODULES = 12
MAX_NAMES = 4  # nodes that one passes its gradients to


@build.register
def graph_document(graph: AutogradGraph) -> Document:
    """Return how large a graph is, its picture, its nodes as a table, what is kept and what is to be noted."""
    if not graph.nodes:
        return sentences([messages.text("views.graph.empty"), *graph.notes])
    head = messages.text("views.graph.headline", size=graph_size(graph))
    return (paragraph(Strong(head)), *graph_body(graph), *sentences(wrong_gradients_told(graph), "faint"))


def wrong_gradients_told(graph: AutogradGraph) -> list[str]:
    """Return what the latest checks of its Functions said is wrong, which a report around it says by itself."""
    return list(dict.fromkeys(str(edge.wrong) for edge in graph.edges if edge.wrong))[:MAX_NAMES]


def graph_body(graph: AutogradGraph) -> Document:
    """Return what there is to see of a graph below its headline."""
    if not graph.nodes:
        return graph_document(graph)
    notes = tuple(map(str, graph.notes)) or (() if graph.complete else (messages.text("views.evidence.incomplete"),))
    header, rows = graph_table(graph)
    named: tuple[tuple[Cell, ...], ...] = tuple((Code(first), *rest) for first, *rest in rows[:MAX_NODES])
    table: Document = (Table(tuple(header), named, messages.text("views.caption.graph")),)
    if len(rows) > MAX_NODES:
        words = messages.text("graphs.more", count=formats.count(len(rows) - MAX_NODES))
        table += (paragraph(words, look="faint"),)
    twin = Fold(messages.text("views.graph.twin"), (*table, *_memory(graph)), strong=False, in_text="body")
    return (Drawing(graph), twin, *sentences(notes, "faint"))


@build.register
def node_document(node: Node) -> Document:
    """Return the name of a node."""
    return (Paragraph((Code(node_name(node)),)),)


def graph_size(graph: AutogradGraph) -> str:
    """Return ``nodes: 3, edges: 2``."""
    sizes = counted("nodes", len(graph.nodes)), counted("edges", len(graph.edges))
    return messages.text("views.comma").join(sizes)


def graph_table(graph: AutogradGraph) -> tuple[list[str], list[list[str]]]:
    """Return the heads of the columns, and a row per node; equal nodes that follow one another are one row.

    Columns: its name, the shape of its gradient, the gradient that flowed, the nodes it passes gradients to; where
    known, how much it keeps for backward, each memory once, and what was changed in place since it was saved.
    """
    header = [messages.text(f"views.column.{c}") for c in ("node", "shapes", "gradient", "goes_to")]
    graph = fold_repeats(graph)
    nodes = _in_order(graph)
    targets: dict[int, list[str]] = {}
    for edge in graph.edges:
        cross = "✗ " if edge.wrong else ""
        targets.setdefault(edge.source, []).append(cross + node_name(graph.nodes[edge.target]))
    rows = [_row(node, targets.get(node.id, [])) for node in nodes]
    for word, column in (("keeps", _keeps(nodes)), ("changed", [_changed(node) for node in nodes])):
        if any(column):
            header.append(messages.text(f"graphs.column.{word}"))
            rows = [[*row, cell] for row, cell in zip(rows, column, strict=True)]
    return header, rows


def node_name(node: Node) -> str:
    """Return a leaf's variable name, else the node's name with its label."""
    if node.kind == "leaf":
        return node.label or str(node.name)
    return f"{node.name} ({node.label})" if node.label else str(node.name)


def _in_order(graph: AutogradGraph) -> list[Node]:
    """Return the nodes in the engine's order; those that the order does not name come last."""
    named = [graph.nodes[k] for k in graph.order]
    listed = set(graph.order)
    return [*named, *(n for n in graph.nodes if n.id not in listed)]


def _row(node: Node, targets: list[str]) -> list[str]:
    shape = "" if node.shape is None else formats.shape(node.shape) or messages.text("views.tensor.scalar")
    gradient = "" if node.gradient is None else contents(node.gradient)
    if node.norms:
        gradient = "; ".join(text for text, _ in norm_texts(node.norms))
    left = len(targets) - MAX_NAMES
    more = [messages.text("views.more", n=left)] if left > 0 else []
    return [node_name(node), shape, gradient, messages.text("views.comma").join([*targets[:MAX_NAMES], *more])]


def _keeps(nodes: Sequence[Node]) -> list[str]:
    """Return how much each node keeps, and the names of what an earlier one keeps too; that is counted there."""
    names = {storage.number: storage.name for node in nodes for storage in node.storages if storage.name}
    counted_before: set[int] = set()
    cells = []
    for node in nodes:
        own = [storage for storage in node.storages if storage.number not in counted_before]
        shared = [names.get(s.number, f"#{s.number}") for s in node.storages if s.number in counted_before]
        counted_before |= {storage.number for storage in own}
        parts = [formats.size(sum(storage.bytes for storage in own))] if own else []
        parts += [messages.text("graphs.shares", names=", ".join(shared[:3]))] if shared else []
        cells.append(", ".join(parts))
    return cells


def _changed(node: Node) -> str:
    """Return ``y: v0 → v1 · line 3 · y.add_(1)``."""
    return "; ".join(dict.fromkeys([" · ".join(filter(None, [stale_text(s), s.by])) for s in node.stale]))


def _memory(graph: AutogradGraph) -> Document:
    """Return what all nodes keep, and what the nodes of each module do, shared memory counted once in each."""
    held = graph.saved_bytes()
    if not (graph.read and held[""]):
        return ()
    head = paragraph(messages.text("graphs.kept_in_all", size=formats.size(held[""])))
    modules = sorted(((size, path) for path, size in held.items() if path), reverse=True)
    if not modules:
        return (head,)
    header = tuple(messages.text(f"graphs.column.{c}") for c in ("module", "keeps"))
    rows: list[tuple[Cell, ...]] = [
        (f"{path} {graph.scopes.get(path, '')}".strip(), formats.size(size)) for size, path in modules[:MAX_MODULES]
    ]
    if len(modules) > MAX_MODULES:
        rows.append((messages.text("graphs.more", count=len(modules) - MAX_MODULES),))
    return (head, Table(header, tuple(rows), right=(1,)))
