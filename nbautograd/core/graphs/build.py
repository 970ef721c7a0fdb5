"""From tensors to their backward graph: an iterative walk that runs nothing and never raises for a graph's state."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from nbautograd.core.checked import wrong_gradients
from nbautograd.core.display import Phrase
from nbautograd.core.graphs.graph import AutogradGraph, Edge, Ghost, Node, Origin, Stale, collector_paused
from nbautograd.core.graphs.modules import exact_modules, infer_scopes, scope_types
from nbautograd.core.graphs.names import NamedTensors, Names, tensors_in
from nbautograd.core.graphs.nodes import EMPTY, Describer, NodeFacts, arguments_of, judged, stale_edges
from nbautograd.core.graphs.saved import SavedReader
from nbautograd.core.graphs.schedule import LEAF, engine_order
from nbautograd.core.stumbles import ask, hands_over
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private.nodes import (
    MOST_NODES,
    function_of,
    leaf_tensor,
    raw_slot_names,
    raw_slots,
    root_edge,
    saved_peek,
    sequence_number,
)
from nbautograd.core.values import TensorSummary

SAVED_OF_OPS = 300  # in larger graphs only custom Functions tell what they saved
MOST_TOLD = 3  # sentences of one kind


def graph(
    tensors: Any,
    *,
    names: Mapping[str, Any] | nn.Module | None = None,
    saved: bool | None = None,
    first: AutogradGraph | None = None,
) -> AutogradGraph:
    """Read the backward graph of one or more tensors, before or after backward, without running anything.

    Args:
        tensors: a tensor, or lists, tuples, dicts and model outputs that hold tensors, nested or not.
        names: variable name -> tensor or module, for the labels (other values are ignored), or a module; None takes the
            variables of the calling code.
        saved: whether to read what torch's own nodes saved; None does so in graphs of at most 300 nodes. What custom
            Functions saved is always read.
        first: the result of ``backward(..., create_graph=True)`` that made this gradient: each node then names the node
            there that it comes from.

    Returns:
        The graph. Buffers that a backward freed are marked, a tensor without a graph is a root without a node.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> loss = (a * a).sum()
        >>> [node.name for node in nbautograd.graph(loss).nodes]
        ['SumBackward0', 'MulBackward0', 'AccumulateGrad']
    """
    with collector_paused():
        made = Walk(tensors, Names(names), saved).finish()
        return made if first is None else replace(made, nodes=tuple(_tied_to(first, made.nodes)), first=first)


@dataclass
class BackwardFlow:
    """Record of what one backward carried.

    Attributes:
        nodes: node id -> the sums that arrived at it, one per output.
        edges: (node id, position among its gradients) -> what it sent there; None when it sent None.
        ran: node ids in the order in which the engine ran them.
        first_bad: the first node that made a NaN or an Inf out of finite gradients, and which of the two it made.
        made: with ``create_graph``: node id -> sequence numbers of the first node that it made and one past the last.
    """

    nodes: dict[int, tuple[TensorSummary | None, ...]] = field(default_factory=dict)
    edges: dict[tuple[int, int], TensorSummary | None] = field(default_factory=dict)
    ran: list[int] = field(default_factory=list)
    made: dict[int, tuple[int, int]] = field(default_factory=dict)
    first_bad: tuple[int, str] | None = None

    def carried(self, node: int, position: int, target: int) -> tuple[TensorSummary | None, str]:
        """Return the gradient that an edge carried, and the edge's state."""
        if not self.ran:
            return None, ""
        summary = self.edges.get((node, position))
        if summary is not None:
            return summary, "flowed"
        return None, "none" if target in self.nodes and (node, position) in self.edges else "not reached"

    def into(self, node: int) -> TensorSummary | None:
        """Return the first gradient that arrived at a node, of one or several outputs."""
        return next((summary for summary in self.nodes.get(node, ()) if summary is not None), None)


class Walk:
    """The live nodes behind some tensors; gone as soon as the graph of plain data is made.

    Attributes:
        live: torch's own node objects, by node id.
        described: the nodes as plain data, as they were when the walk met them.
        following: for each node (target id, position among the source's gradients, output of the target).
        tensors: the tensors asked for, with their places.
        notes: sentences about what is missing; remarks: about what was seen.
        roots: node id and output of each of them.
    """

    def __init__(self, tensors: Any, names: Names, saved: bool | None = None) -> None:
        self.names = names
        self.tensors = tensors_in(tensors)
        self.live: list[Any] = []
        self._next: list[Any] = []
        self.following: list[list[tuple[int, int, int]]] = []
        self.stops: dict[int, tuple[int, ...]] = {}
        self.notes: list[Phrase] = []
        self.remarks: list[Phrase] = []
        self.roots: list[tuple[int | None, int]] = []
        self._walk()
        self._read = len(self.live) <= SAVED_OF_OPS if saved is None else saved
        self.sequence = [sequence_number(node) for node in self.live]
        self.leaves = [
            leaf_tensor(node) if number == LEAF else None for node, number in zip(self.live, self.sequence, strict=True)
        ]
        self.described = self._describe()

    def _walk(self) -> None:
        index: dict[Any, int] = {}
        starts = [root_edge(tensor) for _, tensor in self.tensors]
        try:
            for node, _ in starts:
                if node is not None and node not in index:
                    self._descend(node, index)
        except KeyboardInterrupt:
            self.notes.append(Phrase("graphs.cut", nodes=len(self.live)))
        self.roots = [(index.get(node), number) for node, number in starts]
        self._next += [()] * (len(self.live) - len(self._next))  # after an interrupt between the two
        for i, following in enumerate(self._next):
            self.following.append([(index[n], k, nr) for k, (n, nr) in enumerate(following) if n in index])
            if len(self.following[-1]) < len(following):
                self.stops[i] = tuple([k for k, (n, _) in enumerate(following) if n is None])
        self._next.clear()

    def _descend(self, root: Any, index: dict[Any, int]) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            if node in index:
                continue
            if len(self.live) >= MOST_NODES:
                self.notes.append(Phrase("graphs.cut", nodes=len(self.live)))
                return
            index[node] = len(self.live)
            self.live.append(node)
            following = node.next_functions
            self._next.append(following)
            for n, _ in reversed(following):
                if n is not None and n not in index:
                    stack.append(n)

    def expected(self, i: int, position: int) -> tuple[int, ...] | None:
        """Return the shape that the target of an edge expects."""
        for target, k, nr in self.following[i]:
            if k == position and nr < len(self.described[target].gradients):
                return self.described[target].gradients[nr].shape
        return None

    def _describe(self) -> list[Node]:
        describer = Describer(self.names, SavedReader(self.names.label), self._read)
        homes = {i: self.names.homes.get(id(leaf), []) for i, leaf in enumerate(self.leaves) if leaf is not None}
        frozen = self._frozen()
        ops = [str(node.name()) for node in self.live]
        scopes = infer_scopes(homes, self.numbers(), self.following, self.names.modules, ops, frozen)
        exact = exact_modules(self.sequence, self.names.paths)
        if exact:  # watched while it ran: nothing is guessed, but for the leaves
            scopes = {i: scope for i, scope in scopes.items() if i in homes} | {i: m.scope for i, m in exact.items()}
        outputs: dict[int, tuple[int, ...]] = {}
        for position, (root, _) in enumerate(self.roots):
            if root is not None:
                outputs[root] = (*outputs.get(root, ()), position)
        nodes = []
        for i, node in enumerate(self.live):
            leaf = self.leaves[i]
            number = None if leaf is not None else self.sequence[i]
            known = NodeFacts(number, leaf, self.stops.get(i, ()), scopes.get(i, ""), outputs.get(i, ()))
            nodes.append(describer.describe(i, node, known))
        nodes = [replace(node, frozen=True) if node.id in frozen else node for node in nodes]
        if exact:
            nodes = [replace(node, calls=exact[node.id].calls) if node.id in exact else node for node in nodes]
        return nodes

    def _frozen(self) -> dict[int, str]:
        """Return for each node that saved a frozen parameter its module, which no leaf tells."""
        found = {}
        for i, node in enumerate(self.live):
            for name in () if self.leaves[i] is not None else raw_slot_names(type(node)):
                for _, slot in raw_slots(node, name) or ():
                    tensor = saved_peek(slot)[0]
                    weight = tensor if tensor is None or tensor._base is None else tensor._base
                    if weight is not None and id(weight) in self.names.module_of and not weight.requires_grad:
                        found[i] = self.names.homes.get(id(weight), [""])[0]
        return found

    def numbers(self) -> list[int]:
        """Return sequence numbers, with the highest where torch does not say."""
        return [LEAF if number is None else number for number in self.sequence]

    def finish(self, flow: BackwardFlow | None = None) -> AutogradGraph:
        """Make the graph of plain data, with what a backward carried if one ran."""
        flow = flow or BackwardFlow()
        nodes = self.described
        if flow.ran:
            bad = flow.first_bad or (-1, "")
            nodes = [
                replace(node, gradient=flow.into(node.id), first_bad=bad[1] if node.id == bad[0] else "")
                for node in nodes
            ]
        many = len(self.tensors) > 1
        names = [  # the user's, else its place, else "output"
            self.names.label(tensor) or place or Phrase("graphs.output", number=f" {i}" if many else "")
            for i, (place, tensor) in enumerate(self.tensors)
        ]
        following = [[target for target, _, _ in edges] for edges in self.following]
        cut_off = disconnected_tensors(self.live, self.leaves, self.names)
        told = [Phrase("graphs.ghost", name=ghost.name) for ghost in cut_off]
        made = AutogradGraph(
            nodes=tuple(nodes),
            edges=tuple([edge for i in range(len(nodes)) for edge in self._edges(nodes[i], nodes, flow)]),
            roots=tuple((node, name) for (node, _), name in zip(self.roots, names, strict=True)),
            order=tuple(engine_order(following, self.numbers(), [at for at, _ in self.roots if at is not None])),
            scopes=scope_types(nodes, self.names.modules),
            slots=tuple(number for _, number in self.roots),
            ran=tuple(flow.ran),
            complete=not self.notes,
            read=self._read,
            notes=(*self.notes, *self.remarks, *self._about(nodes, names), *told),
            ghosts=cut_off,
            made=flow.made,
            tensors=NamedTensors(self.names.tensors),
        )
        classes = {i: library.written_as(cls) for i, node in enumerate(self.live) if (cls := function_of(node))}
        return judged(made, {i: wrong for i, cls in classes.items() if (wrong := wrong_gradients(cls))})

    def _edges(self, node: Node, nodes: list[Node], flow: BackwardFlow) -> list[Edge]:
        following = self.following[node.id]
        of = arguments_of(node, [k for _, k, _ in following])
        stale = stale_edges(node, [k for _, k, _ in following]) if node.stale else None
        edges = []
        for target, k, nr in following:
            slots = nodes[target].gradients
            slot = slots[nr] if nr < len(slots) else EMPTY
            carried = flow.carried(node.id, k, target) if flow.ran else (None, "")
            gradient, state, spoilt = *carried, stale.get(k, "") if stale else ""
            name = node.inputs[of[k]] if of.get(k, len(node.inputs)) < len(node.inputs) else ""
            edge = node.id, target, k, nr, slot.shape, slot.dtype, gradient, name, state, (), spoilt
            edges.append(Edge(*edge))
        return edges

    def _about(self, nodes: list[Node], names: Sequence[str | Phrase]) -> list[Phrase]:
        cut = [name for (node, _), name in zip(self.roots, names, strict=True) if node is None]
        remarks = [Phrase("graphs.no_graph", name=name) for name in cut]
        remarks += [
            Phrase("graphs.is_leaf", name=name)
            for (node, _), name in zip(self.roots, names, strict=True)
            if node is not None and nodes[node].kind == "leaf"
        ]
        if not self.tensors:
            remarks.append(Phrase("graphs.no_tensor"))
        freed = sum(node.freed for node in nodes)
        if freed:
            remarks.append(Phrase("graphs.freed", count=freed))
        remarks += list(dict.fromkeys(_changed(node, stale) for node in nodes for stale in node.stale))[:MOST_TOLD]
        return remarks


def _changed(node: Node, stale: Stale) -> Phrase:
    place = None if stale.line is None else Phrase("views.line", line=stale.line)
    by = stale.by if place is None else f"{place}: `{stale.by}`"
    return Phrase(
        "graphs.stale",
        name=stale.name or stale.slot,
        node=node.function or node.name,
        saved=stale.saved,
        now=stale.now,
        by=Phrase("graphs.changed_line", by=by) if by else "",
    )


def _tied_to(first: AutogradGraph, nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield each second-order node with the first-order node that it is, or whose backward created it.

    Sums of gradients that the engine made between two nodes come from none of them.
    """
    own = {node.sequence: node for node in first.nodes if node.sequence is not None}
    made = sorted((begin, end, i) for i, (begin, end) in first.made.items() if begin < end)
    begins = [begin for begin, _, _ in made]
    for node in nodes:
        number = node.sequence
        origin: Origin | None = None
        at = -1 if number is None else bisect_right(begins, number) - 1
        if number in own and own[number].name == node.name:
            origin = Origin(own[number].id, _title_of(own[number]), True)
        elif number is not None and at >= 0 and number < made[at][1]:
            source = first.nodes[made[at][2]]
            origin = Origin(source.id, _title_of(source), False)
        yield replace(node, origin=origin)


def _title_of(node: Node) -> str:
    return (node.label if node.kind == "leaf" else "") or node.function or str(node.name)


MOST_GHOSTS = 12  # tensors without a way to them that are drawn
MOST_SEARCHED = 300  # nodes whose saved tensors are looked at
FEW_NAMES = 16  # tensors named one by one are all meant; a whole namespace is not


def disconnected_tensors(live: Sequence[Any], leaves: Sequence[torch.Tensor | None], names: Names) -> tuple[Ghost, ...]:
    """Find the named leaves that need a gradient and get none from this graph.

    A parameter counts when others of its module are in the graph; another leaf when a node saved what it holds, or when
    it was named one by one.
    """
    reached = {id(leaf) for leaf in leaves if leaf is not None}
    wanting = [(name, tensor) for name, tensor in names.wanting if id(tensor) not in reached]
    missing = [(name, tensor) for name, tensor in wanting if ask(partial(_is_leaf, tensor), False)]
    if not missing or not live:
        return ()
    users = _users(live, missing, {_place(leaf) for leaf in leaves if leaf is not None})
    modules = {names.module_of[id(leaf)] for leaf in leaves if leaf is not None and id(leaf) in names.module_of}
    one_by_one = names.explicit and len(names.wanting) <= FEW_NAMES
    ghosts: list[Ghost] = []
    for name, tensor in missing:
        user = users.get(_place(tensor))
        if user is not None or one_by_one or names.module_of.get(id(tensor)) in modules:
            ghosts.append(Ghost(name, "unused" if user is None else "detach", tuple(tensor.shape), user))
    return tuple(ghosts[:MOST_GHOSTS])


@hands_over
def _is_leaf(tensor: torch.Tensor) -> bool:
    return tensor.is_leaf  # raises for a view whose base was changed in place under no_grad


def _users(live: Sequence[Any], missing: Sequence[tuple[str, torch.Tensor]], reached: set[int]) -> dict[int, int]:
    """Find the nodes that saved a missing tensor's memory and pass one of their inputs no gradient."""
    wanted = {_place(tensor) for _, tensor in missing} - reached - {0}
    users: dict[int, int] = {}
    if not wanted or len(live) > MOST_SEARCHED:
        return users
    for i, node in enumerate(live):
        if all(target is not None for target, _ in node.next_functions):
            continue
        for name in ("tensors",) if function_of(node) is not None else raw_slot_names(type(node)):
            for _, slot in raw_slots(node, name) or ():
                tensor, _ = saved_peek(slot)
                if tensor is not None and (place := _place(tensor)) in wanted:
                    users.setdefault(place, i)
    return users


def _place(tensor: torch.Tensor) -> int:
    return ask(lambda: tensor.data_ptr(), 0)  # functorch, sparse and meta tensors refuse
