"""From torch's live node objects to nodes of plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from nbautograd.core.display import Phrase
from nbautograd.core.graphs.graph import AutogradGraph, Node, Slot
from nbautograd.core.graphs.names import Names
from nbautograd.core.graphs.saved import SavedMemory, SavedReader
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private.nodes import all_gone, function_of, gradient_slots, node_name

EMPTY = Slot()


class NodeFacts(NamedTuple):
    """Facts that the walk knows of a node before it is described.

    Attributes:
        sequence: its sequence number, None when torch does not say.
        leaf: the tensor, for AccumulateGrad.
        stops: positions among its gradients that go nowhere.
        scope: path of its module.
        outputs: which of the roots it made.
    """

    sequence: int | None
    leaf: torch.Tensor | None
    stops: tuple[int, ...]
    scope: str
    outputs: tuple[int, ...]


class Describer:
    """Describes the nodes of one graph.

    Args:
        names: what the user calls the tensors.
        reader: reads what nodes saved.
        saved_of_ops: False leaves out what torch's own nodes saved, to keep large graphs quick.
    """

    def __init__(self, names: Names, reader: SavedReader, saved_of_ops: bool) -> None:
        self._names = names
        self._reader = reader
        self._saved_of_ops = saved_of_ops
        self._memory = SavedMemory(names.label)
        self._slots: dict[Any, Slot] = {}

    def describe(self, i: int, node: Any, known: NodeFacts) -> Node:
        """Describe one node."""
        slots = tuple([self._slot(raw) for raw in gradient_slots(node)])
        if known.leaf is not None:
            return self._leaf(i, known, slots)
        cls, first = function_of(node), slots[0] if slots else EMPTY
        same: dict[str, Any] = {
            "label": self._names.nodes.get(node, ""),
            "scope": known.scope,
            "sequence": known.sequence,
            "shape": first.shape,
            "dtype": first.dtype,
            "outputs": known.outputs,
            "gradients": slots,
            "stops": known.stops,
        }
        return self._op(i, node, same) if cls is None else self._function(i, node, cls, same)

    def _slot(self, raw: tuple[Any, Any, Any]) -> Slot:
        slot = self._slots.get(raw)
        if slot is None:
            shape, dtype, device = raw
            text = None if dtype is None else str(dtype).removeprefix("torch.")
            slot = self._slots[raw] = Slot(shape, text, "" if device is None else str(device))
        return slot

    def _leaf(self, i: int, known: NodeFacts, slots: tuple[Slot, ...]) -> Node:
        tensor = known.leaf
        assert tensor is not None
        slot = slots[0] if slots else self._slot((tuple(tensor.shape), tensor.dtype, tensor.device))
        return Node(
            id=i,
            name="AccumulateGrad",
            kind="leaf",
            label=self._names.label(tensor),
            scope=known.scope,
            shape=slot.shape,
            dtype=slot.dtype,
            outputs=known.outputs,
            gradients=slots,
        )

    def _op(self, i: int, node: Any, same: dict[str, Any]) -> Node:
        saved, freed = self._reader.op(node) if self._saved_of_ops else ((), all_gone(node))
        storages, stale = self._memory.read(node, ()) if self._saved_of_ops else ((), ())
        kept: dict[str, Any] = {"saved": saved, "freed": freed, "storages": storages, "stale": stale}
        return Node(i, node_name(node), "op", **kept, **same)

    def _function(self, i: int, node: Any, cls: type, same: dict[str, Any]) -> Node:
        source = self._reader.source(library.written_as(cls))
        ctx = self._reader.ctx(node, source)
        storages, stale = self._memory.read(node, (source.saved if source is not None else None) or ())
        name = library.name_of(cls)
        return Node(
            i,
            f"{name}Backward" if library.is_generated(cls) else node_name(node),
            "function",
            saved=ctx.saved_tensors,
            ctx=ctx,
            freed=ctx.freed,
            line=None if source is None else source.first_line,
            function=name,
            inputs=() if source is None else source.inputs,
            storages=storages,
            stale=stale,
            **same,
        )


def arguments_of(node: Node, positions: list[int]) -> dict[int, int]:
    """Return for a custom Function the position of the argument that each of its gradients belongs to.

    The node has one gradient per *tensor* argument, ``needs_input_grad`` one flag per argument; the gradients that go
    somewhere are, in order, those of the arguments whose flag is True.
    """
    if node.ctx is None:
        return {}
    wanted = [i for i, flag in enumerate(node.ctx.needs_input_grad) if flag]
    if len(wanted) != len(positions):
        return {}
    return dict(zip(positions, wanted, strict=True))


def judged(graph: AutogradGraph, wrong: Mapping[int, Mapping[int, Phrase]]) -> AutogradGraph:
    """Return the graph with what the latest check of a class said of the gradients of its nodes.

    Args:
        graph: the graph.
        wrong: for each of those nodes what is wrong, by position among forward's arguments.
    """
    if not wrong:
        return graph
    passed = {i: [edge.input_nr for edge in graph.edges if edge.source == i] for i in wrong}
    of = {i: arguments_of(graph.nodes[i], positions) for i, positions in passed.items()}
    edges = [
        replace(edge, wrong=wrong[edge.source].get(of[edge.source].get(edge.input_nr, -1), ""))
        if edge.source in wrong
        else edge
        for edge in graph.edges
    ]
    return replace(graph, edges=tuple(edges))


def stale_edges(node: Node, positions: list[int]) -> dict[int, str]:
    """Return the gradients that a node can no longer compute: all of them, unless the saved tensors tell which.

    A product needs for the gradient of one factor the other one, so that a change of ``self`` spoils that of ``other``.
    """
    text = f"v{node.stale[0].saved} → v{node.stale[0].now}"
    spoilt = {"self": 1, "mat1": 1, "other": 0, "mat2": 0}
    slots = {stale.slot for stale in node.stale}
    if str(node.name).startswith(("Mul", "Mm", "Bmm")) and slots <= spoilt.keys():
        return {spoilt[slot]: text for slot in slots}
    return dict.fromkeys(positions, text)
