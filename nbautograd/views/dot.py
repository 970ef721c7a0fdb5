"""The backward graph as a ``graphviz.Digraph``, for whoever has ``dot``: the boxes of the picture, laid out by it."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.views import theme
from nbautograd.views.layout.build import title
from nbautograd.views.layout.contents import (
    Content,
    commonest_dtype,
    edge_text,
    fan_in,
    ghost_content,
    ghost_word,
    leaf_content,
    op_content,
)
from nbautograd.views.layout.functions import function_content
from nbautograd.views.layout.text import printable, shape_text

BAD = theme.BAD.light
FONT = {"fontname": "Helvetica", "fontcolor": theme.FAINT.light}
NODE = {**FONT, "shape": "box", "style": "filled", "fontsize": "11", "fontcolor": theme.INK.light}
EDGE = {**FONT, "color": theme.GROUP_LINE.light, "fontsize": "9"}
PART = {**FONT, "style": "rounded", "color": theme.GROUP_LINE.light, "fontsize": "10"}
TIE = {
    "style": "dotted",
    "color": theme.TIE.light,
    "fontcolor": theme.TIE.light,
    "constraint": "false",
    "arrowhead": "none",
}
LOOKS: dict[str, dict[str, str]] = {
    "op": {"fillcolor": theme.OP.light, "color": theme.OP_LINE.light},
    "function": {"fillcolor": theme.FUNCTION.light, "color": theme.FUNCTION_LINE.light, "penwidth": "1.6"},
    "leaf": {"fillcolor": theme.LEAF.light, "color": theme.LEAF_LINE.light, "style": "filled,rounded"},
    "output": {"fillcolor": theme.OUTPUT.light, "color": theme.OUTPUT_LINE.light, "style": "filled,rounded"},
}


def dot(graph: AutogradGraph) -> Any:
    """Describe a backward graph in the DOT language: the words of the SVG in full detail, every name escaped.

    Args:
        graph: the graph; every node and every edge is kept.

    Returns:
        A ``graphviz.Digraph``; making it needs no program, rendering it needs ``dot``.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> "MulBackward0" in nbautograd.graph((a * a).sum()).to_dot().source
        True
    """
    import graphviz

    notes = "".join(f"{_escaped(str(line))}\\l" for line in graph.notes)
    look = {"tooltip": graphviz.escape(title(graph)), "fontname": "Helvetica", "fontsize": "10"}
    look |= {"label": notes, "labeljust": "l"} if notes else {}
    made = graphviz.Digraph("backward", node_attr=NODE, edge_attr=EDGE, graph_attr=look)
    if graph.first is None:
        _write(made, graph)
        return made
    for prefix, part, words in (("f", graph.first, "graphs.first_graph"), ("", graph, "graphs.second_graph")):
        named = {"label": _escaped(messages.text(words)), **PART}
        with made.subgraph(name=f"cluster_{prefix or 's'}", graph_attr=named) as inside:
            _write(inside, part, prefix)
    for node in graph.nodes:
        if node.origin is not None and node.origin.node < len(graph.first.nodes):
            word = "graphs.legend.same" if node.origin.same else "graphs.legend.tie"
            made.edge(f"n{node.id}", f"fn{node.origin.node}", graphviz.escape(messages.text(word)), **TIE)
    return made


def _write(made: Any, graph: AutogradGraph, prefix: str = "") -> None:
    """Write roots, nodes, edges and what no gradient gets to; the names of the nodes begin with ``prefix``."""
    import graphviz

    dtype, fans = commonest_dtype(graph), fan_in(graph)
    for position, (root, name) in enumerate(graph.roots):
        made.node(f"{prefix}o{position}", graphviz.escape(printable(str(name))), **LOOKS["output"])
        if root is not None:
            slot, slots = (*graph.slots, *[0] * len(graph.roots))[position], graph.nodes[root].gradients
            shape = shape_text(slots[slot].shape) if slot < len(slots) else ""
            made.edge(f"{prefix}o{position}", f"{prefix}n{root}", graphviz.escape(shape))
    for node in graph.nodes:
        look = {**LOOKS[node.kind], **({"color": BAD, "penwidth": "1.8"} if node.stale or node.first_bad else {})}
        made.node(f"{prefix}n{node.id}", _label(_content(node, fans.get(node.id, 0), dtype)), **look)
    for edge in graph.edges:
        text, style = edge_text(edge, dtype)
        look = {"color": BAD, "fontcolor": BAD} if style in ("bad", "wrong") else {"style": "dashed"} if style else {}
        made.edge(f"{prefix}n{edge.source}", f"{prefix}n{edge.target}", graphviz.escape(text), **look)
    for position, ghost in enumerate(graph.ghosts):  # beside what used its values, else beside the first root
        user = "o0" if ghost.node is None else f"n{ghost.node}"
        tip = graphviz.escape(printable(ghost.name))
        made.node(f"{prefix}x{position}", _label(ghost_content(ghost)), tooltip=tip, style="dashed,rounded")
        made.edge(f"{prefix}{user}", f"{prefix}x{position}", graphviz.escape(ghost_word(ghost)), style="dashed")


def _content(node: Node, fan: int, dtype: str | None) -> Content:
    if node.kind == "leaf":
        return leaf_content(node, 1, fan, dtype)
    return function_content(node, fan) if node.kind == "function" else op_content(node, fan, dtype)


def _label(content: Content) -> Any:
    """Return the lines of a box, left-aligned, with DOT's own escapes only at their ends."""
    import graphviz

    lines = [" ".join(line.text for line in row) for _, row in groupby(content.lines, key=lambda line: line.y)]
    return graphviz.nohtml(_escaped(lines[0]) if len(lines) == 1 else "".join(f"{_escaped(t)}\\l" for t in lines))


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\")
