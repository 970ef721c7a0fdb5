"""Opening and folding scopes of a drawn graph: what is drawn as one box, opened one level; never a cycle.

Every box stands for nodes that follow one another in the engine's order, and so do the parts it is opened into.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby

from nbautograd.core.graphs.folding import Stretch, contract, fold_to
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views.layout import Layout, layout

BOXES = 300  # boxes to begin with, as in the static picture
PART = 40  # nodes of one part, when what is opened has no modules inside


def opened_layout(graph: AutogradGraph, opened: Collection[str]) -> Layout:
    """The layout of a graph with some of its folded boxes opened.

    Args:
        graph: the whole graph.
        opened: keys of the boxes that are opened, such as ``"g12"``; keys that nothing has are ignored.
    """
    drawn = fold_to(graph, BOXES)
    if drawn is graph or not opened:
        return layout(graph, boxes=BOXES)
    stretches: list[Stretch] = []
    for position in drawn.order:
        node = drawn.nodes[position]
        inner = [i for i in node.members if graph.nodes[i].kind != "leaf"]
        if inner:
            stretches += _opened(graph, (node.scope if len(node.members) > 1 else "", inner), opened)
    return layout(contract(graph, stretches), boxes=None)


def _opened(graph: AutogradGraph, stretch: Stretch, opened: Collection[str]) -> list[Stretch]:
    """A stretch as it is, or its parts when it is opened, those opened in turn.

    A part may begin with the same node and so have the same key; a key opens as often as it is given.
    """
    key = f"g{stretch[1][0]}"
    if len(stretch[1]) < 2 or key not in opened:
        return [stretch]
    rest = list(opened)
    rest.remove(key)
    return [inner for part in _parts(graph, *stretch) for inner in _opened(graph, part, rest)]


def _parts(graph: AutogradGraph, path: str, nodes: list[int]) -> list[Stretch]:
    """The calls of the modules one level deeper; what is outside of them single; long stretches without modules cut."""
    depth = path.count(".") + 2 if path else 1

    def deeper(i: int) -> str:
        names = graph.nodes[i].scope.split(".")
        return ".".join(names[:depth]) if len(names) >= depth and graph.nodes[i].kind != "function" else ""

    found = [(name, list(run)) for name, run in groupby(nodes, key=deeper)]
    if all(not name for name, _ in found) and len(nodes) > PART:
        size = max(PART, -(-len(nodes) // PART))
        return [("", nodes[i : i + size]) for i in range(0, len(nodes), size)]
    return [s for name, run in found for s in ([(name, run)] if name else [("", [i]) for i in run])]
