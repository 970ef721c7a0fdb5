"""Build: from a graph to its layout, step by step."""

from __future__ import annotations

from collections.abc import Collection

from nbautograd.core.collector import collector_paused
from nbautograd.core.graphs.folding import fold_to, open_boxes
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views.layout import Box, Layout, Path
from nbautograd.views.layout.captions import description, note, title
from nbautograd.views.layout.clusters import Clusters, box_key
from nbautograd.views.layout.columns import WIDE
from nbautograd.views.layout.layers import layered
from nbautograd.views.layout.order import order
from nbautograd.views.layout.paths import Frame, box_of, chip_boxes, link_paths
from nbautograd.views.layout.place import place
from nbautograd.views.layout.side_by_side import side_by_side
from nbautograd.views.layout.text import text_width

MARGIN = 14
GAP = 22  # between neighbours in a layer
BUDGET = 400_000  # neighbours that the search for a good order may look at


def build(
    graph: AutogradGraph, boxes: int | None, lens: str = "", opened: Collection[str] = (), wide: int = WIDE
) -> Layout:
    """Lay out a graph; see ``layout``."""
    with collector_paused():
        drawn = _drawn(graph, boxes, opened)
        if graph.first is None:
            return _build(graph, drawn, lens, wide)
        first = _build(graph.first, _drawn(graph.first, boxes, ()), lens, 0)
        return side_by_side(first, _build(graph, drawn, lens, 0), drawn)


def _drawn(graph: AutogradGraph, boxes: int | None, opened: Collection[str]) -> AutogradGraph:
    if boxes is None:
        return graph
    return open_boxes(graph, opened, boxes) if opened else fold_to(graph, boxes)


def _build(graph: AutogradGraph, drawn: AutogradGraph, lens: str, wide: int) -> Layout:
    """Place the boxes; ``wide`` is the room for columns of a long chain, 0 for one column in any case."""
    clusters = Clusters(drawn, lens)
    stack = layered(clusters)
    order(stack.layers, BUDGET)
    x = place(stack.layers, stack.left, stack.right, stack.dummy, GAP)
    frame = Frame(clusters, stack, x, MARGIN, wide)
    made, short = _boxes(clusters, frame)
    paths = link_paths(clusters.links, stack.chains, frame) + short
    return Layout(
        width=max(frame.right, *[p.label_x + text_width(p.label, "label") for p in paths if p.label], 0) + MARGIN,
        height=frame.height + MARGIN,
        boxes=tuple(made),
        paths=tuple(paths),
        title=title(graph),
        description=description(graph),
        note=note(graph, drawn, lens),
        nodes=len(graph.nodes),
        shown=sum([len(node.members) < 2 for node in drawn.nodes]),
        order=_order(drawn, made),
    )


def _boxes(clusters: Clusters, frame: Frame) -> tuple[list[Box], list[Path]]:
    boxes: list[Box] = []
    paths: list[Path] = []
    for i, cluster in enumerate(clusters.clusters):
        c = cluster.content
        x = frame.x[i] - c.width // 2
        y = frame.top[i]
        box = box_of(cluster.key, c, cluster.nodes, x, y, cluster.fan_in, cluster.freed)
        boxes.append(box)
        if cluster.rights or cluster.lefts:
            chips, edges = chip_boxes(cluster, box)
            boxes += chips
            paths += edges
    return boxes, paths


def _order(drawn: AutogradGraph, boxes: list[Box]) -> tuple[str, ...]:
    """Return the keys in the engine's order; chips of one leaf, whose keys begin alike, beside each other."""
    chips: dict[str, list[str]] = {}
    plain = set()
    for box in boxes:
        if "." in box.key:
            chips.setdefault(box.key.partition(".")[0], []).append(box.key)
        else:
            plain.add(box.key)
    found: list[str] = []
    for node in drawn.order:
        key = box_key(drawn.nodes[node])
        if key in plain:
            found.append(key)
        if chips and key in chips:
            found += chips[key]
    return tuple(found)
