"""A document as static HTML that stays readable in any front end, trusted or not, with a kernel or without.

Sanitizers drop ``<style>`` and unknown values, so each element carries its own style, in forms that JupyterLab lets
through (no ``var()``, no ``inherit``, numbers with a leading zero). Text colour and background are the page's. The one
style sheet holds what no element can say of itself: what it looks like on a dark or on a narrow page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nbautograd import messages
from nbautograd.views import svg, theme
from nbautograd.views.document import (
    Beside,
    Block,
    BlockName,
    Branch,
    Card,
    Cell,
    Change,
    Chip,
    Code,
    Document,
    Drawing,
    Faint,
    Fold,
    Heatmaps,
    Item,
    Lines,
    Link,
    PageOnly,
    Paragraph,
    Sentence,
    Series,
    Span,
    Strong,
    Table,
    Term,
    Thumbnail,
    Verbatim,
)
from nbautograd.views.heatmap import panels, thumbnail
from nbautograd.views.markup import Markup, escape, join, picture, prose, tag, unbroken
from nbautograd.views.phrases import contents, counted, dedented, failed, pooling

LINE = f"1px solid {theme.LINE_ON_ANY}"
SOFT = theme.SOFT_ON_ANY
FAINT = "opacity:0.75"
LOOKS = {"": "", "small": f"{FAINT};font-size:0.92em", "faint": FAINT, "head": "line-height:1.6"}
TABLE = "border-collapse:collapse;table-layout:auto;margin:0;width:auto"
CAPTION = f"caption-side:top;text-align:left;padding:0 0 3px 0;font-size:0.9em;{FAINT}"
ROW = f"border-bottom:{LINE};background-color:transparent"
CODE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:0.92em"
WRAPPED = "white-space:pre-wrap;word-break:normal;overflow-x:auto"  # on paper nothing scrolls; words stay whole
# in a table names may go on in another line: what stands in brackets, the next word of CamelCase
BREAKS = re.compile(r"(?<=\S\()|(?<=[a-z0-9])(?=[A-Z][a-z])")
LONG = 30  # characters of a name; a longer one is written over several lines
NARROW = "display:inline-block;max-width:{}em;white-space:normal;overflow-wrap:break-word;vertical-align:top"
COLUMN = 14  # em that a long name may take in a table that text cuts, and in one that it writes in full
WHOLE = 46
NOTE = f"min-width:90px;white-space:normal;font-size:0.85em;{FAINT}"
PICTURE = "display:block;max-width:100%;height:auto;margin:2px 0 8px 0"
FIGURE = "display:inline-block;vertical-align:top;margin:0 16px 6px 0;max-width:100%"
# pages of nbconvert and of VS Code that are dark do not say so by their color-scheme
SHEET = Markup(
    ".nbautograd :is(code,thead th){word-break:keep-all}"  # Chinese breaks behind any character else
    ".nbag-term{border-bottom:1px dotted;cursor:help}"
    "[data-jp-theme-light=false] .nbautograd,.vscode-dark .nbautograd{color-scheme:dark}"
    "@media(max-width:600px){.nbautograd :is(th,td){padding-right:8px!important}"
    ".nbautograd td[colspan] code{overflow-wrap:anywhere!important}"
    ".nbautograd table{font-size:0.85em!important}.nbautograd table table{font-size:1em!important}}"
    # on paper a heading stands on the page of what it is the heading of, three maps beside each other; nbconvert would
    # begin a page for each long output. What live shows in parts, such as slow motion, is printed as stored
    "@media print{.nbautograd{orphans:4;widows:4}"
    ".nbautograd :is(summary,caption,thead,div:has(+.nbag-item,>strong:first-child)){break-after:avoid}"
    ".nbautograd :is(tr,.nbag-maps,.nbag-told){break-inside:avoid}.nbag-maps{zoom:0.65}"
    ".jp-OutputArea-child:has(.nbautograd){break-inside:auto}"
    ".nbag-paper{display:block!important}.nbag-paper+div{display:none}}"
)
STEP = 18  # pixels that a row inside another is moved to the right
FEW = 6  # rows inside another that are always seen; more can be folded

ROOM = 62_500  # characters that a whole report should stay under
LEAST_ROOM = 9_000  # of a part that is shortened, and that pictures get however long the rest is
MOST = 63_500  # of a whole report
# the parts of a report, that which is longest and least missed first
SPARED = ("calls", "graph", "jacobian", "gradcheck", "comparison")


@dataclass(frozen=True)
class Room:
    """Limits on how much of a document is written.

    Attributes:
        series: characters of the documents of one series.
        heatmaps: False leaves out the pictures of blocks.
        drawings: False leaves out pictures of graphs.
        thumbnails: False leaves out small heat maps.
        narrow: em that a long name takes before it goes on in another line; 0 where nothing is wrapped.
        inside: True in a table in another one, whose letters are small already.
    """

    series: int = 34_000
    heatmaps: bool = True
    drawings: bool = True
    thumbnails: bool = True
    narrow: int = 0
    inside: bool = False


def to_html(document: Document, room: Room = Room()) -> Markup:
    """Return a document as elements one below the other.

    Example:
        >>> from nbautograd.views.document import paragraph
        >>> from nbautograd.views.to_html import to_html
        >>> to_html((paragraph("`a<b` holds"),))
        '<div style="margin:0 0 6px 0"><code>a&lt;b</code> holds</div>'
    """
    return join(_element(block, room) for block in document)


def page(document: Document) -> Markup:
    """Return a document as a page that a notebook can store: pictures get the room that the rest of a report leaves.

    Where that is not enough, parts are left out, folded ones and then the least missed first, and say how to see them.
    """
    parts = {block.attribute: k for k, block in enumerate(document) if isinstance(block, Fold) and block.attribute}
    written = {k: _element(block, Room()) for k, block in enumerate(document) if k != parts.get("jacobian")}
    for k in set(range(len(document))) - set(written):
        left = max(LEAST_ROOM, ROOM - _length(written))
        written[k] = _element(document[k], Room(series=min(left, Room().series)))
    series = Room().series
    while "jacobian" not in parts and _length(written) > MOST and series > LEAST_ROOM:  # a check by itself
        series //= 2
        written = {k: _element(block, Room(series=series)) for k, block in enumerate(document)}
    if "comparison" in parts:  # its numbers stay, pictures where there is room
        k = parts["comparison"]
        for room in (Room(drawings=False), Room(drawings=False, thumbnails=False)):
            if _length(written) > MOST:
                written[k] = _element(document[k], room)
    opened = {block.attribute for block in document if isinstance(block, Fold) and block.opened}
    for part in sorted(SPARED, key=opened.__contains__):
        if _length(written) > MOST and len(written.get(parts.get(part, -1), "")) > LEAST_ROOM:
            fold = document[parts[part]]
            assert isinstance(fold, Fold)
            words = messages.text("views.too_long", part=messages.text(f"views.part.{part}"), attribute=part)
            written[parts[part]] = _element(replace(fold, body=(Paragraph((words,)),)), Room())
    return join(written[k] for k in range(len(document)))


def _length(written: dict[int, Markup]) -> int:
    return sum(map(len, written.values()))


def _element(block: Block, room: Room) -> Markup:
    match block:
        case Paragraph():
            if all(isinstance(span, Link) for span in block.spans):
                return Markup("")
            return _div(join(_span(span, room, sentence=True) for span in block.spans), LOOKS[block.look])
        case Table():
            return _table(block, room)
        case Fold():
            return _fold(block, room)
        case Change():
            return _change(block)
        case Verbatim():
            look = f"{CODE};margin:2px 0 6px 0;padding:6px 10px;border-left:3px solid {theme.LINE_ON_ANY}"
            return tag("pre", {"style": f"{look};background-color:{SOFT};{WRAPPED}"}, block.words)
        case Item():
            return tag("div", {"class": "nbag-item", "style": "margin:0 0 6px 0"}, to_html(block.body, room))
        case Card():
            look = f"{theme.rule('border-left', theme.TONES[block.tone], '4px solid ')};background-color:{SOFT}"
            style = f"{look};padding:9px 14px 4px 14px;margin:0 0 8px 0;border-radius:3px"
            name = f"nbag-told nbag-at-{block.place}" if block.place else "nbag-told"
            return tag("div", {"class": name, "style": style}, to_html(block.body, room))
        case Drawing():
            return _drawing(block) if room.drawings else Markup("")
        case Beside():
            return join(tag("div", {"style": FIGURE}, to_html(part, room)) for part in block.parts)
        case Heatmaps():
            return _heatmaps(block) if room.heatmaps else _div(escape(messages.text("views.panel.no_room")), FAINT)
        case Series():
            return _series(block, room)
        case PageOnly():
            return to_html(block.body, room)


def _div(inside: Markup, style: str = "") -> Markup:
    return tag("div", {"style": f"margin:0 0 6px 0;{style}".rstrip(";")}, inside)


def _span(span: Span, room: Room, sentence: bool = False) -> Markup:
    match span:
        case str():
            return prose(span) if sentence else unbroken(span)
        case Chip():
            return chip(span.words, span.tone)
        case Strong():
            return tag("strong", None, prose(span.words))
        case Code() | BlockName():
            look = NARROW.format(room.narrow) if room.narrow and len(span.words) > LONG else None
            pieces = BREAKS.split(span.words) if room.narrow else [span.words]
            return tag("code", {"style": look}, join(map(unbroken, pieces), tag("wbr")))
        case Faint():
            return tag("span", {"style": FAINT}, prose(span.words)) if span.words else Markup("")
        case Term():
            return tag("span", {"class": "nbag-term", "title": span.meaning}, span.words)
        case Sentence():
            return tag("div", {"style": "min-width:200px;white-space:normal"}, prose(span.words))
        case Lines():
            return join(tag("div", None, line) for line in span.lines)
        case Branch():
            look = f"display:inline-block;width:{STEP - 4}px;margin-left:-{STEP}px;padding-right:4px"
            look += ";text-align:right;vertical-align:top;opacity:0.5"
            return tag("span", {"style": look, "aria-hidden": "true"}, "└") if span.depth else Markup("")
        case Thumbnail():
            return _thumbnail(span) if room.thumbnails else Markup("")
        case Link(url=url) if url:
            said = {"href": url, "title": f"nbautograd explain {span.words}"}
            return tag("a", said, messages.text("views.code_page"))
        case Link():
            return _span(Code(span.words), room) if span.place else Markup("")


def chip(words: str, tone: str) -> Markup:
    """Return words on a coloured ground; the colour never says more than the words."""
    look = "display:inline-block;padding:1px 8px;border-radius:10px;font-size:0.85em;font-weight:600;line-height:1.5"
    colours = f"{theme.rule('color', theme.PAPER)};{theme.rule('background-color', theme.TONES[tone])}"
    return tag("span", {"style": f"{look};{colours};white-space:nowrap"}, words)


def _fold(block: Fold, room: Room) -> Markup:
    title = prose(block.title.words) if isinstance(block.title, Strong) else _span(block.title, room)
    title = tag("strong", None, title) if block.strong else title
    beside = join((" ", tag("span", {"style": FAINT}, block.beside))) if block.beside else None
    summary = tag("summary", {"style": "cursor:pointer;padding:3px 0"}, title, beside or "")
    look = f"margin:0;padding:5px 0;border-top:{LINE}" if block.strong else "margin:2px 0 6px 0"
    inside = tag("div", {"style": "padding:2px 0 2px 16px"}, to_html(block.body, room))
    return tag("details", {"style": look, "open": block.opened}, summary, inside)


def _table(block: Table, room: Room) -> Markup:
    """Write a real table that scrolls by itself when it is too wide."""
    room = replace(room, narrow=(COLUMN if block.cut else WHOLE) if block.wrap else 0)
    parts = [tag("caption", {"style": CAPTION}, block.caption)] if block.caption else []
    if block.header:
        parts.append(tag("thead", None, _row(block.header, block, room, header=True)))
    look = TABLE if room.inside else f"{TABLE};font-size:0.95em"
    grid = tag("table", {"style": look}, *parts, tag("tbody", None, *_rows(block, room)))
    return tag("div", {"style": "overflow-x:auto;margin:0 0 8px 0"}, grid)


def _rows(block: Table, room: Room) -> list[Markup]:
    """Write the rows; where many stand inside one of a tree, they are a table of their own that can be folded."""
    columns = max(map(len, block.rows), default=0)
    depths = [_depth(row) for row in block.rows]
    written, k = [], 0
    while k < len(block.rows):
        row = block.rows[k]
        wide = len(row) == 1 < columns
        look = FAINT if isinstance(row[0], str) else ""
        broad = replace(room, narrow=room.narrow and WHOLE)
        written.append(_wide_row(_cell(row[0], broad), columns, look) if wide else _row(row, block, room))
        k += 1
        end = next((n for n in range(k, len(depths)) if depths[n] <= depths[k - 1]), len(depths))
        if end - k > FEW:
            written.append(_wide_row(_inside(block, slice(k, end), room), columns, "", STEP * (depths[k - 1] + 1)))
            k = end
    return written


def _inside(block: Table, rows: slice, room: Room) -> Markup:
    """Write rows of a tree as a table that can be folded; it begins open where one of them calls for attention."""
    top = _depth(block.rows[rows.start])
    lifted = []
    for first, *others in block.rows[rows]:
        assert isinstance(first, tuple)  # only such a cell begins with a branch
        branch = first[0]
        assert isinstance(branch, Branch)
        lifted.append(((Branch(branch.depth - top), *first[1:]), *others))
    words = messages.text("widgets.inside_count", count=len(lifted))
    opened = any(isinstance(cell, Chip) for row in lifted for cell in row)
    table = replace(block, header=(), caption="", rows=tuple(lifted))
    return _fold(Fold(words, (table,), opened=opened, strong=False), replace(room, inside=True))


def _depth(row: Sequence[Cell]) -> int:
    """Return how deep a row of a tree stands; 0 for rows of other tables."""
    first = row[0][0] if isinstance(row[0], tuple) else row[0]
    return first.depth if isinstance(first, Branch) else 0


def _wide_row(inside: Markup, columns: int, look: str, left: int = 0) -> Markup:
    look = f"text-align:left;padding:4px 12px 4px {left}px;{look}"
    return tag("tr", {"style": ROW}, tag("td", {"colspan": columns, "style": look.rstrip(";")}, inside))


def _row(cells: Sequence[Cell], block: Table, room: Room, header: bool = False) -> Markup:
    written = []
    for k, cell in enumerate(cells):
        head = cell != "" and (header or k == 0)  # an empty heading would be announced as one
        scope = None if not head else "col" if header else "row"
        left = f"{STEP * depth}px" if k == 0 and (depth := _depth(cells)) else "0"  # lines of one cell begin together
        look = f"text-align:{'right' if k in block.right else 'left'};padding:4px 12px 4px {left}"
        look += ";font-weight:600" if header else ";font-weight:400" if head else ""
        look += "" if block.wrap else ";white-space:nowrap"
        written.append(tag("th" if head else "td", {"scope": scope, "style": look}, _cell(cell, room)))
    return tag("tr", {"style": ROW}, *written)


def _cell(cell: Cell, room: Room) -> Markup:
    return join(_span(span, room) for span in (cell if isinstance(cell, tuple) else (cell,)))


def _change(block: Change) -> Markup:
    """Write what goes and what comes instead, as lines with - and +."""
    gone, come = dedented(block.before, block.after)
    lines = [("-", line, theme.GONE_ON_ANY) for line in gone] + [("+", line, theme.COME_ON_ANY) for line in come]
    spans = (
        tag("span", {"style": f"display:block;padding:1px 10px;background-color:{ground}"}, f"{mark} {line}\n")
        for mark, line, ground in lines
    )
    look = f"{CODE};margin:4px 0;padding:0;line-height:1.5;border-radius:4px;{WRAPPED}"
    change = tag("pre", {"style": look}, *spans)
    return join((change, tag("div", {"style": f"font-size:0.9em;{FAINT}"}, prose(block.note)) if block.note else None))


def _thumbnail(part: Thumbnail) -> Markup:
    """Draw a small heat map of a tensor; nothing of a single number or where the elements are not known."""
    tensor = part.value.tensor
    if tensor is None or part.blank:
        return Markup("")
    alt = messages.text("views.tensor.thumb", name=part.value.name, contents=contents(tensor))
    small_map = thumbnail(np.asarray(tensor.thumbnail), part.most, part.floor)
    drawn = picture(small_map, alt, {"style": "display:block;max-width:48px"})
    return join((drawn, tag("div", {"style": NOTE}, words) if (words := pooling(tensor)) else None))


def _series(block: Series, room: Room) -> Markup:
    """Write the parts that there is room for, the first with its pictures, others with theirs as long as they fit."""
    bare = replace(room, heatmaps=False)
    written: list[Markup] = []
    for part in block.parts:
        one = to_html(part, bare)
        if written and sum(map(len, written)) + len(one) > room.series:
            break
        written.append(one)
    for k in range(len(written)):
        drawn = to_html(block.parts[k], room)
        if k and sum(map(len, written)) - len(written[k]) + len(drawn) > room.series:
            break
        written[k] = drawn
    left = len(block.parts) - len(written) + block.left
    return join((*written, tag("span", {"style": FAINT}, counted(block.noun, left)) if left else None))


def _heatmaps(block: Heatmaps) -> Markup:
    try:
        return tag("div", {"class": "nbag-maps"}, panels(block.block))
    except (LookupError, TypeError, ValueError):
        return _div(escape(messages.text("views.panel.unread")), FAINT)
    except Exception as error:  # a picture that fails must not take the numbers with it
        return _div(prose(failed(error, "picture of a Jacobian")), FAINT)


def _drawing(block: Drawing) -> Markup:
    """Draw a graph under its name; where the picture would be too long, or fails, a sentence says so."""
    title = tag("div", {"style": FAINT}, block.title) if block.title else None
    try:
        drawn = svg.svg(block.graph, most=block.budget, notes=False)
    except Exception as error:  # a picture that fails must not take the table with it
        return join((title, _div(prose(failed(error, "picture of a graph")), FAINT)))
    if len(drawn) > block.budget:
        part = messages.text("views.part.graph")
        words = messages.text("views.too_long", part=part, attribute="graph.to_svg()")
        return join((title, _div(prose(words), FAINT)))
    sizes = {"nodes": len(block.graph.nodes), "edges": len(block.graph.edges)}
    alt = messages.text("views.graph.alt", **{noun: counted(noun, n) for noun, n in sizes.items()})
    return join((title, picture(drawn, alt, {"style": PICTURE})))
