"""The order in which the engine will run the nodes of a graph, predicted without running it.

The engine counts for every node how many gradients it still waits for, and keeps the nodes that wait for none in a
queue from which it takes the one with the highest sequence number: the one that forward made last. Leaves have the
highest number of all. Equal numbers leave the queue as a binary heap happens to hold them; the two functions at the end
do to the heap what the C++ library does, so that ties fall the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAF = 2**64 - 1  # the sequence number that torch gives to AccumulateGrad


def engine_order(following: Sequence[Sequence[int]], sequence: Sequence[int], roots: Sequence[int]) -> list[int]:
    """Predict the order of one backward on one device.

    Args:
        following: for each node the nodes that its gradients go to, one per edge, in the order of its outputs.
        sequence: each node's sequence number; ``LEAF`` for leaves.
        roots: nodes at which backward starts, in the order of the tensors given; a node may occur more than once.

    Returns:
        The nodes in the order in which the engine runs them.

    Example:
        >>> from nbautograd.core.graphs.order import engine_order
        >>> engine_order([[1, 2], [2], []], [5, 4, 3], [0])
        [0, 1, 2]
    """
    waiting = _dependencies(following, roots)
    heap: list[tuple[int, int]] = []
    order: list[int] = []
    _release(roots, waiting, sequence, heap)
    while heap:
        node = _pop(heap)
        order.append(node)
        _release(following[node], waiting, sequence, heap)
    return order


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
            break
        arrivals = following[stack.pop()]
    return waiting


def _release(nodes: Sequence[int], waiting: list[int], sequence: Sequence[int], heap: list[tuple[int, int]]) -> None:
    for node in nodes:
        waiting[node] -= 1
        if waiting[node] == 0:
            _push(heap, (sequence[node], node))


def _push(heap: list[tuple[int, int]], item: tuple[int, int]) -> None:
    heap.append(item)
    if len(heap) > 1:
        _sift_up(heap, len(heap) - 1, item)


def _sift_up(heap: list[tuple[int, int]], hole: int, item: tuple[int, int]) -> None:
    while hole > 0:
        parent = (hole - 1) >> 1
        if heap[parent][0] >= item[0]:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = item


def _pop(heap: list[tuple[int, int]]) -> int:
    first = heap[0][1]
    last = heap.pop()
    size = len(heap)
    if size:
        hole = 0
        child = 2
        while child < size:
            if heap[child][0] < heap[child - 1][0]:
                child -= 1
            heap[hole] = heap[child]
            hole = child
            child = 2 * hole + 2
        if child == size:
            heap[hole] = heap[child - 1]
            hole = child - 1
        _sift_up(heap, hole, last)
    return first
