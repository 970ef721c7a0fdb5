"""Segments: pieces of the engine's order, each of which may be drawn as one box without ever making a cycle.

The engine's order is a topological order of the graph. Contracting nodes that follow one another in it directly leaves
an acyclic graph, so that every segment is such a piece. A module that is called twice gives two segments: folding is
by call, never by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from nbautograd.core.display import Phrase
from nbautograd.core.graphs.graph import AutogradGraph, Node


class Segment(NamedTuple):
    """Nodes that follow one another in the engine's order.

    Attributes:
        path: of the module that they belong to; may be empty.
        nodes: ids of inner nodes, in the engine's order; leaves go with the nodes that use them.
        times: how many equal parts they are, one after the other.
        name: what they are called, where that is not said by ``path``.
    """

    path: str
    nodes: list[int]
    times: int = 1
    name: str | Phrase = ""


def inner_order(graph: AutogradGraph) -> list[int]:
    """The engine's order without leaves."""
    return [i for i in graph.order if graph.nodes[i].kind != "leaf"]


def module_segments(graph: AutogradGraph, depth: int, runs: Sequence[Segment] = ()) -> list[Segment]:
    """The engine's order cut into calls of the modules at ``depth``; what is outside of them stays single.

    Args:
        graph: the graph.
        depth: 1 for the outermost modules.
        runs: repeats, kept whole unless one module's call holds all of their parts.
    """
    return cut_by_module(graph, inner_order(graph), depth, runs)


def cut_by_module(
    graph: AutogradGraph, nodes: Sequence[int], depth: int, runs: Sequence[Segment] = ()
) -> list[Segment]:
    """Some nodes that follow one another, cut as by ``module_segments``."""
    called = {i: _called(graph.nodes[i], depth) for i in nodes}
    run_of = {i: run for run in runs if _spans(run, called) for i in run.nodes}

    def home(i: int) -> tuple[str, int]:
        return ("", run_of[i].nodes[0] + 1) if i in run_of else called[i]

    segments: list[Segment] = []
    for (path, _), group in groupby(nodes, key=home):
        found = list(group)
        if found[0] in run_of:
            segments.append(run_of[found[0]])
        else:
            segments += [Segment(path, found)] if path else [Segment("", [i]) for i in found]
    return segments


def _spans(run: Segment, called: dict[int, tuple[str, int]]) -> bool:
    """Return True where a whole repeat lies among the nodes, and its parts in several modules' calls or in none."""
    if not all(i in called for i in run.nodes):
        return False
    calls = {called[i] for i in run.nodes}
    return len(calls) > 1 or not next(iter(calls))[0]


def _called(node: Node, depth: int) -> tuple[str, int]:
    """The module at a depth, and which call of it, where modules were watched."""
    path = _at_depth(node, depth)
    return path, node.calls[depth - 1] if path and depth <= len(node.calls) else 0


def _at_depth(node: Node, depth: int) -> str:
    if node.kind == "function" or node.scope.count(".") + 1 < depth or not node.scope:
        return ""
    return ".".join(node.scope.split(".")[:depth])
