"""Schedule: backward step by step, as the engine takes it: what runs, what is ready, what still waits, what is sent."""

from __future__ import annotations

from bisect import bisect_left

from nbautograd.core.graphs.graph import AutogradGraph, Step

MOST_READY = 16  # of the queue that one step tells; an unrolled network can have a thousand


def schedule(graph: AutogradGraph) -> tuple[Step, ...]:
    """Tell a backward step by step: in the order in which it ran, or the predicted one when none has run.

    Args:
        graph: any graph, also a folded one; nodes that its order does not name are left out.

    Returns:
        One step per node, in order.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> steps = nbautograd.graph((a * a).sum()).schedule()
        >>> [(step.node, step.ready, step.waiting) for step in steps]
        [(0, (0,), (0,)), (1, (1,), (1, 0)), (2, (2,), ())]
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
    queue = sorted(-place[node] for node in order if not left[node])
    return tuple([_step(graph, node, place, arriving, leaving, left, queue, order) for node in order])


def _step(
    graph: AutogradGraph,
    node: int,
    place: dict[int, int],
    arriving: dict[int, list[int]],
    leaving: dict[int, list[int]],
    left: dict[int, int],
    queue: list[int],
    order: tuple[int, ...],
) -> Step:
    """Run one node; ``queue`` holds the places of the ready nodes, negative, so that the next one is the last."""
    ready = tuple([order[-at] for at in queue[: -MOST_READY - 1 : -1]])
    queued = len(queue)
    if queue and queue[-1] == -place[node]:
        queue.pop()
    sent = leaving.get(node, [])
    waiting, woken = [], []
    for position in sent:
        target = graph.edges[position].target
        left[target] -= 1
        waiting.append(left[target])
        if not left[target]:
            woken.append(target)
            at = bisect_left(queue, -place[target])
            queue.insert(at, -place[target])
    leaf = node if graph.nodes[node].kind == "leaf" else None
    arrived = tuple(arriving.get(node, ()))
    return Step(node, ready, queued, arrived, tuple(sent), tuple(waiting), tuple(woken), leaf)
