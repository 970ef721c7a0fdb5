"""Opening: a folded graph with some of its boxes opened one level, those inside of them in turn; never a cycle.

Every box stands for nodes that follow one another in the engine's order, and so do the parts that it is opened into.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nbautograd.core.graphs.folding import begun, contract
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.graphs.repeat_names import named, parts
from nbautograd.core.graphs.repeats import find_repeats
from nbautograd.core.graphs.segments import Stretch, cut

PART = 40  # nodes of one box, when what is opened has no modules inside
TIMES = 120  # parts that a repeat is opened into; of more, at most PART boxes are made, each a repeat


def open_boxes(graph: AutogradGraph, opened: Collection[str], most: int) -> AutogradGraph:
    """A graph folded as it is drawn to begin with, with some of its boxes opened.

    Args:
        graph: the whole graph.
        opened: keys of the boxes that are opened: ``"g12"`` is the box whose first node, in the engine's order, is 12.
            A box may begin with the same node as one of its parts and so have the same key; a key opens as often as it
            is given. Keys that nothing has are ignored.
        most: as for ``fold_to``.
    """
    found = [inner for stretch in begun(graph, most) for inner in _opened(graph, stretch, list(opened))]
    return contract(graph, found)


def _opened(graph: AutogradGraph, stretch: Stretch, opened: list[str]) -> list[Stretch]:
    """A stretch as it is, or its parts when it is opened, those opened in turn."""
    key = f"g{stretch.nodes[0]}"
    if len(stretch.nodes) < 2 or key not in opened:
        return [stretch]
    rest = list(opened)
    rest.remove(key)
    return [inner for part in _parts(graph, stretch) for inner in _opened(graph, part, rest)]


def _parts(graph: AutogradGraph, stretch: Stretch) -> list[Stretch]:
    """The parts of a repeat; of a module the calls one level deeper, repeats folded, and what is outside single."""
    if stretch.times > TIMES:
        return _fewer(graph, stretch)
    if stretch.times > 1:
        return parts(graph, stretch)
    runs = find_repeats(graph, stretch.nodes)
    found = cut(graph, stretch.nodes, stretch.path.count(".") + 2 if stretch.path else 1, runs)
    if len(found) == len(stretch.nodes) > PART:
        return [Stretch(stretch.path, nodes) for nodes in _cut(stretch.nodes)]
    return found if len(found) > 1 else [Stretch("", [i]) for i in stretch.nodes]


def _fewer(graph: AutogradGraph, repeat: Stretch) -> list[Stretch]:
    """A repeat of very many parts as repeats of fewer."""
    size = len(repeat.nodes) // repeat.times
    each = size * -(-repeat.times // PART)
    pieces = [repeat.nodes[at : at + each] for at in range(0, len(repeat.nodes), each)]
    return [named(graph, piece, len(piece) // size) for piece in pieces]


def _cut(nodes: Sequence[int]) -> list[list[int]]:
    size = max(PART, -(-len(nodes) // PART))
    return [list(nodes[at : at + size]) for at in range(0, len(nodes), size)]
