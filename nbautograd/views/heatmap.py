"""A matrix as a small SVG heat map that is light on light pages and dark on dark ones.

The picture is made for an ``<img>``: front ends let its style through, and browsers tell it the page's colour scheme.
Sign shows by mark as well as by colour where a cell is large enough; exact zeros are empty; NaN is hatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbautograd.views import palette
from nbautograd.views.markup import Markup, join, tag
from nbautograd.views.png import png_uri

Array = np.ndarray[Any, Any]

NAMESPACE = "http://www.w3.org/2000/svg"
SIDE = 208.0  # pixels of the longer side of a matrix that is not small
LARGEST_CELL = 32.0
MOST_SHAPES = 324  # cells that are drawn as shapes; more become a picture
NUMBERED, MARKED = 26.0, 9.0  # from these sizes on a cell shows its number, or its sign
FONT = "font:10px system-ui,sans-serif"
CHARACTER = 5.8  # mean width of a digit at that size


@dataclass(frozen=True)
class Axis:
    """Names along one side: of the whole axis, and of its cells (may be empty)."""

    name: str = ""
    labels: Sequence[str] = ()


def heatmap(
    matrix: Array,
    largest: float | None = None,
    rows: Axis | None = None,
    cols: Axis | None = None,
    worst: tuple[int, int] | None = None,
) -> str:
    """Draw a real matrix.

    Args:
        matrix: array (h, w), at most a few hundred on a side; complex entries are drawn by size.
        largest: the value that gets the full colour on either side of zero; the matrix's own largest when None.
        rows, cols: what to write along the sides.
        worst: (row, column) of a cell to put a frame around.

    Returns:
        An SVG document.

    Example:
        >>> import numpy as np
        >>> from nbautograd.views.heatmap import heatmap
        >>> heatmap(np.eye(2)).startswith("<svg")
        True
    """
    values = np.abs(matrix) if np.iscomplexobj(matrix) else np.asarray(matrix, float)
    values = np.atleast_2d(values)
    top = palette.limit(values) if largest is None else largest
    place = _Place.of(values.shape, rows or Axis(), cols or Axis())
    index = palette.indices(values, top)
    few = values.size <= MOST_SHAPES
    body: list[Markup | None] = [_cells(index, place) if few else _image(index, place), _frame(place)]
    body += [_hatch(index, place), _signs(values, index, place)] if few else []
    body += [_axis_labels(place, rows or Axis(), cols or Axis()), _worst(worst, place)]
    style = _style(np.unique(index) if few else np.empty(0, int), place.cell)
    w, h = round(place.width), round(place.height)
    start = {"xmlns": NAMESPACE, "width": str(w), "height": str(h), "viewBox": f"0 0 {w} {h}"}
    paper = tag("rect", {"class": "p", "width": "100%", "height": "100%", "rx": 4})
    return tag("svg", start, tag("style", None, style), paper, *body)


def thumbnail(matrix: Array) -> str:
    """A heat map of 48 pixels without words, for tables."""
    values = np.atleast_2d(np.abs(matrix) if np.iscomplexobj(matrix) else np.asarray(matrix, float))
    index = palette.indices(values, palette.limit(values))
    cell = 48.0 / max(*index.shape, 4)
    place = _Place(cell, 0.0, 0.0, index.shape)
    h, w = index.shape
    start = {"xmlns": NAMESPACE, "width": f"{w * cell:.4g}", "height": f"{h * cell:.4g}"}
    paper = tag("rect", {"class": "p", "width": "100%", "height": "100%"})
    few = index.size <= 64
    style = _style(np.unique(index) if few else np.empty(0, int))
    return tag("svg", start, tag("style", None, style), paper, _cells(index, place) if few else _image(index, place))


def legend() -> str:
    """A bar from the most negative colour to the most positive, 160 x 12 pixels, without words."""
    stops = [tag("stop", {"class": f"g{k}", "offset": f"{k / 8:g}"}) for k in range(9)]
    themes = ("".join(f".g{k}{{stop-color:{palette.MAPS[t][2 * k]}}}" for k in range(9)) for t in ("light", "dark"))
    style = Markup("{}@media(prefers-color-scheme:dark){{{}}}".format(*themes))
    start = {"xmlns": NAMESPACE, "width": "160", "height": "12"}
    bar = tag("rect", {"width": 160, "height": 12, "rx": 2, "fill": "url(#a)"})
    return tag("svg", start, tag("style", None, style), tag("linearGradient", {"id": "a"}, *stops), bar)


@dataclass(frozen=True)
class _Place:
    """Where the matrix lies: the size of a cell and the room left of it and above it."""

    cell: float
    left: float
    top: float
    shape: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], rows: Axis, cols: Axis) -> _Place:
        cell = min(LARGEST_CELL, SIDE / max(*shape, 1))
        widest = max((len(label) for label in rows.labels), default=0)
        left = 6 + (widest * CHARACTER + 5 if widest else 0) + (14 if rows.name else 0)
        return cls(cell, left, 6 + (14 if cols.labels else 0) + (14 if cols.name else 0), shape)

    @property
    def width(self) -> float:
        return self.left + self.shape[1] * self.cell + 7

    @property
    def height(self) -> float:
        return self.top + self.shape[0] * self.cell + 7


def _cells(index: Array, place: _Place) -> Markup:
    gap = 1.0 if place.cell >= 12 else 0.0
    side = f"{place.cell - gap:g}"
    shapes = []
    for colour in np.unique(index):
        if colour == palette.PAPER_INDEX:
            continue
        corners = (f"M{_x(c, place)} {_y(r, place)}h{side}v{side}h-{side}z" for r, c in np.argwhere(index == colour))
        shapes.append(tag("path", {"class": f"c{colour}", "d": "".join(corners)}))
    return join(shapes)


def _image(index: Array, place: _Place) -> Markup:
    h, w = place.shape
    box = {"x": f"{place.left:g}", "y": f"{place.top:g}", "width": f"{w * place.cell:g}"}
    box |= {"height": f"{h * place.cell:g}", "preserveAspectRatio": "none"}
    one = {**box, "class": "l", "href": png_uri(index, palette.colours("light"))}
    other = {**box, "class": "d", "href": png_uri(index, palette.colours("dark"))}
    return join((tag("image", one), tag("image", other)))


def _frame(place: _Place) -> Markup:
    h, w = place.shape
    box = {"x": f"{place.left - 0.5:g}", "y": f"{place.top - 0.5:g}"}
    return tag("rect", {"class": "f", **box, "width": f"{w * place.cell + 1:g}", "height": f"{h * place.cell + 1:g}"})


def _hatch(index: Array, place: _Place) -> Markup | None:
    where = np.argwhere(index == palette.NAN_INDEX)
    if not len(where):
        return None
    c = place.cell - 1
    lines = (f"M{_x(k, place)} {_y(r, place)}l{c:g} {c:g}m0 -{c:g}l-{c:g} {c:g}" for r, k in where)
    return tag("path", {"class": "h", "d": "".join(lines)})


def _signs(values: Array, index: Array, place: _Place) -> Markup | None:
    if place.cell >= NUMBERED:
        return join(_number(float(values[r, c]), int(index[r, c]), r, c, place) for r, c in np.ndindex(*values.shape))
    if place.cell < MARKED:
        return None
    half, reach = place.cell / 2 - 0.5, min(3.0, place.cell / 5)
    marks: dict[int, list[str]] = {}
    for r, c in np.argwhere(index != palette.PAPER_INDEX):
        if np.isnan(values[r, c]):
            continue
        x, y = place.left + c * place.cell + half, place.top + r * place.cell + half
        mark = f"M{x - reach:.1f} {y:.1f}h{2 * reach:g}"
        if values[r, c] > 0:
            mark += f"M{x:.1f} {y - reach:.1f}v{2 * reach:g}"
        marks.setdefault(int(index[r, c]), []).append(mark)
    return join(tag("path", {"class": f"s{k}", "d": "".join(m)}) for k, m in marks.items())


def _number(value: float, colour: int, r: int, c: int, place: _Place) -> Markup | None:
    if colour in (palette.PAPER_INDEX, palette.NAN_INDEX):
        return None
    half = (place.cell - 1) / 2
    at = {"x": f"{place.left + c * place.cell + half:g}", "y": f"{place.top + r * place.cell + half:g}"}
    return tag("text", {"class": f"t{colour}", **at}, short(value))


def short(value: float) -> str:
    """A number in at most five characters, with a real minus sign."""
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    for digits in (3, 2, 1):
        text = f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e")
        text = text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
        if len(text) <= 5:
            break
    return text.replace("-", "−")


def _axis_labels(place: _Place, rows: Axis, cols: Axis) -> Markup:
    h, w = place.shape
    right, bottom = place.left + w * place.cell / 2, place.top + h * place.cell / 2
    parts: list[Markup] = []
    if cols.name:
        parts.append(tag("text", {"class": "n", "x": f"{right:g}", "y": 10}, _fitting(cols.name, w * place.cell + 12)))
    if rows.name:
        turn = f"translate(9 {bottom:g}) rotate(-90)"
        parts.append(tag("text", {"class": "n", "transform": turn}, _fitting(rows.name, h * place.cell + 12)))
    widest = max((len(label) for label in cols.labels), default=0) * CHARACTER + 4
    x, y = f"{place.left - 4:g}", f"{place.top - 8:g}"
    down = [
        tag("text", {"x": x, "y": f"{place.top + (k + 0.5) * place.cell:.4g}"}, label)
        for k, label in _spaced(rows.labels, place.cell, 11)
    ]
    along = [
        tag("text", {"x": f"{place.left + (k + 0.5) * place.cell:.4g}", "y": y}, label)
        for k, label in _spaced(cols.labels, place.cell, widest)
    ]
    return join((*parts, tag("g", {"class": "r"}, *down), tag("g", {"class": "n"}, *along)))


def _spaced(labels: Sequence[str], cell: float, room: float) -> list[tuple[int, str]]:
    """Every label, or every second, third, ... so that each has room."""
    step = max(1, int(np.ceil(room / cell)))
    return [(k, label) for k, label in enumerate(labels) if k % step == 0]


def _fitting(name: str, room: float) -> str:
    most = max(4, int(room / 6))
    return name if len(name) <= most else name[: most - 1] + "…"


def _worst(worst: tuple[int, int] | None, place: _Place) -> Markup | None:
    if worst is None:
        return None
    r, c = worst
    side = max(place.cell - 1, 5) + 2
    box = {
        "x": f"{float(_x(c, place)) - 1:g}",
        "y": f"{float(_y(r, place)) - 1:g}",
        "width": f"{side:g}",
        "height": f"{side:g}",
    }
    return join((tag("rect", {"class": "o", **box, "rx": 1.5}), tag("rect", {"class": "w", **box, "rx": 1.5})))


def _x(column: int, place: _Place) -> str:
    return f"{place.left + column * place.cell:.1f}"


def _y(row: int, place: _Place) -> str:
    return f"{place.top + row * place.cell:.1f}"


def _style(used: Array, cell: float = 0.0) -> Markup:
    """The rules of both themes, for the colours that occur."""
    pictures = "image{image-rendering:pixelated}image.d{display:none}", "image.l{display:none}image.d{display:inline}"
    light, dark = pictures if not used.size else ("", "")
    return Markup(
        f"text{{{FONT};text-anchor:middle;dominant-baseline:central}}.r text{{text-anchor:end}}.f,.w,.o,.h{{fill:none}}"
        f"{light}{_theme('light', used, cell)}@media(prefers-color-scheme:dark){{{dark}{_theme('dark', used, cell)}}}"
    )


def _theme(theme: str, used: Array, cell: float) -> str:
    ink, faint, paper = palette.INK[theme], palette.FAINT[theme], palette.PAPER[theme]
    table = palette.colours(theme)
    rules = [f".p{{fill:{paper}}}.n,.r{{fill:{faint}}}.f{{stroke:{faint};stroke-opacity:.4}}"]
    rules.append(f".w,.h{{stroke:{ink};stroke-width:1.6}}.o{{stroke:{paper};stroke-width:4}}")
    drawn = [int(k) for k in used if k != palette.PAPER_INDEX]
    return "".join(
        (*rules, *(f".c{k}{{fill:{table[k]}}}" + _ink_rule(k, palette.ink_on(table[k]), cell) for k in drawn))
    )


def _ink_rule(k: int, ink: str, cell: float) -> str:
    if cell >= NUMBERED:
        return f".t{k}{{fill:{ink}}}"
    return f".s{k}{{stroke:{ink};stroke-opacity:.75}}" if cell >= MARKED else ""
