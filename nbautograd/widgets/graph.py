"""The Graph view: the layout that the static picture draws, with details of every node and edge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nbautograd import messages
from nbautograd.core.display import plain
from nbautograd.core.graphs.backward import backward_of_drawn, drawn_tensor, runs_backward, with_saved
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Node
from nbautograd.core.graphs.segments import common_path
from nbautograd.core.graphs.why_none import NoneReason, ask, askable
from nbautograd.core.recording.call import Call
from nbautograd.errors import InputError
from nbautograd.views.builders.calls import ctx_column, values_column
from nbautograd.views.builders.graph import wrong_gradients_told
from nbautograd.views.document import Document
from nbautograd.views.layout import Layout, first_layout, layout
from nbautograd.views.layout.build import with_flow
from nbautograd.views.layout.layers import WIDE
from nbautograd.views.packing import array, small, state_of
from nbautograd.views.phrases import contents, picture_caption
from nbautograd.views.to_json import matrix, pooling_of
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.calls import call_state
from nbautograd.widgets.states import (
    CallsAnswer,
    EdgeState,
    GradientState,
    GraphState,
    KeptMemory,
    LensState,
    NodesAnswer,
    NodeState,
    Picture,
    PictureAnswer,
    StaleState,
)

MOST_DETAILS = 1_500  # nodes whose details are sent at first; the page asks for those of the others
MOST_ASKED = 60  # nodes whose details go in one answer
MOST_THUMBNAILS = 60  # nodes and edges whose gradients go with a thumbnail


def graph_state(graph: AutogradGraph, calls: Iterable[Call] = (), laid: AutogradGraph | None = None) -> GraphState:
    """Return the laid-out graph, and what is known of its nodes and edges.

    Args:
        graph: the graph.
        calls: the recorded calls of the Function that it is shown with.
        laid: the same graph before backward, when that was drawn: all stays in its place.
    """
    few = len(graph.nodes) + len(graph.edges) <= MOST_THUMBNAILS
    return GraphState(
        **vars(picture_state(graph, first_layout(graph) if laid is None else with_flow(first_layout(laid), graph))),
        total=len(graph.nodes),
        widest=WIDE,
        nodes=[_node(node, few) for node in graph.nodes[:MOST_DETAILS]],
        edges=[_edge(edge, few) for edge in graph.edges[: 2 * MOST_DETAILS]],
        whole=_whole(graph),
        notes=list(map(str, graph.notes)),
        lenses=lens_state(graph),
        names=askable_names(graph),
        calls=node_calls(graph, calls),
    )


def _whole(graph: AutogradGraph) -> int:
    """Count the nodes that come with all their edges, from the first one on."""
    left = (min(edge.source, edge.target) for edge in graph.edges[2 * MOST_DETAILS :])
    return min(len(graph.nodes), MOST_DETAILS, *left)


def _node(node: Node, thumbnails: bool) -> NodeState:
    return state_of(
        NodeState, node, name=str(node.name), saved=_saved(node), gradient=_gradient(node.gradient, thumbnails)
    )


def _saved(node: Node) -> Document:
    """Return what a node keeps: of a custom Function its ctx."""
    if node.ctx is not None:
        return ctx_column(node.ctx)
    return values_column(messages.text("views.call.saved"), node.saved) if node.saved else ()


def _edge(edge: Edge, thumbnails: bool) -> EdgeState:
    return state_of(EdgeState, edge, gradient=_gradient(edge.gradient, thumbnails))


def _gradient(summary: Any, thumbnails: bool) -> GradientState | None:
    if summary is None:
        return None
    drawn = thumbnails and summary.thumbnail is not None and summary.thumbnail.size
    return state_of(
        GradientState,
        summary,
        contents=contents(summary),
        thumbnail=small(matrix(summary.thumbnail)) if drawn else None,
        exact=bool(drawn) and summary.thumbnail.size == summary.numel,
        sampled=bool(summary.sampled),
        pooling=pooling_of(summary) if drawn else None,
        written=True if drawn and not picture_caption(summary) else None,
    )


def graph_questions(graph: AutogradGraph | None, laid: AutogradGraph | None = None) -> dict[str, Question]:
    """Answer what the page may ask about a graph: another picture of it, details of nodes, calls of a Function."""
    if graph is None:
        return {}
    return {
        "picture": lambda question: picture(graph, question, laid),
        "nodes": lambda question: _details(graph, question),
        "function": lambda question: calls_of(graph, question),
    }


def _details(graph: AutogradGraph, question: Mapping[str, Any]) -> NodesAnswer:
    """Return some nodes, the edges at them and the nodes at their far ends; their gradients without thumbnails."""
    asked = question.get("nodes")
    if not isinstance(asked, list) or not all(type(i) is int and 0 <= i < len(graph.nodes) for i in asked):
        raise InputError("widgets.no_block")
    wanted = set(asked[:MOST_ASKED])
    edges = [edge for edge in graph.edges if edge.source in wanted or edge.target in wanted][: 4 * MOST_ASKED]
    near = wanted | {end for edge in edges for end in (edge.source, edge.target)}
    nodes = [_node(graph.nodes[i], False) for i in sorted(near)]
    return NodesAnswer(nodes=nodes, edges=[_edge(edge, False) for edge in edges])


class GraphWidget(ViewWidget):
    """The backward graph: pan, zoom, search, step through backward in the engine's order, open a node."""

    KIND = "graph"
    _laid: AutogradGraph | None = None  # what was drawn before the page had backward run

    def make_state(self, value: AutogradGraph) -> GraphState:
        """Return layout and details."""
        state = graph_state(value, laid=self._laid)
        return replace(state, notes=[*state.notes, *wrong_gradients_told(value)])

    def questions(self) -> dict[str, Question]:
        """Return the questions by which the page opens scopes, asks for details or reasons, or has a lens filled."""
        asked = {"backward": self._backward, "saved": self._saved}
        return {**graph_questions(self.value, self._laid), **asked}

    def _backward(self, _question: Mapping[str, Any]) -> GraphState:
        """Run backward of the tensor that is drawn, as the lens on gradients offers; the view keeps what flowed."""
        return self._take(backward_of_drawn)

    def _saved(self, _question: Mapping[str, Any]) -> GraphState:
        """Read what all nodes of a large graph keep, as the lens on memory offers."""
        return self._take(with_saved)

    def _take(self, more: Callable[[AutogradGraph, torch.Tensor], AutogradGraph]) -> GraphState:
        tensor = drawn_tensor(self.value)
        if tensor is None:
            raise InputError("graphs.gradients.gone", name=str(self.value.roots[0][1]))
        before, self.value = self.value, more(self.value, tensor)
        same = self.value.tensors is before.tensors  # else it was changed in place since, and is another graph
        self._laid = (self._laid or before) if same else None
        self.state = state = self.make_state(self.value)
        return state


MOST_OPENED = 1_000  # boxes opened at once
MOST_DRAWN = 30_000  # nodes that are laid out one by one
TITLES = 300  # characters of a box's scope
NUMBERED = re.compile(r"(?<!\w)\d+(?!\w)")  # in a scope a module that is called by its number


def picture_state(graph: AutogradGraph, made: Layout) -> Picture:
    """Return the layout, and the module of each box; what is missing stands in the graph's own notes."""
    scopes = {box.key: _scope(graph, box.nodes) for box in made.boxes}
    around = {scope[: end.end()] for scope in {*scopes.values()} for end in NUMBERED.finditer(scope)}
    return Picture(
        layout=made,
        scopes={key: scope for key, scope in scopes.items() if scope},
        classes={path: graph.scopes[path] for path in sorted(around & graph.scopes.keys())},
        ghosts=[ghost.name for ghost in graph.ghosts],
    )


def _scope(graph: AutogradGraph, nodes: tuple[int, ...]) -> str:
    """Return the innermost module that all of some nodes belong to."""
    some = [graph.nodes[i] for i in nodes if i < len(graph.nodes)]
    some = [node for node in some if node.kind != "leaf"] or some  # an input may come from outside
    return common_path([node.scope for node in some])[:TITLES]


def picture(graph: AutogradGraph, question: Mapping[str, Any], laid: AutogradGraph | None = None) -> PictureAnswer:
    """Return the picture that the page asks for.

    Args:
        graph: the whole graph.
        question: ``opened`` (keys of boxes, or ``"all"``), ``name`` of a tensor whose gradient is missed, and
            ``wide``, the px that there are where that is less than on a wide page.
        laid: as for ``graph_state``.

    Raises:
        InputError: when it makes no sense.
    """
    opened, wide = question.get("opened", []), question.get("wide")
    sound = isinstance(opened, list) and len(opened) <= MOST_OPENED and all(isinstance(key, str) for key in opened)
    whole = opened == "all" and len(graph.nodes) <= MOST_DRAWN
    if not (sound or whole) or not (wide is None or (type(wide) is int and 0 < wide <= WIDE)):
        raise InputError("widgets.no_block")
    name = question.get("name") or ""
    if not isinstance(name, str):
        raise InputError("widgets.no_block")
    asked = ask(graph, name) if name else None
    bare = laid or graph
    drawn = replace(bare if asked is None else with_ghost(bare, asked), notes=())
    boxes = {"boxes": None} if whole else {"opened": opened}
    made = layout(drawn, wide=wide, **boxes)
    answer = PictureAnswer(**vars(picture_state(graph, made if laid is None else with_flow(made, graph))))
    if asked is None:
        return answer
    at = drawn.ghosts.index(asked.ghost) if asked.ghost is not None else None
    said = asked.finding
    return replace(answer, message=said.message, line=said.line, node=asked.node, ghost=at)


MOST_NAMES = 400


def askable_names(graph: AutogradGraph) -> list[str]:
    """Return the tensors that can be asked for: the graph's, then others that had a name when it was made."""
    return askable(graph)[:MOST_NAMES]


def with_ghost(graph: AutogradGraph, asked: NoneReason) -> AutogradGraph:
    """Return the graph with the tensor that was asked for among its ghosts, unless it is drawn anyway."""
    if asked.ghost is None or asked.ghost in graph.ghosts:
        return graph
    return replace(graph, ghosts=(*graph.ghosts, asked.ghost))


MOST_STALE = 20
NO_GRADIENT = -1.0  # in place of a norm; a gradient with NaN or Inf is NaN


def lens_state(graph: AutogradGraph) -> LensState:
    """Return the facts behind the lenses."""
    norms = array(list(map(_norm, graph.edges)), "float32") if any(e.gradient for e in graph.edges) else None
    freed = any(node.freed for node in graph.nodes)
    drawn = drawn_tensor(graph)
    runs = norms is None and not freed and runs_backward(drawn)
    why = "freed" if freed else "run" if runs else "none"
    name = str(graph.roots[0][1]) if graph.roots else ""
    return LensState(
        kept=_saved_memory(graph) if graph.read else None,
        stale=[_stale(graph, node, i) for node in graph.nodes for i in range(len(node.stale))][:MOST_STALE],
        norms=norms,
        bad=first_bad(graph),
        least=_least(graph),
        missing=messages.text(f"graphs.gradients.{why}", name=name) if norms is None else "",
        runs=runs,
        reads=not graph.read and not freed and drawn is not None,
    )


def first_bad(graph: AutogradGraph) -> int | None:
    """Return the first node, in the engine's order, that sends NaN or Inf on."""
    bad = {edge.source for edge in graph.edges if _norm(edge) != _norm(edge)}
    return next((i for i in (graph.ran or graph.order) if i in bad), None) if bad else None


def _least(graph: AutogradGraph) -> tuple[int, float] | None:
    """Return where the smallest gradient above zero arrives, by itself or as a sum, and its norm."""
    arrive = [(_norm(node), node.id) for node in graph.nodes] + [(_norm(edge), edge.target) for edge in graph.edges]
    norm, node = min((pair for pair in arrive if pair[0] > 0), default=(0.0, -1))
    return (node, norm) if norm else None


def _saved_memory(graph: AutogradGraph) -> KeptMemory:
    """List the storages of each node, as (number, bytes), and the total, shared memory once."""
    nodes = {node.id: [s[:2] for s in node.storages] for node in graph.nodes if node.storages}
    return KeptMemory(nodes=nodes, all=graph.saved_bytes()[""])


def _stale(graph: AutogradGraph, node: Node, position: int) -> StaleState:
    """Return one saved tensor that was changed since, with the one node of the op that changed it, if any."""
    stale = node.stale[position]
    makers = [n.id for n in graph.nodes if n.id != node.id and n.label and n.label == stale.name]
    named = [n.id for n in graph.nodes if n.name == stale.by]
    maker = next((ids[0] for ids in (named, makers) if len(ids) == 1), None)
    of = node.function or str(node.name)
    return state_of(StaleState, stale, node=node.id, of=of, name=stale.name or stale.slot, maker=maker)


def _norm(part: Node | Edge) -> float:
    gradient = part.gradient
    if gradient is None:
        return NO_GRADIENT
    if gradient.nan or gradient.inf:
        return float(np.nan)
    norm = plain(gradient.norm)
    return float(norm) if isinstance(norm, (int, float)) else NO_GRADIENT


MOST_CALLS = 4  # of one node that are shown


def node_calls(graph: AutogradGraph, calls: Iterable[Call]) -> dict[int, list[tuple[int, str]]]:
    """Return for each custom Function's node the calls with its ctx, by number and method: its forward first.

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
        raise InputError("widgets.no_block")
    log = [call for call in calls() if call.function == _class(graph.nodes[number])]
    wanted = {index for index, _ in node_calls(graph, log).get(number, [])[:MOST_CALLS]}
    names = {call.index: call.name for call in log}
    return CallsAnswer(calls=[call_state(call, names) for call in log if call.index in wanted])
