"""The backward graph as a ``graphviz.Digraph``, for whoever has ``dot``."""

from __future__ import annotations

from typing import Any

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.views.layout.contents import commonest_dtype, edge_text, fan_in, sum_text
from nbautograd.views.layout.functions import value_texts
from nbautograd.views.layout.text import printable, shape_text
from nbautograd.views.layout.words import title

LOOKS: dict[str, dict[str, str]] = {
    "op": {"fillcolor": "#ffffff", "color": "#8d95a3"},
    "function": {"fillcolor": "#e9edff", "color": "#4a5fc1", "penwidth": "1.6"},
    "leaf": {"fillcolor": "#e3f3e6", "color": "#3f8a50", "style": "filled,rounded"},
    "output": {"fillcolor": "#fdf0d8", "color": "#a9741a", "style": "filled,rounded"},
}


def dot(graph: AutogradGraph) -> Any:
    """Describe a backward graph in the DOT language: the same words as in the SVG, every name escaped.

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

    made = graphviz.Digraph(
        "backward",
        node_attr={
            "shape": "box",
            "style": "filled",
            "fontname": "Helvetica",
            "fontsize": "11",
            "fontcolor": "#1b1f27",
        },
        edge_attr={"color": "#697281", "fontname": "Helvetica", "fontsize": "9", "fontcolor": "#4a5160"},
        graph_attr={"tooltip": graphviz.escape(title(graph))},
    )
    dtype = commonest_dtype(graph)
    fans = fan_in(graph)
    for position, (root, name) in enumerate(graph.roots):
        made.node(f"o{position}", graphviz.escape(printable(name)), **LOOKS["output"])
        if root is not None:
            made.edge(f"o{position}", f"n{root}", graphviz.escape(_entry(graph, position)))
    for node in graph.nodes:
        made.node(f"n{node.id}", graphviz.nohtml(_label(node, fans.get(node.id, 0), dtype)), **LOOKS[node.kind])
    for edge in graph.edges:
        text, style = edge_text(edge, dtype)
        look = {"color": "#c0262d"} if style == "bad" else {"style": "dashed"} if style else {}
        made.edge(f"n{edge.source}", f"n{edge.target}", graphviz.escape(text), **look)
    return made


def _entry(graph: AutogradGraph, position: int) -> str:
    root = graph.roots[position][0]
    slot = graph.slots[position] if position < len(graph.slots) else 0
    slots = () if root is None else graph.nodes[root].gradients
    return shape_text(slots[slot].shape) if slot < len(slots) else ""


def _label(node: Node, fan: int, dtype: str | None) -> str:
    """The node's lines, left-aligned, with DOT's own escapes only at their ends."""
    if node.kind == "function":
        lines = _function_lines(node)
    elif node.kind == "leaf":
        other = f" {node.dtype}" if node.dtype != dtype and node.dtype else ""
        lines = [f"{node.label or messages.text('graphs.leaf')} {shape_text(node.shape)}{other}".strip()]
    else:
        lines = [f"{node.label} = {node.name}" if node.label and not node.outputs else node.name]
    if fan > 1:
        lines.append(sum_text(node, fan))
    if len(lines) == 1:
        return _escaped(lines[0])
    return "".join(f"{_escaped(line)}\\l" for line in lines)


def _function_lines(node: Node) -> list[str]:
    line = "" if node.line is None else f" · {messages.text('graphs.line', line=node.line)}"
    lines = [f"{node.function or node.name}{line}"]
    ctx = node.ctx
    if ctx is None:
        return lines
    if ctx.saved_tensors or node.freed:
        lines.append(f"saved_tensors · {messages.text('graphs.freed_word')}" if node.freed else "saved_tensors")
        lines += ["   " + " ".join((value.name, *value_texts(value))).rstrip() for value in ctx.saved_tensors]
    if ctx.attributes:
        lines.append("ctx")
        lines += ["   " + " ".join((name, *value_texts(value))).rstrip() for name, value in ctx.attributes.items()]
    if ctx.needs_input_grad:
        names = [node.inputs[i] if i < len(node.inputs) else str(i) for i in range(len(ctx.needs_input_grad))]
        flags = zip(names, ctx.needs_input_grad, strict=True)
        lines.append("needs_input_grad: " + " · ".join(f"{name} {'✓' if need else '✗'}" for name, need in flags))
    return lines


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\")
