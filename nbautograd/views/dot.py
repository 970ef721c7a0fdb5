"""The backward graph as a ``graphviz.Digraph``, for whoever has ``dot``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nbautograd import messages
from nbautograd.core.graphs.folding import contract
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Ghost, Node
from nbautograd.core.graphs.repeats import find_repeats
from nbautograd.core.graphs.segments import Segment, inner_order
from nbautograd.views import theme
from nbautograd.views.layout.build import title
from nbautograd.views.layout.contents import (
    commonest_dtype,
    edge_text,
    fan_in,
    ghost_word,
    lens_texts,
    norm_text,
    sum_text,
)
from nbautograd.views.layout.functions import value_texts
from nbautograd.views.layout.text import printable, shape_text

BAD = theme.BAD.light
FONT = {"fontname": "Helvetica", "fontcolor": theme.FAINT.light}
NODE = {**FONT, "shape": "box", "style": "filled", "fontsize": "11", "fontcolor": theme.INK.light}
EDGE = {**FONT, "color": theme.GROUP_LINE.light, "fontsize": "9"}
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
    """Describe a backward graph in the DOT language: the same words as in the SVG, every name escaped.

    Repeats are clusters with their names and the gradient norms at their parts; tensors that no gradient gets to, and
    for a derivative's graph the first graph, are there as in the picture.

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

    made = graphviz.Digraph("backward", node_attr=NODE, edge_attr=EDGE, graph_attr=_page(graph))
    if graph.first is None:
        _Writer(made, graph).write()
        return made
    for prefix, part, words in (("f", graph.first, "graphs.first_graph"), ("", graph, "graphs.second_graph")):
        with made.subgraph(name=f"cluster_{prefix or 's'}", graph_attr=_cluster(messages.text(words))) as inside:
            _Writer(inside, part, prefix).write()
    for node in graph.nodes:
        if node.origin is not None and node.origin.node < len(graph.first.nodes):
            word = "graphs.legend.same" if node.origin.same else "graphs.legend.tie"
            made.edge(f"n{node.id}", f"fn{node.origin.node}", graphviz.escape(messages.text(word)), **TIE)
    return made


def _page(graph: AutogradGraph) -> dict[str, str]:
    import graphviz

    note = "".join(f"{_escaped(str(line))}\\l" for line in graph.notes)
    attributes = {"tooltip": graphviz.escape(title(graph)), "fontname": "Helvetica", "fontsize": "10"}
    return {**attributes, "label": note, "labeljust": "l"} if note else attributes


def _cluster(label: str) -> dict[str, str]:
    look = {**FONT, "style": "rounded", "color": theme.GROUP_LINE.light, "fontsize": "10"}
    return {"label": _escaped(label), **look}


class _Writer:
    """Writes one graph into a Digraph.

    Args:
        made: the Digraph, or a cluster in one.
        graph: the graph.
        prefix: what the names of its nodes begin with.
    """

    def __init__(self, made: Any, graph: AutogradGraph, prefix: str = "") -> None:
        self._digraph = made
        self._graph = graph
        self._prefix = prefix
        self._dtype = commonest_dtype(graph)

    def write(self) -> None:
        """Write roots, repeats as clusters, nodes, edges, ghosts."""
        self._roots()
        runs = find_repeats(self._graph)
        inside = {i for run in runs for i in run.nodes}
        fans = fan_in(self._graph)
        singles = [Segment("", [i]) for i in inner_order(self._graph) if i not in inside]
        boxes = contract(self._graph, [*runs, *singles]).nodes if runs else ()
        for run, box in zip(runs, boxes, strict=False):  # in the same order, the repeats first
            self._repeat(run, box, fans)
        for node in self._graph.nodes:
            if node.id not in inside:
                self._node(self._digraph, node, fans.get(node.id, 0))
        for edge in self._graph.edges:
            self._edge(edge)
        for position, ghost in enumerate(self._graph.ghosts):
            self._ghost(position, ghost)

    def _roots(self) -> None:
        import graphviz

        for position, (root, name) in enumerate(self._graph.roots):
            self._digraph.node(self._name(f"o{position}"), graphviz.escape(printable(str(name))), **LOOKS["output"])
            if root is not None:
                entry = graphviz.escape(_entry(self._graph, position))
                self._digraph.edge(self._name(f"o{position}"), self._name(f"n{root}"), entry)

    def _repeat(self, run: Segment, box: Node, fans: Mapping[int, int]) -> None:
        words = [str(box.name), *[text for text, _ in lens_texts(box, "memory")]]
        name = f"cluster_{self._prefix}r{run.nodes[0]}"
        with self._digraph.subgraph(name=name, graph_attr=_cluster(" · ".join(words))) as inside:
            for i in run.nodes:
                self._node(inside, self._graph.nodes[i], fans.get(i, 0))

    def _node(self, where: Any, node: Node, fan: int) -> None:
        import graphviz

        look = {**LOOKS[node.kind], **({"color": BAD, "penwidth": "1.8"} if node.stale or node.first_bad else {})}
        where.node(self._name(f"n{node.id}"), graphviz.nohtml(_label(node, fan, self._dtype)), **look)

    def _edge(self, edge: Edge) -> None:
        import graphviz

        text, style = edge_text(edge, self._dtype)
        look = {"color": BAD, "fontcolor": BAD} if style == "bad" else {"style": "dashed"} if style else {}
        ends = self._name(f"n{edge.source}"), self._name(f"n{edge.target}")
        self._digraph.edge(*ends, graphviz.escape(text), **look)

    def _ghost(self, position: int, ghost: Ghost) -> None:
        """Draw a tensor that no gradient gets to: dashed, beside what used its values, else beside the first root."""
        import graphviz

        key = self._name(f"x{position}")
        user = self._name("o0" if ghost.node is None else f"n{ghost.node}")
        tip = printable(ghost.name)
        label = _escaped(f"{ghost.name} {shape_text(ghost.shape)}".strip())
        self._digraph.node(key, graphviz.nohtml(label), tooltip=graphviz.escape(tip), style="dashed,rounded")
        self._digraph.edge(user, key, graphviz.escape(ghost_word(ghost)), style="dashed")

    def _name(self, key: str) -> str:
        return self._prefix + key


def _entry(graph: AutogradGraph, position: int) -> str:
    root = graph.roots[position][0]
    slot = graph.slots[position] if position < len(graph.slots) else 0
    slots = () if root is None else graph.nodes[root].gradients
    return shape_text(slots[slot].shape) if slot < len(slots) else ""


def _label(node: Node, fan: int, dtype: str | None) -> str:
    """Return the node's lines, left-aligned, with DOT's own escapes only at their ends."""
    if node.kind == "function":
        lines = _function_lines(node)
    elif node.kind == "leaf":
        other = f" {node.dtype}" if node.dtype != dtype and node.dtype else ""
        lines = [f"{node.label or messages.text('graphs.leaf')} {shape_text(node.shape)}{other}".strip()]
    else:
        lines = [f"{node.label} = {node.name}" if node.label and not node.outputs else str(node.name)]
    if fan > 1:
        lines.append(sum_text(node, fan))
    elif node.gradient is not None:
        lines.append(norm_text(node.gradient))
    lines += [text for text, _ in lens_texts(node, "memory")]
    if node.kind == "op" and node.line is not None:
        lines[0] += f" · {messages.text('graphs.line', line=node.line)}"
    if len(lines) == 1:
        return _escaped(lines[0])
    return "".join(f"{_escaped(str(line))}\\l" for line in lines)


def _function_lines(node: Node) -> list[str]:
    line = "" if node.line is None else f" · {messages.text('graphs.line', line=node.line)}"
    lines = [f"{node.function or node.name}{line}"]
    ctx = node.ctx
    if ctx is None:
        return lines
    if ctx.saved_tensors or node.freed:
        lines.append(f"saved_tensors · {messages.text('graphs.freed_word')}" if node.freed else "saved_tensors")
        lines += ["   " + " ".join((str(value.name), *value_texts(value))).rstrip() for value in ctx.saved_tensors]
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
