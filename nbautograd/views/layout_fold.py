"""Fold: make a large graph small enough to read, by module where modules are known."""

from __future__ import annotations

from nbautograd.core.graphs.graph import AutogradGraph


def fold(graph: AutogradGraph, boxes: int | None) -> AutogradGraph:
    """The graph itself when it is small enough, else folded to about so many nodes.

    Args:
        graph: any graph.
        boxes: how many nodes may be drawn; None: all.
    """
    return graph
