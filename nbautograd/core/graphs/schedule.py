"""Schedule: backward step by step, as the engine takes it: what runs, what is ready, what still waits, what is sent."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from nbautograd.core.graphs.graph import AutogradGraph

MOST_READY = 16  # of the queue that one step tells; an unrolled network can have a thousand


@dataclass(frozen=True)
class Step:
    """One step of backward: one node runs.

    Attributes:
        node: id of the node that runs.
        ready: the queue just before: ids of the nodes that have all of their gradients, in the order in which the
            engine would take them, ``node`` first; at most 16.
        queued: how long the queue is, ``node`` counted.
        arrived: positions in ``graph.edges`` of the edges whose gradients were summed for it.
        sent: positions in ``graph.edges`` of the edges along which it sends a gradient.
        waiting: for each of ``sent`` how many gradients its target still waits for afterwards.
        woken: ids of the nodes that become ready by this step.
        accumulated: id of the leaf whose ``.grad`` grows in this step: the node, when it is a leaf; else None.
    """

    node: int
    ready: tuple[int, ...]
    queued: int
    arrived: tuple[int, ...]
    sent: tuple[int, ...]
    waiting: tuple[int, ...]
    woken: tuple[int, ...]
    accumulated: int | None


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
