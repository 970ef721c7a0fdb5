"""Graphs on a page: the picture, then the same as a table."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.display import render
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views import formats
from nbautograd.views.markup import Markup, join, picture
from nbautograd.views.pieces import faint, fold, name, paragraph, table
from nbautograd.views.text.graph import MOST_NODES, graph_size, graph_table

PICTURE_BUDGET = 24_000  # characters of one graph's SVG


def graph_markup(graph: AutogradGraph) -> Markup:
    """A graph: its picture, what is missing, and a table of its nodes in the engine's order."""
    if not graph.nodes:
        return join((paragraph(messages.text("views.graph.empty")), *(paragraph(str(n)) for n in graph.notes)))
    notes = tuple(map(str, graph.notes)) or (() if graph.complete else (messages.text("views.graph.incomplete"),))
    return join((graph_picture(graph), *(paragraph(n, "opacity:0.75") for n in notes), _twin(graph)))


def graph_picture(graph: AutogradGraph, budget: int = PICTURE_BUDGET) -> Markup:
    """The picture alone; a sentence where it would be too long."""
    try:
        svg = str(render("svg", graph, most=budget, notes=False))
    except Exception as error:  # a picture that fails must not take the table with it
        return paragraph(messages.text("views.failed", error=f"{type(error).__name__}: {error}"), "opacity:0.75")
    if len(svg) > budget:
        return paragraph(
            messages.text("views.too_long", part=messages.text("views.part.graph"), attribute="graph.to_svg()"),
            "opacity:0.75",
        )
    alt = messages.text("views.graph.alt", **graph_size(graph))
    return picture(svg, alt, {"style": "display:block;max-width:100%;height:auto;margin:2px 0 8px 0"})


def _twin(graph: AutogradGraph) -> Markup:
    header, all_rows = graph_table(graph)
    rows: list[list[object]] = [[name(r[0]), *r[1:]] for r in all_rows[:MOST_NODES]]
    left = len(all_rows) - len(rows)
    more = faint(messages.text("views.graph.folded", n=formats.count(left))) if left else None
    body = join((table(messages.text("views.caption.graph"), header, rows, wrap=False), more))
    return fold(messages.text("views.graph.twin"), body, strong=False)
