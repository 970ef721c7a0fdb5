"""Segments: pieces of the engine's order, each of which may be drawn as one box without ever making a cycle.

The engine's order is a topological order of the graph. Contracting nodes that follow one another in it directly leaves
an acyclic graph, so that every segment is such a piece. A module that is called twice gives two segments: folding is
by call, never by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby, takewhile
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
    """Return the engine's order without leaves."""
    return [i for i in graph.order if graph.nodes[i].kind != "leaf"]


def common_path(scopes: Sequence[str]) -> str:
    """Return the module that all scopes lie in."""
    shared = takewhile(lambda names: len({*names}) == 1, zip(*(scope.split(".") for scope in scopes), strict=False))
    return ".".join(names[0] for names in shared)


def module_segments(
    graph: AutogradGraph,
    depth: int,
    runs: Sequence[Segment] = (),
    whole: Collection[str] = (),
    functions: bool = False,
    nodes: Sequence[int] | None = None,
) -> list[Segment]:
    """Return the engine's order cut into calls of the modules at ``depth``; what is outside of them stays single.

    Args:
        depth: 1 for the outermost modules.
        runs: repeats, kept whole unless one module's call holds all of their parts.
        whole: modules that are kept whole though they lie less deep.
        functions: True to fold custom Functions too; else each stays single.
        nodes: which nodes, that follow one another; all by default.
    """
    homes = {path: _cut_path(path, depth, whole) for path in ("", *graph.scopes)}
    inner = inner_order(graph) if nodes is None else nodes
    called = {i: _called(graph.nodes[i], homes, functions) for i in inner}
    run_of = {i: run for run in runs if _spans(run, called) for i in run.nodes}

    def home(i: int) -> tuple[str, int]:
        return ("", run_of[i].nodes[0] + 1) if i in run_of else called[i]

    segments: list[Segment] = []
    for (path, _), group in groupby(called, key=home):
        found = list(group)
        if found[0] in run_of:
            segments.append(run_of[found[0]])
        else:
            segments += [Segment(path, found)] if path else [Segment("", [i]) for i in found]
    return segments


def _spans(run: Segment, called: Mapping[int, tuple[str, int]]) -> bool:
    """Return True where a whole repeat lies among the nodes, and its parts in several modules' calls or in none."""
    if not all(i in called for i in run.nodes):
        return False
    calls = {called[i] for i in run.nodes}
    return len(calls) > 1 or not next(iter(calls))[0]


def _cut_path(path: str, depth: int, whole: Collection[str] = ()) -> str:
    names = path.split(".")
    for k in range(1, min(depth, len(names) + 1)):
        if (outer := ".".join(names[:k])) in whole:
            return outer
    return ".".join(names[:depth]) if len(names) >= depth else ""


def _called(node: Node, homes: Mapping[str, str], functions: bool = False) -> tuple[str, int]:
    path = "" if node.kind == "function" and not functions else homes[node.scope]
    depth = path.count(".") + 1
    return path, node.calls[depth - 1] if path and depth <= len(node.calls) else 0
