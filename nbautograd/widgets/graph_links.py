"""From a custom Function's node in the graph to the recorded calls that made it and ran it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nbautograd.core.graphs.graph import AutogradGraph, Node
from nbautograd.core.recording.call import Call
from nbautograd.errors import InputError
from nbautograd.widgets.calls import call_state
from nbautograd.widgets.states import CallsAnswer

MOST_CALLS = 4  # of one node that are shown


def node_calls(graph: AutogradGraph, calls: Iterable[Call]) -> dict[int, list[tuple[int, str]]]:
    """For each custom Function's node the calls with its ctx, by number and method: its forward first.

    Nodes and forwards of one class are put together from the last one backwards, both in the order in which they were
    made, where what they keep on ctx looks the same.
    """
    recorded = list(calls)
    later: dict[int, list[tuple[int, str]]] = {}
    for call in recorded:
        if call.forward is not None:
            later.setdefault(call.forward, []).append((call.index, _title(call)))
    found: dict[int, list[tuple[int, str]]] = {}
    left = [call for call in recorded if call.method == "forward"]
    for node in sorted((n for n in graph.nodes if n.kind == "function"), key=lambda n: -(n.sequence or 0)):
        made = next((c for c in reversed(left) if c.function == _class(node) and _alike(node, c, recorded)), None)
        if made is not None:
            left = left[: left.index(made)]
            found[node.id] = [(made.index, _title(made)), *later.get(made.index, [])]
    return found


def _title(call: Call) -> str:
    return f"{call.method} {call.name}"


def _class(node: Node) -> str:
    return node.function or str(node.name).removesuffix("Backward")


def _alike(node: Node, call: Call, calls: list[Call]) -> bool:
    """Return True if a forward's ctx can be the node's: saved tensors of the same shapes, unless they are freed."""
    setup = next((c for c in calls if c.method == "setup_context" and c.forward == call.index), call)
    if node.ctx is None or node.ctx.freed or node.freed:
        return True
    shapes = [[v.tensor and v.tensor.shape for v in ctx.saved_tensors] for ctx in (node.ctx, setup.ctx)]
    return shapes[0] == shapes[1]


def calls_of(graph: AutogradGraph, question: Mapping[str, Any]) -> CallsAnswer:
    """Answer the page's question for the recorded calls of one custom Function's node.

    Args:
        graph: the graph.
        question: ``node``, its id.

    Raises:
        InputError: when the graph has no such node.
    """
    from nbautograd.core.recording.api import calls

    number = question.get("node")
    if type(number) is not int or not 0 <= number < len(graph.nodes):
        raise InputError("widgets.no_box")
    log = [call for call in calls() if call.function == _class(graph.nodes[number])]
    wanted = {index for index, _ in node_calls(graph, log).get(number, [])[:MOST_CALLS]}
    names = {call.index: call.name for call in log}
    return CallsAnswer(calls=[call_state(call, names) for call in log if call.index in wanted])
