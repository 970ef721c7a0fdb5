"""The few pieces that every page is made of: chip, fold, table, code, picture; styled inline for every front end.

Sanitizers drop ``<style>`` and unknown values, so each piece carries its own style, in forms that JupyterLab lets
through (no ``var()``, no ``inherit``, numbers with a leading zero). Text colour and background are the page's.
"""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd.views import theme
from nbautograd.views.markup import Markup, join, prose, tag
from nbautograd.views.theme import TONES
from nbautograd.views.words import dedented

LINE = f"1px solid {theme.LINE_ON_ANY}"
SOFT = theme.SOFT_ON_ANY
FAINT = "opacity:0.75"
TABLE = "border-collapse:collapse;table-layout:auto;margin:0;font-size:0.95em;width:auto"
CAPTION = "caption-side:top;text-align:left;padding:0 0 3px 0;font-size:0.9em;opacity:0.75"
ROW = f"border-bottom:{LINE};background-color:transparent"
CODE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:0.92em"


def chip(words: str, tone: str) -> Markup:
    """A word on a coloured ground; its colour never says more than the word."""
    look = "display:inline-block;padding:1px 8px;border-radius:10px;font-size:0.85em;font-weight:600;line-height:1.5"
    return tag(
        "span", {"style": f"{look};color:{theme.WHITE};background-color:{TONES[tone]};white-space:nowrap"}, words
    )


def block(*children: object, style: str = "") -> Markup:
    """A ``<div>`` with some room below it."""
    return tag("div", {"style": f"margin:0 0 6px 0;{style}".rstrip(";")}, *children)


def paragraph(sentence: str, style: str = "") -> Markup:
    """A sentence; its backticks become code."""
    return block(prose(sentence), style=style)


def name(words: object) -> Markup:
    """A name as code that is never broken over lines."""
    return tag("code", {"style": "white-space:nowrap"}, words)


def faint(words: object) -> Markup:
    """Words that step back."""
    return tag("span", {"style": FAINT}, words)


def fold(title: object, body: object, beside: object = "", opened: bool = False, strong: bool = True) -> Markup:
    """A part that can be folded, with its title and a few words beside it."""
    name = tag("strong", None, title) if strong else title
    words = join((name, " ", faint(beside)) if beside else (name,))
    summary = tag("summary", {"style": "cursor:pointer;padding:3px 0"}, words)
    look = f"margin:0;padding:5px 0;border-top:{LINE}" if strong else "margin:2px 0 6px 0"
    inner = tag("div", {"style": "padding:2px 0 2px 16px"}, body)
    return tag("details", {"style": look, "open": opened}, summary, inner)


def table(
    caption: str,
    header: Sequence[object],
    rows: Sequence[Sequence[object]],
    right: Sequence[int] = (),
    heads: bool = True,
    wrap: bool = True,
) -> Markup:
    """A real table that scrolls by itself when it is too wide.

    Args:
        caption: what the table shows; screen readers announce it.
        header: one cell per column; an empty sequence for a table without a head.
        rows: the cells, text or markup.
        right: positions of the columns set flush right.
        heads: True when the first column names its row.
        wrap: False for cells that are never broken over lines; the table scrolls instead.
    """
    parts: list[Markup] = [tag("caption", {"style": CAPTION}, caption)] if caption else []
    if header:
        parts.append(tag("thead", None, _row(header, right, everything=True)))
    parts.append(tag("tbody", None, *(_row(r, right, first=heads, wrap=wrap) for r in rows)))
    return tag("div", {"style": "overflow-x:auto;margin:0 0 8px 0"}, tag("table", {"style": TABLE}, *parts))


def matrix(caption: str, header: Sequence[object], rows: Sequence[Sequence[object]]) -> Markup:
    """A table of numbers, set close."""
    look = "text-align:right;padding:1px 9px 1px 0"
    head = [tag("th" if words else "td", {"scope": "col" if words else None, "style": look}, words) for words in header]
    lines = []
    for first, *rest in rows:
        cells = [tag("td", {"style": look}, words) for words in rest]
        lines.append(tag("tr", {"style": ROW}, tag("th", {"scope": "row", "style": look}, first), *cells))
    title = tag("caption", {"style": CAPTION}, caption)
    grid = tag("table", {"style": TABLE}, title, tag("thead", None, tag("tr", None, *head)), tag("tbody", None, *lines))
    return tag("div", {"style": "overflow-x:auto;margin:0 0 8px 0"}, grid)


def wide_row(words: object, columns: int) -> Markup:
    """A row that is one faint cell over all columns."""
    return tag("tr", {"style": ROW}, tag("td", {"colspan": columns, "style": f"{_cell(False)};opacity:0.75"}, words))


def pre(words: str) -> Markup:
    """Text as it was printed."""
    look = f"{CODE};margin:2px 0 6px 0;padding:6px 10px;border-left:3px solid {theme.LINE_ON_ANY}"
    return tag("pre", {"style": f"{look};background-color:{SOFT};white-space:pre;overflow-x:auto"}, words)


def change(before: str, after: str) -> Markup:
    """What goes and what comes instead, as lines with - and +."""
    gone = [_line("-", line, theme.GONE_ON_ANY) for line in dedented(before, after)[0]]
    come = [_line("+", line, theme.COME_ON_ANY) for line in dedented(before, after)[1]]
    look = f"{CODE};margin:4px 0;padding:0;line-height:1.5;white-space:pre;border-radius:4px;overflow-x:auto"
    return tag("pre", {"style": look}, *gone, *come)


def _line(mark: str, line: str, ground: str) -> Markup:
    return tag("span", {"style": f"display:block;padding:1px 10px;background-color:{ground}"}, f"{mark} {line}\n")


def _row(
    cells: Sequence[object], right: Sequence[int], everything: bool = False, first: bool = False, wrap: bool = True
) -> Markup:
    if len(cells) == 1 and isinstance(cells[0], Markup) and cells[0].startswith("<tr"):
        return cells[0]
    made = []
    for k, words in enumerate(cells):
        head = words != "" and (everything or (first and k == 0))  # an empty heading would be announced as one
        scope = None if not head else "col" if everything else "row"
        look = _cell(k in right) + (";font-weight:600" if everything else ";font-weight:400" if head else "")
        look += "" if wrap and (everything or not head) else ";white-space:nowrap"
        made.append(tag("th" if head else "td", {"scope": scope, "style": look}, words))
    return tag("tr", {"style": ROW}, *made)


def _cell(right: bool) -> str:
    return f"text-align:{'right' if right else 'left'};padding:4px 14px 4px 0"
