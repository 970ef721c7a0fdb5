"""Schedule: the order in which the engine runs the nodes of a graph, predicted without running it, and its steps.

The engine counts for every node how many gradients it still waits for, and keeps the nodes that wait for none in a
queue from which it takes the one with the highest sequence number: the one that forward made last. Leaves have the
highest number of all, so that they run as soon as they are ready. Of equal numbers the one that came first runs first;
so does the engine with up to three leaves that one node makes ready (of four or more it depends on its heap).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from itertools import count

from nbautograd.core.graphs.graph import AutogradGraph, Step

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


MOST_READY = 16  # of the queue that one step tells; an unrolled network can have a thousand


def schedule(graph: AutogradGraph) -> tuple[Step, ...]:
    """Tell a backward step by step: in the order in which it ran, or the predicted one when none has run.

    Args:
        graph: any graph, also a folded one; nodes that its order does not name are left out.

    Returns:
        One step per node, in order.
    """
    order = tuple(dict.fromkeys(graph.ran or graph.order))
    place = {node: i for i, node in enumerate(order)}
    arriving: dict[int, list[int]] = {}
    leaving: dict[int, list[int]] = {}
    for position, edge in enumerate(graph.edges):
        if edge.source in place and edge.target in place:
            arriving.setdefault(edge.target, []).append(position)
            leaving.setdefault(edge.source, []).append(position)
    left = {node: len(arriving.get(node, ())) for node in order}
    # places of the ready nodes, negative, so that the next one is the last
    queue = sorted(-place[node] for node in order if not left[node])
    steps = list[Step]()
    for node in order:
        ready, queued = tuple([order[-at] for at in queue[: -MOST_READY - 1 : -1]]), len(queue)
        if queue and queue[-1] == -place[node]:
            queue.pop()
        sent, waiting, woken = leaving.get(node, []), list[int](), list[int]()
        for target in [graph.edges[position].target for position in sent]:
            left[target] -= 1
            waiting.append(left[target])
            if not left[target]:
                woken.append(target)
                queue.insert(bisect_left(queue, -place[target]), -place[target])
        leaf = node if graph.nodes[node].kind == "leaf" else None
        arrived = tuple(arriving.get(node, ()))
        steps.append(Step(node, ready, queued, arrived, tuple(sent), tuple(waiting), tuple(woken), leaf))
    return tuple(steps)
