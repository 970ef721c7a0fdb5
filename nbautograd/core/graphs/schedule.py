"""Schedule: the order in which the engine runs the nodes of a graph, predicted without running it.

The engine counts for every node how many gradients it still waits for, and keeps the nodes that wait for none in a
queue from which it takes the one with the highest sequence number: the one that forward made last. Leaves have the
highest number of all, so that they run as soon as they are ready. Of equal numbers the one that came first runs first;
so does the engine with up to three leaves that one node makes ready (of four or more it depends on its heap).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

LEAF = 2**64 - 1  # the sequence number that torch gives to AccumulateGrad


def engine_order(following: Sequence[Sequence[int]], sequence: Sequence[int], roots: Sequence[int]) -> list[int]:
    """Predict the order of one backward on one device.

    Args:
        following: for each node the nodes that its gradients go to, one per edge, in the order of its outputs.
        sequence: each node's sequence number; ``LEAF`` for leaves.
        roots: nodes at which backward starts, in the order of the tensors given; a node may occur more than once.

    Returns:
        The nodes in the order in which the engine runs them.
    """
    waiting = _dependencies(following, roots)
    queue: list[tuple[int, int, int]] = []  # (-sequence number, arrival, node)
    arrivals = count()
    order: list[int] = []
    ready: Sequence[int] = roots
    while True:
        for node in ready:
            waiting[node] -= 1
            if waiting[node] == 0:
                heapq.heappush(queue, (-sequence[node], next(arrivals), node))
        if not queue:
            return order
        node = heapq.heappop(queue)[2]
        order.append(node)
        ready = following[node]


def _dependencies(following: Sequence[Sequence[int]], roots: Sequence[int]) -> list[int]:
    waiting = [0] * len(following)
    seen = bytearray(len(following))
    stack: list[int] = []
    arrivals: Sequence[int] = roots
    while True:
        for node in arrivals:
            waiting[node] += 1
            if not seen[node]:
                seen[node] = 1
                stack.append(node)
        if not stack:
            return waiting
        arrivals = following[stack.pop()]
