"""AutogradGraph, Node and Edge: the backward graph as plain data."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from nbautograd.core.display import Displayable, Phrase, plural, render
from nbautograd.core.graphs.names import NamedTensors
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value


@dataclass(frozen=True)
class Slot:
    """Shape, dtype and device that the engine expects of one gradient.

    Attributes:
        shape, dtype: of the gradient; None when torch does not say.
        device: such as ``"cpu"``.
    """

    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str = ""


class Storage(NamedTuple):
    """Memory that a node keeps for its backward.

    Attributes:
        number: the same for the same memory, in one graph: what two nodes share is counted once.
        bytes: its size.
        name: the user's name of the tensor, if it has one.
    """

    number: int
    bytes: int
    name: str = ""


class Stale(NamedTuple):
    """A saved tensor that was changed in place after it was saved; backward will refuse it.

    Attributes:
        slot: what the node calls it, such as ``"self"`` or ``"saved[0]"``.
        name: the user's name of it, if it has one.
        saved, now: its version when it was saved, and now.
        by: what changed it: the op that torch names, or what is written in ``line``; empty when that is not known.
        line: of the calling code, if one was found that changes it; else None.
    """

    slot: str
    name: str
    saved: int
    now: int
    by: str = ""
    line: int | None = None


class Origin(NamedTuple):
    """The node of the first graph that a node of the second graph comes from.

    Attributes:
        node: id of the node in the first graph.
        name: its name.
        same: True when it is that very node; False when that node's backward made it.
    """

    node: int
    name: str
    same: bool


@dataclass(frozen=True)
class Ghost:
    """A tensor of the user that needs a gradient and gets none from this graph, since no way leads to it.

    Attributes:
        name: the user's name of it.
        reason: ``"detach"`` (a node saved its values), ``"unused"`` (nothing says that it was used), ``"integer"`` or
            ``"not_required"``.
        shape: of the tensor.
        node: id of the node that used its values, if that is known; else None.
    """

    name: str
    reason: str
    shape: tuple[int, ...] = ()
    node: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Node(Displayable):
    """One node of the backward graph.

    Attributes:
        id: position in ``AutogradGraph.nodes``.
        name: the grad_fn's name (``"MulBackward0"``, ``"LinearFunctionBackward"``), for a leaf ``"AccumulateGrad"``. Of
            a folded node that stands for several a Phrase: ``str`` gives the words, in the language of the moment.
        kind: ``"op"`` (of torch), ``"function"`` (a custom Function) or ``"leaf"``.
        label: for a leaf or an output the user's variable or parameter name; else empty.
        scope: path of the module that made it, such as ``"net.0"``; empty outside modules.
        calls: when modules were watched, which call it was of each module in ``scope``, outermost first; see
            ``watch_modules``.
        sequence: the engine's sequence number (higher runs earlier), or None.
        saved: the saved tensors that could be read.
        ctx: for a custom Function what it keeps on ctx.
        freed: True when its saved tensors were freed by a backward.
        line: for a custom Function the line of its class in the cell or file.
        shape, dtype: of a leaf's tensor or a node's first output's gradient.
        gradient: after ``backward``: what flowed into the node (for a leaf what was accumulated now).
        outputs: positions in ``AutogradGraph.roots`` that this node made.
        function: for a custom Function the name of its class, such as ``"LinearFunction"``; else empty.
        inputs: for a custom Function the names of forward's arguments, where the source gives them.
        gradients: shape and dtype of the gradient that each of its outputs expects; see ``Slot``.
        members: in a folded graph the ids, in the graph that was folded, of the nodes it stands for: its own old id,
            or several.
        storages: the memory it keeps, each once; read in graphs of at most 300 nodes, or with ``saved=True``.
        norms: in a folded graph, after ``backward``: the norms of the gradients at its members, in the engine's order;
            of a repeat, of the gradient that arrives at each of its parts.
        first_bad: ``"NaN"`` or ``"Inf"`` at the first node, in the engine's order, that made one out of finite
            gradients; else empty.
        repeats: in a folded graph: how many equal parts, one after the other, it stands for; 0 when it is no repeat.
        stale: its saved tensors that were changed in place since.
        origin: in the graph of a derivative, ``graph(..., first=...)``: the node of the first graph that it comes from.
        stops: which of its inputs no gradient goes to (their tensors need none), by position among its gradients.
        frozen: True when it saved a parameter that needs no gradient; of a folded node that all of its parameters do.
        wrong: of a folded node what is wrong with a gradient on an edge inside; see ``Edge``.
    """

    id: int
    name: str | Phrase
    kind: Literal["op", "function", "leaf"]
    label: str = ""
    scope: str = ""
    sequence: int | None = None
    saved: tuple[Value, ...] = ()
    ctx: CtxSnapshot | None = None
    freed: bool = False
    line: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    gradient: TensorSummary | None = None
    outputs: tuple[int, ...] = ()
    function: str = ""
    inputs: tuple[str, ...] = ()
    gradients: tuple[Slot, ...] = ()
    stops: tuple[int, ...] = ()
    members: tuple[int, ...] = ()
    storages: tuple[Storage, ...] = ()
    stale: tuple[Stale, ...] = ()
    calls: tuple[int, ...] = ()
    origin: Origin | None = None
    norms: tuple[float, ...] = ()
    repeats: int = 0
    first_bad: str = ""
    frozen: bool = False
    wrong: str | Phrase = ""

    @property
    def bytes(self) -> int:
        """Memory that it keeps for its backward."""
        return sum(storage.bytes for storage in self.storages)

    def __repr__(self) -> str:
        return f"<Node {self.id} {self.name}{f' {self.label}' if self.label else ''}>"


@dataclass(frozen=True, slots=True)
class Edge(Displayable):
    """A gradient's way from one node to the next.

    Attributes:
        source: id of the node that computes the gradient.
        target: id of the node that receives it.
        input_nr: which of the source's returned gradients flows here.
        output_nr: which of the target's outputs it is the gradient of.
        shape, dtype: of that gradient, as torch expects it; None when unknown.
        gradient: after ``backward``: this branch's own contribution; in a folded graph the largest of those inside.
        name: for a custom Function the name of the argument whose gradient this is, where the source gives it.
        state: after ``backward``: ``"flowed"``, ``"none"`` (the source returned None for it) or ``"not reached"``;
            empty before.
        stale: ``"v0 → v1"`` when backward will refuse this gradient, as what it needs was changed in place after it
            was saved; else empty.
        wrong: of a custom Function: what the latest check of its class said is wrong with this gradient; else empty.
        members: in a folded graph the positions, among the edges of the graph that was folded, of those it stands for.
    """

    source: int
    target: int
    input_nr: int
    output_nr: int
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    gradient: TensorSummary | None = None
    name: str = ""
    state: str = ""
    members: tuple[int, ...] = ()
    stale: str = ""
    wrong: str | Phrase = ""


@dataclass(frozen=True, repr=False)
class AutogradGraph(Displayable):
    """The backward graph of one or more tensors.

    Attributes:
        nodes: in the order of the walk; ``nodes[i].id == i``.
        edges: all edges.
        roots: (node id or None, name) of each tensor asked for; None when it has no grad_fn. The name
            is the user's, else a Phrase: ``str`` gives the words, in the language of the moment.
        order: node ids in the order in which the engine runs them.
        scopes: module path -> type name, for the scopes that occur.
        slots: for each of ``roots`` which of the node's outputs it is.
        ran: after ``backward``: node ids in the order in which the engine really ran them.
        complete: False when the walk was cut short; ``notes`` says why.
        read: False when only custom Functions told what they saved, as in large graphs without ``saved=True``.
        notes: sentences about what is missing, in the language chosen when they are read: ``str(note)``.
        ghosts: the user's tensors that need a gradient and have no way to the roots.
        made: after ``backward(create_graph=True)``: node id -> sequence numbers of the first node of the derivative's
            graph that it made, and one past the last.
        first: of the graph of a derivative, ``graph(..., first=...)``: the graph that the derivative was taken of.
        tensors: the tensors that had a name when the graph was made, as long as they live; not a part of its data.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    roots: tuple[tuple[int | None, str | Phrase], ...] = ()
    order: tuple[int, ...] = ()
    scopes: Mapping[str, str] = field(default_factory=dict)
    slots: tuple[int, ...] = ()
    ran: tuple[int, ...] = ()
    complete: bool = True
    read: bool = True
    notes: tuple[Phrase, ...] = ()
    ghosts: tuple[Ghost, ...] = ()
    made: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    first: AutogradGraph | None = None
    tensors: NamedTensors = field(default_factory=NamedTensors, compare=False, repr=False)

    @property
    def leaves(self) -> tuple[Node, ...]:
        """The leaves that gradients are accumulated into."""
        return tuple(n for n in self.nodes if n.kind == "leaf")

    @property
    def names(self) -> dict[int, str]:
        """Variable or parameter name by node id, of the nodes that have one."""
        return {n.id: n.label for n in self.nodes if n.label}

    def saved_bytes(self) -> dict[str, int]:
        """Return memory kept for backward by module path, with everything under it; ``""`` is the whole graph.

        What several nodes share, such as an activation that two ops saved, is counted once.
        """
        held: dict[str, dict[int, int]] = {"": {}}
        for node in self.nodes:
            parts = node.scope.split(".") if node.scope else []
            for depth in range(len(parts) + 1):
                scope = held.setdefault(".".join(parts[:depth]), {})
                scope.update((storage.number, storage.bytes) for storage in node.storages)
        return {scope: sum(sizes.values()) for scope, sizes in sorted(held.items()) if sizes or not scope}

    def collapse(self, depth: int = 1) -> AutogradGraph:
        """Fold the nodes of modules deeper than ``depth`` into one node each, without ever making a cycle.

        Args:
            depth: 1 keeps one node for each outermost module's call, 2 one for each of their children, and so on.

        Returns:
            A smaller graph; a node with several ``members`` stands for all of them.
        """
        folded: AutogradGraph = render("collapse", self, depth)
        return folded

    def to_svg(self, boxes: int | None = 300) -> str:
        """Return the picture as an SVG document, drawn without any program.

        Args:
            boxes: fold repeats, and modules until about this many boxes are left; None draws every node.
        """
        svg: str = render("svg", self, boxes=boxes)
        return svg

    def to_dot(self) -> Any:
        """Return the graph as a ``graphviz.Digraph`` with the same information, for whoever has ``dot``."""
        return render("dot", self)

    def __repr__(self) -> str:
        return f"<AutogradGraph {plural(len(self.nodes), 'node')}, {plural(len(self.edges), 'edge')}>"


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector inside the block; afterwards it is as it was.

    Making tens of thousands of objects that all live on sets the collector off again and again, and each time it
    looks through everything that torch has loaded: more than half of the time of drawing a large graph.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
