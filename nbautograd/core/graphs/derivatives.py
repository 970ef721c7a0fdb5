"""Derivatives: the graph of a gradient, tied to the graph that the gradient was computed from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from nbautograd.core.graphs.graph import AutogradGraph, Node, Origin


def tie(nodes: Sequence[Node], first: AutogradGraph) -> list[Node]:
    """Say of each node which node of the first graph it is, or which one's backward made it.

    Args:
        nodes: of the second graph.
        first: what ``backward(..., create_graph=True)`` returned. Sums of gradients that the engine made between two
            nodes come from none of them.
    """
    own = {node.sequence: node for node in first.nodes if node.sequence is not None}
    made = sorted((begin, end, i) for i, (begin, end) in first.made.items() if begin < end)
    begins = [begin for begin, _, _ in made]
    return [replace(node, origin=_origin(node, own, made, begins, first)) for node in nodes]


def _origin(
    node: Node,
    own: dict[int, Node],
    made: Sequence[tuple[int, int, int]],
    begins: Sequence[int],
    first: AutogradGraph,
) -> Origin | None:
    number = node.sequence
    if number is None:
        return None
    if number in own and own[number].name == node.name:
        return Origin(own[number].id, _called(own[number]), True)
    at = bisect_right(begins, number) - 1
    if at < 0 or number >= made[at][1]:
        return None
    source = first.nodes[made[at][2]]
    return Origin(source.id, _called(source), False)


def _called(node: Node) -> str:
    return (node.label if node.kind == "leaf" else "") or node.function or node.name
