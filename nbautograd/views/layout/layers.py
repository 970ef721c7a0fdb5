"""Layers: vertices by rank, with a point in every layer that a long edge passes."""

from __future__ import annotations

from dataclasses import dataclass

from nbautograd.views.layout.clusters import Clusters
from nbautograd.views.layout.sugiyama import Layers
from nbautograd.views.layout.text import text_width

POINT = 5  # half the width that a passing edge is given


@dataclass
class Stack:
    """The layers, and what they are made of.

    Attributes:
        layers: the vertices; the first ones are the clusters, in their order.
        left, right: how far each vertex reaches to either side.
        dummy: True for the points of long edges.
        chains: for each link the points that it passes, from top to bottom.
        rank: each vertex's layer.
    """

    layers: Layers
    left: list[int]
    right: list[int]
    dummy: list[bool]
    chains: list[list[int]]
    rank: list[int]


def layered(clusters: Clusters) -> Stack:
    """Put clusters and points of long edges into layers, in the order of a depth-first walk."""
    left = [cluster.left for cluster in clusters.clusters]
    right = [cluster.right for cluster in clusters.clusters]
    rank = list(clusters.rank)
    up: list[list[int]] = [[] for _ in rank]
    down: list[list[int]] = [[] for _ in rank]
    chains: list[list[int]] = []
    for link in clusters.links:
        chain: list[int] = []
        above = link.source
        for r in range(clusters.rank[link.source] + 1, clusters.rank[link.target]):
            point = len(rank)
            rank.append(r)
            left.append(POINT)
            right.append(POINT if chain else max(POINT, text_width(link.label, "label") + 8))
            up.append([above])
            down.append([])
            down[above].append(point)
            chain.append(point)
            above = point
        down[above].append(link.target)
        up[link.target].append(above)
        chains.append(chain)
    rows: list[list[int]] = [[] for _ in range(max(rank, default=-1) + 1)]
    for v in _walk(down, up):
        rows[rank[v]].append(v)
    dummy = [v >= len(clusters.clusters) for v in range(len(rank))]
    return Stack(Layers(rows, up, down), left, right, dummy, chains, rank)


def _walk(down: list[list[int]], up: list[list[int]]) -> list[int]:
    """Return all vertices, depth first, first neighbours first."""
    seen = bytearray(len(down))
    found: list[int] = []
    stack = [v for v in reversed(range(len(down))) if not up[v]]
    while stack:
        v = stack.pop()
        if seen[v]:
            continue
        seen[v] = 1
        found.append(v)
        stack.extend(reversed(down[v]))
    return found
