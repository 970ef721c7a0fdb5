"""The picture in words: its title, its description for a screen reader, the note under it."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.views.layout.text import printable, shape_text

NAMED = 12  # nodes named one by one in the description


def title(graph: AutogradGraph) -> str:
    """Return one line naming the graph."""
    names = ", ".join(str(name) for _, name in graph.roots[:4]) + (", …" if len(graph.roots) > 4 else "")
    return printable(messages.text("graphs.title", name=names))


def description(graph: AutogradGraph) -> str:
    """Return the graph in words: how large, then node by node in the order of backward."""
    size = messages.text("graphs.size", nodes=len(graph.nodes), edges=len(graph.edges))
    told = [_node_name(graph.nodes[i]) for i in graph.order[:NAMED]]
    left = len(graph.order) - len(told)
    if left > 0:
        told.append(messages.text("graphs.more", count=left))
    steps = messages.text("graphs.steps", steps=" → ".join(told)) if told else ""
    return printable(f"{size} {steps}".strip())


def _node_name(node: Node) -> str:
    name = node.label or messages.text("graphs.leaf") if node.kind == "leaf" else node.function or node.name
    shape = shape_text(node.shape) if node.kind == "leaf" else ""
    return f"{name} {shape}".strip()


def note(graph: AutogradGraph, drawn: AutogradGraph, lens: str = "") -> str:
    """Return the line under the picture: what is folded, what is missing, under the memory lens what is kept in all."""
    parts = list(map(str, graph.notes))
    if lens == "memory":
        parts.insert(0, messages.text("graphs.kept_in_all", size=formats.size(graph.saved_bytes()[""])))
    if drawn is not graph:
        parts.insert(0, messages.text("graphs.folded", shown=len(drawn.nodes), nodes=len(graph.nodes)))
    return printable(" ".join(parts))
