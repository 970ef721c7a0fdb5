"""Opening and folding scopes and repeats of a drawn graph, one level at a time; see ``core/graphs/opening``."""

from __future__ import annotations

from collections.abc import Collection

from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views.layout import Layout, layout


def opened_layout(graph: AutogradGraph, opened: Collection[str]) -> Layout:
    """The layout of a graph with some of its folded boxes opened.

    Args:
        graph: the whole graph.
        opened: keys of the boxes that are opened, such as ``"g12"``; keys that nothing has are ignored.
    """
    return layout(graph, opened=opened)
