"""A document as static HTML that stays readable in any front end, trusted or not, with a kernel or without."""

from __future__ import annotations

import numpy as np

from nbautograd import messages
from nbautograd.core.display import render
from nbautograd.core.values import Value
from nbautograd.views import pieces, theme
from nbautograd.views.document import (
    Beside,
    Block,
    Card,
    Cell,
    Change,
    Chip,
    Code,
    Document,
    Drawing,
    Faint,
    Fold,
    Item,
    Link,
    Paragraph,
    Span,
    Strong,
    Table,
    Thumbnail,
    Verbatim,
)
from nbautograd.views.heatmap import thumbnail
from nbautograd.views.markup import Markup, escape, join, picture, prose, tag
from nbautograd.views.words import counted

LOOKS = {"": "", "small": "opacity:0.75;font-size:0.92em", "faint": "opacity:0.75", "head": "line-height:1.6"}
PICTURE = "display:block;max-width:100%;height:auto;margin:2px 0 8px 0"
FIGURE = "display:inline-block;vertical-align:top;margin:0 16px 6px 0;max-width:100%"


def to_html(document: Document) -> Markup:
    """Return a document as elements one below the other.

    Example:
        >>> from nbautograd.views.document import paragraph
        >>> from nbautograd.views.to_html import to_html
        >>> to_html((paragraph("`a<b` holds"),))
        '<div style="margin:0 0 6px 0"><code>a&lt;b</code> holds</div>'
    """
    return join(map(_element, document))


def _element(block: Block) -> Markup:
    match block:
        case Paragraph():
            if all(isinstance(span, Link) for span in block.spans):
                return Markup("")
            return pieces.block(join(_span(span, sentence=True) for span in block.spans), style=LOOKS[block.look])
        case Table():
            rows = [[_cell(cell) for cell in row] for row in block.rows]
            columns = max(map(len, block.rows), default=0)
            whole = [[pieces.wide_row(row[0], columns)] if len(row) == 1 < columns else row for row in rows]
            header = [_cell(cell) for cell in block.header]
            return pieces.table(block.caption, header, whole, right=block.right, wrap=block.wrap)
        case Fold():
            title = prose(block.title.words) if isinstance(block.title, Strong) else _span(block.title)
            return pieces.fold(title, to_html(block.body), block.beside, block.opened, block.strong)
        case Change():
            note = tag("div", {"style": "font-size:0.9em"}, pieces.faint(block.note)) if block.note else None
            return join((pieces.change(block.before, block.after), note))
        case Verbatim():
            return pieces.pre(block.words)
        case Item():
            return pieces.block(to_html(block.body))
        case Card():
            look = f"border-left:4px solid {theme.TONES[block.tone]};background-color:{pieces.SOFT}"
            style = f"{look};padding:9px 14px 4px 14px;margin:0 0 8px 0;border-radius:3px"
            return tag("div", {"style": style}, to_html(block.body))
        case Drawing():
            return _drawing(block)
        case Beside():
            return join(tag("div", {"style": FIGURE}, to_html(part)) for part in block.parts)


def _cell(cell: Cell) -> Markup:
    if isinstance(cell, tuple):
        return join(map(_span, cell))
    return _span(cell)


def _span(span: Span, sentence: bool = False) -> Markup:
    match span:
        case str():
            return prose(span) if sentence else escape(span)
        case Chip():
            return pieces.chip(span.words, span.tone)
        case Strong():
            return tag("strong", None, prose(span.words))
        case Code():
            return pieces.name(span.words)
        case Faint():
            return pieces.faint(prose(span.words))
        case Thumbnail():
            return thumbnail_image(span.value)
        case Link():
            return Markup("")


def thumbnail_image(value: Value) -> Markup:
    """Return a small heat map of a tensor; nothing of a single number or where the elements are not known."""
    tensor = value.tensor
    if tensor is None or tensor.thumbnail is None or tensor.thumbnail.size < 2:
        return Markup("")
    alt = messages.text("views.tensor.thumb", name=value.name)
    return picture(thumbnail(np.asarray(tensor.thumbnail)), alt, {"style": "display:block;max-width:48px"})


def _drawing(block: Drawing) -> Markup:
    """Draw a graph under its name; where the picture would be too long, or fails, a sentence says so."""
    title = tag("div", {"style": "opacity:0.75"}, block.title) if block.title else None
    try:
        svg = str(render("svg", block.graph, most=block.budget, notes=False))
    except Exception as error:  # a picture that fails must not take the table with it
        words = messages.text("views.failed", error=f"{type(error).__name__}: {error}")
        return join((title, pieces.paragraph(words, "opacity:0.75")))
    if len(svg) > block.budget:
        part = messages.text("views.part.graph")
        words = messages.text("views.too_long", part=part, attribute="graph.to_svg()")
        return join((title, pieces.paragraph(words, "opacity:0.75")))
    sizes = {"nodes": len(block.graph.nodes), "edges": len(block.graph.edges)}
    alt = messages.text("views.graph.alt", **{noun: counted(noun, n) for noun, n in sizes.items()})
    return join((title, picture(svg, alt, {"style": PICTURE})))
