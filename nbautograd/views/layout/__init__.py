"""Layout: where the boxes and the edges of a backward graph stand, as plain data.

``svg.py`` draws it, and the graph widget gets it as JSON (``Layout.to_dict()``), so that the static picture and the
widget's first frame are the same. The loss is at the top, gradients flow downwards.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from nbautograd.core.display import Displayable
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views.phrases import once

BOXES = 300  # of a picture, until somebody asks for more

BoxKind = Literal["op", "function", "leaf", "output", "portal", "group", "ghost"]


@dataclass(frozen=True)
class Line:
    """One line of text in a box.

    Attributes:
        text: what is drawn, already short enough for its box.
        x, y: start of the text and its base line, in px from the box's top left corner.
        style: ``"title"``, ``"text"``, ``"muted"``, ``"name"`` (of a ctx field), ``"good"`` or ``"bad"``.
    """

    text: str
    x: int
    y: int
    style: str = "text"


@dataclass(frozen=True)
class Box:
    """One box of the picture.

    Attributes:
        key: unique and stable: ``"n3"`` (node 3), ``"n3.e7"`` (the chip of leaf 3 at its use by edge 7), ``"o0"``
            (root 0), ``"x0"`` (ghost 0), ``"p7.s"`` and ``"p7.t"`` (the two stubs of edge 7, a portal), ``"g0"``
            (a group); with ``"f."`` before it, a box of the first graph beside that of its derivative.
        kind: ``"op"``, ``"function"`` (a custom Function), ``"leaf"`` (a chip), ``"output"``, ``"portal"`` (a stub that
            stands for the far end of a long edge), ``"group"`` (several nodes folded into one) or ``"ghost"`` (a tensor
            that no gradient gets to).
        nodes: ids of the nodes it stands for, in the graph that was laid out.
        x, y, width, height: top left corner and size in px.
        lines: the text in it.
        title: everything in full, for a tooltip and for a screen reader.
        fan_in: how many edges' gradients are summed on arrival; 0 or 1 when there is nothing to sum.
        freed: True when what it saved is gone.
        frozen: True when none of its parameters needs a gradient.
    """

    key: str
    kind: BoxKind
    nodes: tuple[int, ...]
    x: int
    y: int
    width: int
    height: int
    lines: tuple[Line, ...] = ()
    title: str = ""
    fan_in: int = 0
    freed: bool = False
    frozen: bool = False


@dataclass(frozen=True)
class Path:
    """One edge of the picture, from the box that computes a gradient to the box that receives it.

    Attributes:
        source, target: keys of the two boxes.
        edges: positions in ``graph.edges`` of the edges it stands for; empty for the arrow into a root, to a ghost, for
            ties and in the first graph of a derivative's.
        points: the curve: a start point, then three points (two control points, one end) per cubic Bezier piece.
        label: the gradient's shape, after backward also its norm; may be empty.
        label_x, label_y: start of the label's base line.
        title: what a check said is wrong with it, as a tooltip; else empty.
        style: ``""``, ``"wrong"`` (by its Function's latest check), ``"bad"`` (NaN or Inf flowed, or what it needs was
            changed in place), ``"zero"`` (only zeros flowed), ``"none"`` (nothing flowed); of the lines from a
            derivative's graph to the first one ``"tie"`` (to the node whose backward made it) and ``"same"`` (to the
            same node).
    """

    source: str
    target: str
    edges: tuple[int, ...]
    points: tuple[tuple[int, int], ...]
    label: str = ""
    label_x: int = 0
    label_y: int = 0
    style: str = ""
    title: str = ""


@dataclass(frozen=True, repr=False)
class Layout(Displayable):
    """A laid-out graph: plain data, JSON-ready by ``to_dict()``.

    Attributes:
        width, height: of the whole picture in px.
        boxes: all boxes; none overlaps another.
        paths: all edges, in the order of their sources.
        title: one line naming the graph.
        description: the graph in words, for a screen reader and for ``alt``.
        note: a line drawn under the picture, such as how many nodes are folded; may be empty.
        order: keys of the boxes in the order in which the engine runs them.
    """

    width: int
    height: int
    boxes: tuple[Box, ...] = ()
    paths: tuple[Path, ...] = ()
    title: str = ""
    description: str = ""
    note: str = ""
    order: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Layout {len(self.boxes)} boxes, {self.width}x{self.height}>"


def layout(
    graph: AutogradGraph,
    *,
    boxes: int | None = BOXES,
    opened: Collection[str] = (),
    wide: int | None = None,
) -> Layout:
    """Lay out a backward graph in layers, the loss on top.

    Args:
        graph: the graph to draw.
        boxes: fold repeats, and modules until about this many boxes are left; None draws every node.
        opened: keys of folded boxes, such as ``"g12"``, that are drawn opened by one level.
        wide: px that a long chain may take when it is wrapped into columns; by default as many as a wide page shows.

    Returns:
        The same layout for the same graph, always.
    """
    from nbautograd.views.layout.build import build
    from nbautograd.views.layout.layers import WIDE

    return build(graph, boxes, opened, WIDE if wide is None else wide)


@once
def first_layout(graph: AutogradGraph) -> Layout:
    """Return the layout that a report begins with, stored and live: without the graph's notes, which stand below it."""
    return layout(replace(graph, notes=()))
