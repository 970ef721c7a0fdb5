"""Build: from a graph to its layout, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from nbautograd import messages
from nbautograd.core.graphs.folding import fold_to, largest, open_boxes
from nbautograd.core.graphs.graph import AutogradGraph, Node, Origin, collector_paused
from nbautograd.views.layout import Box, Layout, Path
from nbautograd.views.layout.clusters import Clusters, box_key
from nbautograd.views.layout.contents import commonest_dtype, edge_text
from nbautograd.views.layout.layers import WIDE, layered
from nbautograd.views.layout.paths import Frame, chip_boxes, link_paths
from nbautograd.views.layout.sugiyama import order, place
from nbautograd.views.layout.text import printable, shape_text, text_width

NAMED = 12  # nodes named one by one in the description


def title(graph: AutogradGraph) -> str:
    """Return one line naming the graph."""
    names = ", ".join(str(name) for _, name in graph.roots[:4]) + (", …" if len(graph.roots) > 4 else "")
    return printable(messages.text("graphs.title", name=names))


def description(graph: AutogradGraph) -> str:
    """Return the graph in words: how large, then node by node in the order of backward."""
    size = messages.text("graphs.size", nodes=len(graph.nodes), edges=len(graph.edges))
    told = [_node_name(graph.nodes[i]) for i in graph.order[:NAMED]]
    left = len(graph.order) - len(told)
    if left > 0:
        told.append(messages.text("graphs.more", count=left))
    steps = messages.text("graphs.steps", steps=" → ".join(told)) if told else ""
    return printable(f"{size} {steps}".strip())


def _node_name(node: Node) -> str:
    name = node.label or messages.text("graphs.leaf") if node.kind == "leaf" else node.function or node.name
    shape = shape_text(node.shape) if node.kind == "leaf" else ""
    return f"{name} {shape}".strip()


def note(graph: AutogradGraph, drawn: AutogradGraph) -> str:
    """Return the line under the picture: what is folded, what is missing."""
    parts = list(map(str, graph.notes))
    if drawn is not graph:
        parts.insert(0, messages.text("graphs.folded", shown=len(drawn.nodes), nodes=len(graph.nodes)))
    return printable(" ".join(parts))


APART = 70  # two graphs side by side
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
    moved = _moved(second, first.width + APART)
    paths = [replace(path, source=FIRST + path.source, target=FIRST + path.target, edges=()) for path in first.paths]
    ties = list(_ties(first, moved, drawn))[:MOST_TIES]
    return replace(
        moved,
        width=moved.width + first.width + APART,
        height=max(first.height, second.height),
        boxes=(*moved.boxes, *[replace(box, key=FIRST + box.key, nodes=()) for box in first.boxes]),
        paths=(*paths, *moved.paths, *ties),
        note=f"{messages.text('graphs.beside')} {second.note}".strip(),
    )


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


MARGIN = 14
GAP = 22  # between neighbours in a layer
BUDGET = 400_000  # neighbours that the search for a good order may look at


def build(graph: AutogradGraph, boxes: int | None, opened: Collection[str] = (), wide: int = WIDE) -> Layout:
    """Lay out a graph; see ``layout``."""
    with collector_paused():
        drawn = _drawn(graph, boxes, opened)
        if graph.first is None:
            return _build(graph, drawn, wide)
        first = _build(graph.first, _drawn(graph.first, boxes, ()), 0)
        return side_by_side(first, _build(graph, drawn, 0), drawn)


def _drawn(graph: AutogradGraph, boxes: int | None, opened: Collection[str]) -> AutogradGraph:
    if boxes is None:
        return graph
    return open_boxes(graph, opened, boxes) if opened else fold_to(graph, boxes)


def _build(graph: AutogradGraph, drawn: AutogradGraph, wide: int) -> Layout:
    """Place the boxes; ``wide`` is the room for columns of a long chain, 0 for one column in any case."""
    clusters = Clusters(drawn)
    stack = layered(clusters)
    order(stack.layers, BUDGET)
    x = place(stack.layers, stack.left, stack.right, stack.dummy, GAP)
    frame = Frame(clusters, stack, x, MARGIN, wide)
    made, short = _boxes(clusters, frame)
    said = {i: printable(str(edge.wrong).replace("`", "")) for i, edge in enumerate(graph.edges) if edge.wrong}
    paths = link_paths(clusters.links, stack.chains, frame) + short
    if said:
        told = [next((said[i] for i in path.edges if i in said), "") for path in paths]
        pairs = zip(paths, told, strict=True)
        paths = [replace(path, style="wrong", title=title) if title else path for path, title in pairs]
    return Layout(
        width=max(frame.right, *[p.label_x + text_width(p.label, "label") for p in paths if p.label], 0) + MARGIN,
        height=frame.height + MARGIN,
        boxes=tuple(made),
        paths=tuple(paths),
        title=title(graph),
        description=description(graph),
        note=note(graph, drawn),
        order=_order(drawn, made),
    )


SPARE = 12  # px beside a label


def with_flow(made: Layout, graph: AutogradGraph) -> Layout:
    """Return a layout with what flowed since on its arrows, of several gradients the largest, all in its place.

    Args:
        made: the layout of the graph before backward.
        graph: the graph after it.
    """
    dtype = commonest_dtype(graph)

    def told(path: Path) -> Path:
        if not path.edges or path.style == "wrong":
            return path
        most = largest([graph.edges[i] for i in path.edges])
        if most.gradient is None and not most.state:
            return path
        text, style = edge_text(replace(most, members=path.edges), dtype)
        room = text_width(path.label, "label") + SPARE
        fits = (short for short in (text, text.replace("|g| ", "")) if text_width(short, "label") <= room)
        return replace(path, label=next(fits, ""), style=style, title=path.title or text)

    return replace(made, paths=tuple(map(told, made.paths)))


def _boxes(clusters: Clusters, frame: Frame) -> tuple[list[Box], list[Path]]:
    boxes: list[Box] = []
    paths: list[Path] = []
    for i, cluster in enumerate(clusters.clusters):
        c = cluster.content
        x = frame.x[i] - c.width // 2
        y = frame.top[i]
        box = Box(
            cluster.key, c.kind, cluster.nodes, x, y, c.width, c.height, c.lines, c.title,
            cluster.fan_in, cluster.freed, cluster.frozen,
        )  # fmt: skip
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
