"""Side by side: the first graph at the left of that of its derivative, each node tied to the one that it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, Origin
from nbautograd.views.layout import Box, Layout, Path
from nbautograd.views.layout.clusters import box_key

GAP = 70  # between the two graphs
MOST = 80  # boxes of either graph; of larger ones only the words in the boxes tell where a node comes from
MOST_TIES = 60
FIRST = "f."  # what the keys of the first graph's boxes begin with


def side_by_side(first: Layout, second: Layout, drawn: AutogradGraph) -> Layout:
    """Return both layouts as one.

    Args:
        first: of the first graph.
        second: of the graph of the derivative.
        drawn: the graph that ``second`` shows, folded or not.
    """
    if max(len(first.boxes), len(second.boxes)) > MOST or not any(node.origin for node in drawn.nodes):
        return second
    moved = _moved(second, first.width + GAP)
    ties = list(_ties(first, moved, drawn))[:MOST_TIES]
    return replace(
        moved,
        width=moved.width + first.width + GAP,
        height=max(first.height, second.height),
        boxes=(*moved.boxes, *[replace(box, key=FIRST + box.key, nodes=()) for box in first.boxes]),
        paths=(*[_of_first(path) for path in first.paths], *moved.paths, *ties),
        note=f"{messages.text('graphs.beside')} {second.note}".strip(),
    )


def _of_first(path: Path) -> Path:
    return replace(path, source=FIRST + path.source, target=FIRST + path.target, edges=())


def _moved(made: Layout, by: int) -> Layout:
    """Return the layout moved to the right."""
    paths = [
        replace(path, points=tuple([(x + by, y) for x, y in path.points]), label_x=path.label_x + by)
        for path in made.paths
    ]
    return replace(made, boxes=tuple([replace(box, x=box.x + by) for box in made.boxes]), paths=tuple(paths))


def _ties(first: Layout, second: Layout, drawn: AutogradGraph) -> Iterator[Path]:
    boxes = {box.key: box for box in second.boxes}
    places = {node: box for box in first.boxes if box.kind not in ("output", "portal") for node in box.nodes}
    for node in drawn.nodes:
        box = boxes.get(box_key(node))
        if node.origin is not None and box is not None and node.origin.node in places:
            yield _tie(box, places[node.origin.node], node.origin)


def _tie(box: Box, source: Box, origin: Origin) -> Path:
    """Return a line from a box of the second graph to one of the first."""
    x, y = box.x, box.y + box.height // 2
    end, height = source.x + source.width, source.y + source.height // 2
    middle = (x + end) // 2
    points = ((x, y), (middle, y), (middle, height), (end, height))
    return Path(box.key, FIRST + source.key, (), points, style="same" if origin.same else "tie")
