"""A laid-out graph as an accessible SVG document: text as text, a title and a description, its own background.

Shown as a picture (``<img src="data:image/svg+xml;...">``) a document cannot use the page's styles; it brings its own,
for both colour schemes, and its own background, so that it can be read on any page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape as escape_html
from typing import Literal, NamedTuple

from nbautograd import messages
from nbautograd.core.graphs.graph import AutogradGraph, collector_paused
from nbautograd.views import theme
from nbautograd.views.layout import BOXES, Box, Layout, Line, Path, first_layout, layout
from nbautograd.views.layout.text import fit, text_width
from nbautograd.views.theme import Colour

Theme = Literal["light", "dark"]
SCHEMES: tuple[Theme, ...] = ("light", "dark")
ROOT = "font:12px system-ui,'DejaVu Sans',sans-serif"
DASHED, DOTTED = "stroke-dasharray:3 3", "stroke-dasharray:1.5 4;stroke-linecap:round"


class Rule(NamedTuple):
    """Style of a class: its colours, and what is alike in both themes."""

    colours: dict[str, Colour | None]
    look: str = ""

    def declarations(self, theme: Theme) -> str:
        """Return the colours of a theme, and for the light one, which the dark one builds on, the rest."""
        colours = [f"{name}:{getattr(colour, theme)}" for name, colour in self.colours.items() if colour is not None]
        if theme == "dark":
            return ";".join(colours)
        none = [f"{name}:none" for name, colour in self.colours.items() if colour is None]
        return ";".join(filter(None, [*none, *colours, self.look]))


def _stroked(ground: Colour | None, line: Colour, look: str = "") -> Rule:
    return Rule({"fill": ground, "stroke": line}, look)


RULES = {
    "b": _stroked(theme.PAPER, theme.LINE),
    "e": _stroked(None, theme.GROUP_LINE, "stroke-width:1.3"),
    "x": _stroked(None, theme.BAD, "stroke-width:1.8"),
    "z": _stroked(None, theme.GROUP_LINE, "stroke-dasharray:4 3"),
    "tie": _stroked(None, theme.TIE, f"stroke-width:1.4;{DOTTED}"),
    "same": _stroked(None, theme.TIE, "stroke-width:1.2"),
    "op": _stroked(theme.OP, theme.OP_LINE),
    "portal": _stroked(theme.OP, theme.OP_LINE, "stroke-dasharray:3 2"),
    "ghost": _stroked(None, theme.GROUP_LINE, DASHED),
    "function": _stroked(theme.FUNCTION, theme.FUNCTION_LINE, "stroke-width:1.6"),
    "leaf": _stroked(theme.LEAF, theme.LEAF_LINE),
    "output": _stroked(theme.OUTPUT, theme.OUTPUT_LINE),
    "group": _stroked(theme.GROUP, theme.GROUP_LINE, "stroke-width:2"),
    "frozen": _stroked(theme.FROZEN, theme.GROUP_LINE, "stroke-width:2"),
    "l": Rule({"fill": theme.FAINT}, "font-size:11px"),
    "y": Rule({"fill": theme.BAD}, "font-size:11px"),
    "m": Rule({"fill": theme.FAINT}, "font-size:11px"),
    "n": Rule({}, "font-size:11px;font-weight:600"),
    "t": Rule({}, "font-size:13px;font-weight:600"),
    "g": Rule({}, "font-size:11px"),
    "r": Rule({"fill": theme.BAD}, "font-size:11px"),
}


def style_sheet(used: Iterable[str]) -> str:
    """Return the rules of the classes in use; the dark ones hold where the page says that its scheme is dark."""
    chosen = {"svg": Rule({"fill": theme.INK}, ROOT)}
    chosen |= {f".{name}": RULES[name] for name in RULES if name in set(used)}
    light, dark = (
        "".join(f"{name}{{{said}}}" for name, rule in chosen.items() if (said := rule.declarations(scheme)))
        for scheme in SCHEMES
    )
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


LETTERS = {"title": "t", "text": "", "muted": "m", "name": "n", "good": "g", "bad": "r"}
EDGES = {"": "e", "bad": "x", "wrong": "x", "zero": "z", "none": "z", "tie": "tie", "same": "same"}
LEGEND = ("tie", "same")  # styles of edges that are explained under the picture
CORNERS = {"leaf": 11, "portal": 11, "output": 11, "op": 4, "function": 6, "group": 4, "ghost": 11}
NOTE_LINE, WIDEST_NOTE = 16, 560
WORDS = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]|[^\s\u2e80-\u9fff\uff00-\uffef]+\s*|\s+")
FEWER = (150, 80, 40, 20)  # boxes to try when the document is too long
MANY = 300  # with more boxes, those of one look become one path, and texts of one look one group

escape = lru_cache(maxsize=4096)(escape_html)  # the same few names come again and again


def svg(graph: AutogradGraph, *, boxes: int | None = BOXES, most: int | None = None, notes: bool = True) -> str:
    """Draw a backward graph.

    Args:
        graph: the graph.
        boxes: fold the graph until about this many boxes are left; None draws every node.
        most: fold it further until the document has at most so many characters, if that can be reached.
        notes: whether the graph's notes stand under the picture.

    Returns:
        An SVG document that stands on its own.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> nbautograd.graph((a * a).sum()).to_svg()[:4]
        '<svg'
    """
    first = first_layout(graph) if boxes == BOXES and not notes else None
    graph = graph if notes else replace(graph, notes=())
    with collector_paused():
        document = draw(first or layout(graph, boxes=boxes))
        for fewer in FEWER:
            if most is None or len(document) <= most:
                break
            document = draw(layout(graph, boxes=fewer))
    return document


def draw(made: Layout) -> str:
    """Draw a layout that is already made."""
    with collector_paused():
        return _document(made)


def _document(made: Layout) -> str:
    legend = [style for style in LEGEND if any(path.style == style for path in made.paths)]
    under = min(max(320, text_width(made.note, "muted") // 4 + 60), WIDEST_NOTE)  # a narrow picture
    notes = _note_lines(made.note, max(made.width, under) - 28)
    width = max([made.width, *[text_width(line, "muted") + 28 for line in notes]])
    height = made.height + NOTE_LINE * (len(legend) + len(notes))
    many = len(made.boxes) > MANY
    body = [*_edges(made.paths), *(_many_boxes(made.boxes) if many else map(_box, made.boxes))]
    y = made.height + 2
    for style in legend:
        words = escape(messages.text(f"graphs.legend.{style}"))
        body.append(f'<path class="{style}" d="M14 {y - 4}h30"/><text class="m" x="52" y="{y}">{words}</text>')
        y += NOTE_LINE
    body += [f'<text class="m" x="14" y="{y + NOTE_LINE * i}">{escape(line)}</text>' for i, line in enumerate(notes)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="t d"><title id="t">{escape(made.title)}</title>'
        f'<desc id="d">{escape(made.description)}</desc>'
        f"<style>{style_sheet(_used(made, bool(notes or legend)))}</style>"
        f'<rect class="b" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    )
    return "".join([head, *body, "</svg>"])


def _used(made: Layout, notes: bool) -> set[str]:
    """Return the classes that the document uses."""
    used = {"b", *("m" if notes else "")}
    used |= {"frozen" if box.frozen else box.kind for box in made.boxes}
    words = {id(box.lines): box.lines for box in made.boxes}  # many boxes hold the same ones
    used |= {LETTERS[line.style] for lines in words.values() for line in lines}
    used |= {EDGES[style] for style in {path.style for path in made.paths}}
    return used | {_label_class(path) for path in made.paths if path.label}


def _label_class(path: Path) -> str:
    return "y" if path.style in ("bad", "wrong") else "l"


def _edges(paths: Sequence[Path]) -> Iterator[str]:
    """Yield all edges of one look as one path, then all labels of one look as one group."""
    courses: dict[str, list[tuple[tuple[int, int], Strokes]]] = {}
    labels: dict[str, list[str]] = {}
    for path in paths:
        courses.setdefault(EDGES[path.style], []).append((path.points[0], _curve(path)))
        if path.label:
            text = f'<text x="{path.label_x}" y="{path.label_y}">{escape(path.label)}</text>'
            labels.setdefault(_label_class(path), []).append(text)
    for name in dict.fromkeys(EDGES.values()):
        if name in courses:
            yield f'<path class="{name}" d="{_relative(courses[name])}"/>'
    for name in ("l", "y"):
        if name in labels:
            yield f'<g class="{name}">{"".join(labels[name])}</g>'


Strokes = tuple[str, tuple[int, int]]  # path data relative to where it starts, and the point where it ends


def _relative(pieces: Sequence[tuple[tuple[int, int], Strokes]]) -> str:
    """Join pieces of path data, each moved to from where the one before ended."""
    data = []
    here = (0, 0)
    for start, (strokes, end) in pieces:
        data.append(f"m{start[0] - here[0]} {start[1] - here[1]}{strokes}")
        here = end
    return "".join(data).replace(" -", "-")


def _curve(path: Path) -> Strokes:
    """Return the curve and its arrow head; straight pieces by one letter."""
    points = path.points
    x, y = points[0]
    if len(points) == 4 and path.style not in LEGEND and x == points[1][0] == points[2][0] == points[3][0]:
        end = points[3][1]
        return f"v{end - y}m-4-6 4 6 4-6", (x + 4, end - 6)
    data = []
    for k in range(1, len(points) - 2, 3):
        (x1, y1), (x2, y2), (x3, y3) = points[k : k + 3]
        if x == x3 == x1 == x2:
            data.append(f"v{y3 - y}")
        elif y == y3 == y1 == y2:
            data.append(f"h{x3 - x}")
        else:
            data.append(f"c{x1 - x} {y1 - y} {x2 - x} {y2 - y} {x3 - x} {y3 - y}")
        x, y = x3, y3
    if path.style in LEGEND:
        return "".join(data), (x, y)
    (before_x, before_y) = points[-2]
    if before_y == y and before_x != x:
        side = -6 if x > before_x else 6
        data.append(f"m{side}-4 {-side} 4 {side} 4")
        return "".join(data), (x + side, y + 4)
    data.append("m-4-6 4 6 4-6")
    return "".join(data), (x + 4, y - 6)


def _box(box: Box) -> str:
    title = f"<title>{escape(box.title)}</title>" if box.title else ""
    shape = (
        f'<rect class="{"frozen" if box.frozen else box.kind}" x="{box.x}" y="{box.y}" '
        f'width="{box.width}" height="{box.height}" '
        f'rx="{CORNERS[box.kind]}"/>'
    )
    body = shape + "".join([_text(box, line, LETTERS[line.style]) for line in box.lines])
    return f"<g>{title}{body}</g>" if title else body


def _text(box: Box, line: Line, letter: str) -> str:
    kind = f' class="{letter}"' if letter else ""
    return f'<text{kind} x="{box.x + line.x}" y="{box.y + line.y}">{escape(line.text)}</text>'


def _many_boxes(boxes: Sequence[Box]) -> Iterator[str]:
    """Yield boxes of one kind as one path, texts of one style as one group; custom Functions one by one."""
    outlines: dict[str, list[tuple[tuple[int, int], Strokes]]] = {}
    texts: dict[str, list[str]] = {style: [] for style in LETTERS}
    for box in boxes:
        if box.kind != "function":
            x, y = box.x, box.y
            outlines.setdefault(box.kind, []).append(((x, y), (f"h{box.width}v{box.height}h{-box.width}z", (x, y))))
            for line in box.lines:
                texts[line.style].append(f'<text x="{x + line.x}" y="{y + line.y}">{escape(line.text)}</text>')
    for kind, drawn in outlines.items():
        yield f'<path class="{kind}" d="{_relative(drawn)}"/>'
    for style, letter in LETTERS.items():
        if texts[style]:
            look = f' class="{letter}"' if letter else ""
            yield f"<g{look}>{''.join(texts[style])}</g>"
    yield from (_box(box) for box in boxes if box.kind == "function")


def _note_lines(note: str, width: int) -> list[str]:
    """Return the note broken into lines of the picture's width; Chinese may break at every character."""
    lines: list[str] = []
    for word in WORDS.findall(note):
        if lines and text_width(lines[-1] + word.rstrip(), "muted") <= width:
            lines[-1] += word
        else:
            lines.append(fit(word, width, "muted"))
    return [line.rstrip() for line in lines]
