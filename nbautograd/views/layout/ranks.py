"""Ranks: which layer each vertex stands in, the loss on top.

Longest path from the top, then every vertex is pulled down towards what it feeds where that makes its edges no longer.
"""

from __future__ import annotations

from collections.abc import Sequence

Links = Sequence[Sequence[int]]


def ranks(below: Links) -> list[int]:
    """Rank every vertex of a DAG: an edge always leads to a higher rank.

    Args:
        below: for each vertex the vertices that its edges lead to.

    Returns:
        The rank of each vertex, 0 on top.
    """
    above = [0] * len(below)
    for targets in below:
        for target in targets:
            above[target] += 1
    order = _topological(below, above)
    rank = [0] * len(below)
    for v in order:
        under = rank[v] + 1
        for target in below[v]:
            if rank[target] < under:
                rank[target] = under
    _tighten(below, above, order, rank)
    return _from_zero(rank)


def _topological(below: Links, above: Sequence[int]) -> list[int]:
    waiting = list(above)
    order = [v for v, count in enumerate(waiting) if count == 0]
    for v in order:  # grows while it is read
        for target in below[v]:
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    return order


def _tighten(below: Links, above: Sequence[int], order: Sequence[int], rank: list[int]) -> None:
    for v in reversed(order):
        targets = below[v]
        if targets and len(targets) >= above[v]:
            lowest = min([rank[target] for target in targets]) - 1
            if lowest > rank[v]:
                rank[v] = lowest


def _from_zero(rank: list[int]) -> list[int]:
    """Return ranks without gaps, from 0."""
    places = {r: i for i, r in enumerate(sorted(set(rank)))}
    return [places[r] for r in rank]
