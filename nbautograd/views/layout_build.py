"""Build: from a graph to its layout, step by step."""

from __future__ import annotations

from nbautograd.core.graphs.folding import fold_to
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views.layout import Box, Layout, Path
from nbautograd.views.layout_layers import layered
from nbautograd.views.layout_order import order
from nbautograd.views.layout_paths import Frame, chip_boxes, link_path, place_labels
from nbautograd.views.layout_pieces import Pieces, box_key
from nbautograd.views.layout_place import place
from nbautograd.views.layout_words import description, note, title

MARGIN = 14
GAP = 22  # between neighbours in a layer
BUDGET = 400_000  # neighbours that the search for a good order may look at


def build(graph: AutogradGraph, boxes: int | None) -> Layout:
    """Lay out a graph; see ``layout``."""
    drawn = graph if boxes is None else fold_to(graph, boxes)
    pieces = Pieces(drawn)
    stack = layered(pieces)
    order(stack.layers, BUDGET)
    x = place(stack.layers, stack.left, stack.right, stack.dummy, GAP)
    frame = Frame(pieces, stack, x)
    made, short = _boxes(pieces, frame)
    paths = [link_path(link, chain, frame) for link, chain in zip(pieces.links, stack.chains, strict=True)]
    paths = place_labels(paths, frame) + short
    return _shifted(made, paths, graph, drawn)


def _boxes(pieces: Pieces, frame: Frame) -> tuple[list[Box], list[Path]]:
    boxes: list[Box] = []
    paths: list[Path] = []
    for i, piece in enumerate(pieces.pieces):
        content = piece.content
        box = Box(
            piece.key,
            content.kind,
            piece.nodes,
            frame.x[i] - content.width // 2,
            frame.top(i),
            content.width,
            content.height,
            content.lines,
            content.title,
            piece.fan_in,
            piece.freed,
        )
        boxes.append(box)
        if piece.rights or piece.lefts:
            chips, edges = chip_boxes(piece, box)
            boxes += chips
            paths += edges
    return boxes, paths


def _shifted(boxes: list[Box], paths: list[Path], graph: AutogradGraph, drawn: AutogradGraph) -> Layout:
    """Move everything so that the picture starts at the margin."""
    left = min((box.x for box in boxes), default=0)
    right = max((box.x + box.width for box in boxes), default=0)
    for path in paths:
        left = min(left, min(x for x, _ in path.points))
        right = max(right, max(x for x, _ in path.points))
    bottom = max((box.y + box.height for box in boxes), default=0)
    dx = MARGIN - left
    return Layout(
        width=right - left + 2 * MARGIN,
        height=bottom + 2 * MARGIN,
        boxes=tuple([_moved_box(box, dx) for box in boxes]),
        paths=tuple([_moved_path(path, dx) for path in paths]),
        title=title(graph),
        description=description(graph),
        note=note(graph, drawn),
        nodes=len(graph.nodes),
        shown=sum(len(node.members) < 2 for node in drawn.nodes),
        order=_order(drawn, boxes),
    )


def _moved_box(box: Box, dx: int) -> Box:
    return Box(
        box.key, box.kind, box.nodes, box.x + dx, box.y + MARGIN, box.width, box.height, box.lines, box.title,
        box.fan_in, box.freed,
    )  # fmt: skip


def _moved_path(path: Path, dx: int) -> Path:
    points = tuple([(x + dx, y + MARGIN) for x, y in path.points])
    return Path(
        path.source, path.target, path.edges, points, path.label, path.label_x + dx, path.label_y + MARGIN, path.style
    )


def _order(drawn: AutogradGraph, boxes: list[Box]) -> tuple[str, ...]:
    keys: dict[str, list[str]] = {}
    for box in boxes:
        keys.setdefault(box.key.partition(".")[0], []).append(box.key)
    return tuple([key for node in drawn.order for key in keys.get(box_key(drawn.nodes[node]), ())])
