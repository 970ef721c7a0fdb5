"""Comparisons on a page: a row per quantity with small heat maps, the two graphs beside each other."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.core.values import Value
from nbautograd.inspection.comparison import Comparison
from nbautograd.views.comparison import Row, headline, rows
from nbautograd.views.html.graph import graph_picture
from nbautograd.views.html.values import thumb
from nbautograd.views.markup import Markup, join, tag
from nbautograd.views.pieces import block, table

BUDGET = 12_000  # characters of each graph's SVG


def comparison_markup(comparison: Comparison) -> Markup:
    """A comparison: one sentence, a row per quantity, the two graphs beside each other."""
    first, second = comparison.names
    caption = messages.text("views.caption.comparison", first=first, second=second)
    made = [_row(row) for row in rows(comparison)]
    parts = [block(tag("strong", None, headline(comparison)))]
    parts.append(table(caption, ["", first, second, messages.text("views.compare.column")], made))
    if comparison.graphs is not None:
        parts += [_named(n, g) for n, g in zip(comparison.names, comparison.graphs, strict=True) if g.nodes]
    return join(parts)


def _row(row: Row) -> list[object]:
    values = (*row.values, None, None, None)
    apart: object = row.difference if row.agrees else tag("strong", None, row.difference)
    words = (*row.cells, apart)
    return [row.title, *(_with_picture(w, v) for w, v in zip(words, values, strict=False))]


def _with_picture(words: object, value: Value | None) -> object:
    """The words, under a small heat map where there is something to see."""
    if value is None or value.tensor is None or value.tensor.zeros == value.tensor.numel:
        return words
    drawn = thumb(value)
    return join((drawn, words)) if drawn else words


def _named(title: str, graph: AutogradGraph) -> Markup:
    look = "display:inline-block;vertical-align:top;margin:0 16px 6px 0;max-width:100%"
    return tag("div", {"style": look}, tag("div", {"style": "opacity:0.75"}, title), graph_picture(graph, BUDGET))
