"""A laid-out graph as an accessible SVG document: text as text, a title and a description, its own background.

Shown as a picture (``<img src="data:image/svg+xml;...">``) a document cannot use the page's styles; it brings its own,
for both colour schemes, and its own background, so that it can be read on any page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from nbautograd.core.graphs.graph import AutogradGraph
from nbautograd.views.layout import Box, Layout, Path, layout
from nbautograd.views.layout_text import fit, text_width

STYLE = (
    "svg{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1b1f27}"
    ".b{fill:#fafbfc;stroke:#c8cdd6}.e{fill:none;stroke:#697281;stroke-width:1.3}.h{fill:#697281}"
    ".E{fill:none;stroke:#c0262d;stroke-width:1.8}.H{fill:#c0262d}"
    ".Z{fill:none;stroke:#8f97a4;stroke-dasharray:4 3}.N{fill:#8f97a4}"
    ".op,.portal{fill:#fff;stroke:#8d95a3}.portal{stroke-dasharray:3 2}.function{fill:#e9edff;stroke:#4a5fc1;"
    "stroke-width:1.6}.leaf{fill:#e3f3e6;stroke:#3f8a50}.output{fill:#fdf0d8;stroke:#a9741a}"
    ".group{fill:#eef0f3;stroke:#697281;stroke-width:2}"
    ".l{font-size:10px;fill:#4a5160}.m{font-size:11px;fill:#4a5160}.n{font-size:11px;font-weight:600}"
    ".t{font-size:13px;font-weight:600}.g{font-size:11px}.r{font-size:11px;fill:#b01c23}.x{fill:#b01c23;font-size:10px}"
)
DARK = (
    "@media(prefers-color-scheme:dark){svg{fill:#e6e9ef}.b{fill:#15181d;stroke:#3a414c}.e,.Z{stroke:#98a2b1}"
    ".h,.N{fill:#98a2b1}.E{stroke:#ff7a7a}.H{fill:#ff7a7a}.op,.portal{fill:#20252c;stroke:#7a8494}"
    ".function{fill:#1f2747;stroke:#8fa2ff}.leaf{fill:#17301e;stroke:#66b67a}.output{fill:#382b12;stroke:#d9a441}"
    ".group{fill:#2a3038;stroke:#98a2b1}.l,.m{fill:#b4bcc9}.r,.x{fill:#ff8f8f}}"
)
LETTERS = {"title": "t", "text": "", "muted": "m", "name": "n", "good": "g", "bad": "r"}
EDGES = {"": ("e", "h"), "bad": ("E", "H"), "zero": ("Z", "N"), "none": ("Z", "N")}
ROUND = {"leaf": 11, "portal": 11, "output": 11, "op": 4, "function": 6, "group": 4}
NOTE_LINE = 16


def svg(graph: AutogradGraph, *, boxes: int | None = 300) -> str:
    """Draw a backward graph.

    Args:
        graph: the graph.
        boxes: fold the graph until about this many boxes are left; None draws every node.

    Returns:
        An SVG document that stands on its own.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(3, requires_grad=True)
        >>> nbautograd.graph((a * a).sum()).to_svg()[:4]
        '<svg'
    """
    return draw(layout(graph, boxes=boxes))


def draw(made: Layout) -> str:
    """Draw a layout that is already made."""
    notes = _note_lines(made.note, max(made.width - 28, 240))
    width = max(made.width, 268 if notes else 60, *[text_width(line, "muted") + 28 for line in notes], 60)
    height = made.height + NOTE_LINE * len(notes)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-labelledby="t d"><title id="t">{escape(made.title)}</title>'
        f'<desc id="d">{escape(made.description)}</desc><style>{STYLE}{DARK}</style>'
        f'<rect class="b" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    ]
    parts += _edges(made.paths)
    parts += [_box(box) for box in made.boxes]
    y = made.height - 2
    parts += [f'<text class="m" x="14" y="{y + NOTE_LINE * i}">{escape(line)}</text>' for i, line in enumerate(notes)]
    parts.append("</svg>")
    return "".join(parts)


def _edges(paths: Sequence[Path]) -> Iterable[str]:
    """All edges of one look as one path element, all their heads as another, then the labels."""
    for style, (line, head) in EDGES.items():
        of_style = [path for path in paths if path.style == style and len(path.points) > 1]
        if of_style:
            yield f'<path class="{line}" d="{"".join(map(_curve, of_style))}"/>'
            yield f'<path class="{head}" d="{"".join(map(_head, of_style))}"/>'
    for path in paths:
        if path.label:
            letter = "x" if path.style == "bad" else "l"
            yield f'<text class="{letter}" x="{path.label_x}" y="{path.label_y}">{escape(path.label)}</text>'


def _curve(path: Path) -> str:
    """The curve as path data; straight pieces by one letter."""
    points = path.points
    x, y = points[0]
    data = [f"M{x} {y}"]
    for k in range(1, len(points) - 2, 3):
        (x1, y1), (x2, y2), (x3, y3) = points[k : k + 3]
        if x == x3:
            data.append(f"V{y3}")
        elif y == y3 == y1 == y2:
            data.append(f"H{x3}")
        else:
            data.append(f"C{x1} {y1} {x2} {y2} {x3} {y3}")
        x, y = x3, y3
    return "".join(data)


def _head(path: Path) -> str:
    """The arrow's head: down, or to the side when the edge arrives level."""
    (x1, y1), (x, y) = path.points[-2:]
    if y1 == y and x1 != x:
        return f"M{x} {y}l-7-3v6z" if x > x1 else f"M{x} {y}l7-3v6z"
    return f"M{x} {y}l-3-7h6z"


def _box(box: Box) -> str:
    title = f"<title>{escape(box.title)}</title>" if box.title else ""
    shape = (
        f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" '
        f'rx="{ROUND[box.kind]}"/>'
    )
    lines = []
    for line in box.lines:
        letter = LETTERS[line.style]
        kind = f' class="{letter}"' if letter else ""
        lines.append(f'<text{kind} x="{box.x + line.x}" y="{box.y + line.y}">{escape(line.text)}</text>')
    body = shape + "".join(lines)
    return f"<g>{title}{body}</g>" if title else body


def _note_lines(note: str, width: int) -> list[str]:
    """The note broken into lines of the picture's width."""
    lines: list[str] = []
    for word in note.split():
        if lines and text_width(f"{lines[-1]} {word}", "muted") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(fit(word, max(width, 60), "muted"))
    return lines
