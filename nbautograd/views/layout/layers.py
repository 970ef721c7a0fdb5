"""Layers: vertices by rank, with a point in every layer that a long edge passes, cut into columns.

A long chain of ranks stands in pieces side by side, so that the whole fits a frame with its text readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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


TALL, WIDE = 780, 1060  # px of the frame of a live view, in which the smallest letters have 11 px
FULL = 0.6  # of its height that a column must fill
LANES = 3  # edges that may lead from one column to the next
GUTTER = 64  # free width between two columns
SLACK = 2  # how many times higher than the frame columns may be and still be worth the jump of the eye


class Column(NamedTuple):
    """Ranks that stand below each other.

    Attributes:
        first, last: ranks.
        left, right: x of the outermost borders.
    """

    first: int
    last: int
    left: int
    right: int


def columns(
    stack: Stack, x: Sequence[int], tops: Sequence[int], bottoms: Sequence[int], wide: int = WIDE
) -> list[Column]:
    """Cut the ranks into columns: one when they are not too high, or when columns would not make them fit.

    Args:
        stack: the layers.
        x: of every vertex's port.
        tops, bottoms: of every rank.
        wide: px that there are for all columns.
    """
    layers = stack.layers.layers
    sides = [(min(x[v] - stack.left[v] for v in layer), max(x[v] + stack.right[v] for v in layer)) for layer in layers]

    def column(first: int, last: int) -> Column:
        some = sides[first : last + 1]
        return Column(first, last, min(left for left, _ in some), max(right for _, right in some))

    whole = [column(0, len(layers) - 1)] if layers else []
    if not whole or bottoms[-1] - tops[0] <= TALL:
        return whole
    links = [sum(len(stack.layers.down[v]) for v in layer) for layer in layers]
    best, tallest = whole, SLACK * TALL
    for count in range(2, len(layers) + 1):
        found = [column(a, b) for a, b in _cut(links, tops, bottoms, max(TALL, (bottoms[-1] - tops[0]) // count))]
        if sum(c.right - c.left + GUTTER for c in found) - GUTTER > wide:
            break
        height = max(bottoms[c.last] - tops[c.first] for c in found)
        if height < tallest:
            best, tallest = found, height
        if height <= TALL:
            break
    return best


def _cut(links: Sequence[int], tops: Sequence[int], bottoms: Sequence[int], height: int) -> list[tuple[int, int]]:
    """Return the first and last rank of columns of at most a height, cut where few edges lead on, late."""
    found = []
    first = 0
    while bottoms[-1] - tops[first] > height:
        reached = range(first, len(tops) - 1)
        full = [k for k in reached if FULL * height <= bottoms[k] - tops[first] <= height and links[k] <= LANES]
        if not full:
            break
        cut = min(full, key=lambda k: (links[k], -k))
        found.append((first, cut))
        first = cut + 1
    return [*found, (first, len(tops) - 1)]
