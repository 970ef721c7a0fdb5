"""Pictures that the graph view asks for: boxes opened, a lens that writes into them, a tensor drawn as a ghost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.errors import InputError
from nbautograd.views.layout import Layout, layout
from nbautograd.views.layout.columns import WIDE
from nbautograd.widgets import graph_why
from nbautograd.widgets.states import Picture, PictureAnswer

MOST_OPENED = 1_000  # boxes opened at once
MOST_DRAWN = 30_000  # nodes that are laid out one by one
TITLES = 300  # characters of a box's scope


def picture_state(graph: AutogradGraph, made: Layout) -> Picture:
    """The layout, and the module of each box; what is missing stands in the graph's own notes."""
    scopes = {box.key: _scope(graph, box.nodes) for box in made.boxes}
    return Picture(
        layout=made,
        scopes={key: scope for key, scope in scopes.items() if scope},
        ghosts=[ghost.name for ghost in graph.ghosts],
    )


def _scope(graph: AutogradGraph, nodes: tuple[int, ...]) -> str:
    """The innermost module that all of some nodes belong to."""
    paths = [graph.nodes[i].scope.split(".") for i in nodes if i < len(graph.nodes)]
    same = 0
    while paths and all(len(path) > same and path[same] == paths[0][same] for path in paths):
        same += 1
    return ".".join(paths[0][:same])[:TITLES] if paths else ""


def _is_width(wide: Any) -> bool:
    return wide is None or (type(wide) is int and 0 < wide <= WIDE)


def first_picture(graph: AutogradGraph) -> Picture:
    """Return the picture that is drawn to begin with: the static one."""
    return picture_state(graph, layout(replace(graph, notes=())))


def picture(graph: AutogradGraph, question: Mapping[str, Any]) -> PictureAnswer:
    """The picture that the page asks for.

    Args:
        graph: the whole graph.
        question: ``opened`` (keys of boxes, or ``"all"``), ``lens``, ``name`` of a tensor whose gradient is missed, and
            ``wide``, the px that there are where that is less than on a wide page.

    Raises:
        InputError: when it makes no sense.
    """
    opened, lens, wide = question.get("opened", []), question.get("lens") or "", question.get("wide")
    sound = isinstance(opened, list) and len(opened) <= MOST_OPENED and all(isinstance(key, str) for key in opened)
    whole = opened == "all" and len(graph.nodes) <= MOST_DRAWN
    if not (sound or whole) or lens not in ("", "memory", "stale", "gradients") or not _is_width(wide):
        raise InputError("widgets.no_box")
    asked = graph_why.answer(graph, question) if question.get("name") else None
    drawn = replace(graph if asked is None else graph_why.with_ghost(graph, asked), notes=())
    boxes = {"boxes": None} if whole else {"opened": opened}
    made = layout(drawn, lens="memory" if lens == "memory" else "", wide=wide, **boxes)
    answer = PictureAnswer(**vars(picture_state(graph, made)))
    if asked is None:
        return answer
    at = drawn.ghosts.index(asked.ghost) if asked.ghost is not None else None
    said = asked.finding
    return replace(answer, message=said.message, line=said.line, node=asked.node, ghost=at)
