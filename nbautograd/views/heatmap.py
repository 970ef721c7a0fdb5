"""A matrix as a small SVG heat map that is light on light pages and dark on dark ones.

The picture is made for an ``<img>``: front ends let its style through, and browsers tell it the page's colour scheme.
Sign shows by mark as well as by colour where a cell is large enough; exact zeros are empty; NaN is hatched.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.block import JacobianBlock, Pooled
from nbautograd.views import theme
from nbautograd.views.jacobian import PANELS, Array, breaks, drawable, labels, shown_difference, worst_cell, wrong_cells
from nbautograd.views.markup import Markup, join, picture, tag
from nbautograd.views.phrases import block_name

SIDE = 208.0  # pixels of the longer side of a matrix that is not small
LARGEST_CELL = 32.0
APART = 10.0  # pixels: lines that stand closer than this are left out
CHARACTER = 6.4  # mean width of a digit at the labels' size


@dataclass(frozen=True)
class Axis:
    """Names of one side and of its cells (may be empty), and the cells that a line stands before."""

    name: str = ""
    labels: Sequence[str] = ()
    breaks: Sequence[int] = ()


@dataclass(frozen=True)
class MatrixGeometry:
    """Geometry of the matrix: the size of a cell and the room left of it and above it."""

    cell: float
    left: float
    top: float
    shape: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], rows: Axis, cols: Axis) -> MatrixGeometry:
        """Return the room for a matrix of this shape and the names along its sides."""
        cell = min(LARGEST_CELL, SIDE / max(*shape, 1))
        widest = max((len(label) for label in rows.labels), default=0)
        left = 6 + (widest * CHARACTER + 5 if widest else 0) + (14 if rows.name else 0)
        return cls(cell, left, 6 + (14 if cols.labels else 0) + (14 if cols.name else 0), shape)

    @property
    def gap(self) -> float:
        """Between cells; small cells stand close."""
        return 1.0 if self.cell >= 12 else 0.0

    @property
    def width(self) -> float:
        """Of the whole picture, in pixels."""
        return self.left + self.shape[1] * self.cell + 7

    @property
    def height(self) -> float:
        """Of the whole picture, in pixels."""
        return self.top + self.shape[0] * self.cell + 7


def x(column: int, place: MatrixGeometry) -> str:
    """Return the left side of a column."""
    return f"{place.left + column * place.cell:.1f}"


def y(row: int, place: MatrixGeometry) -> str:
    """Return the top of a row."""
    return f"{place.top + row * place.cell:.1f}"


def axis_labels(place: MatrixGeometry, rows: Axis, cols: Axis) -> Markup:
    """Return the name of each side, and the labels of the cells that have room for one."""
    h, w = place.shape
    right, bottom = place.left + w * place.cell / 2, place.top + h * place.cell / 2
    parts: list[Markup] = []
    if cols.name:
        parts.append(tag("text", {"class": "n", "x": f"{right:g}", "y": 10}, _fitting(cols.name, w * place.cell + 12)))
    if rows.name:
        turn = f"translate(9 {bottom:g}) rotate(-90)"
        parts.append(tag("text", {"class": "n", "transform": turn}, _fitting(rows.name, h * place.cell + 12)))
    widest = max((len(label) for label in cols.labels), default=0) * CHARACTER + 4
    beside, above = f"{place.left - 4:g}", f"{place.top - 8:g}"
    down = [
        tag("text", {"x": beside, "y": f"{place.top + (k + 0.5) * place.cell:.4g}"}, label)
        for k, label in _spaced(rows.labels, place.cell, 11)
    ]
    along = [
        tag("text", {"x": f"{place.left + (k + 0.5) * place.cell:.4g}", "y": above}, label)
        for k, label in _spaced(cols.labels, place.cell, widest)
    ]
    return join((*parts, tag("g", {"class": "r"}, *down), tag("g", {"class": "n"}, *along)))


def separators(place: MatrixGeometry, rows: Axis, cols: Axis) -> Markup | None:
    """Draw the lines between the slices of the slowest dimension of either side, where they do not stand too close."""
    h, w = place.shape
    across = (f"M{place.left - 4:g} {y(k, place)}h{w * place.cell + 8:g}" for k in _apart(rows.breaks, place.cell))
    down = (f"M{x(k, place)} {place.top - 4:g}v{h * place.cell + 8:g}" for k in _apart(cols.breaks, place.cell))
    lines = "".join((*across, *down))
    return tag("path", {"class": "e", "d": lines}) if lines else None


def _apart(breaks: Sequence[int], cell: float) -> Sequence[int]:
    near = any((after - before) * cell < APART for before, after in pairwise(breaks))
    return () if near else breaks


def _spaced(labels: Sequence[str], cell: float, room: float) -> list[tuple[int, str]]:
    """Return every label, or every second, third, ... so that each has room."""
    step = max(1, int(np.ceil(room / cell)))
    return [(k, label) for k, label in enumerate(labels) if k % step == 0]


def _fitting(name: str, room: float) -> str:
    most = max(4, int(room / 6))
    return name if len(name) <= most else name[: most - 1] + "…"


DIGIT = 6.2  # width of one
NUMBERED, MARKED, CORNERED = 26.0, 9.0, 4.0  # from these sizes on a cell shows its number, its sign, its corner


def hatch(index: Array, place: MatrixGeometry) -> Markup | None:
    """Return crosses on the cells that are NaN, in units of cells."""
    where = np.argwhere(index == theme.NAN_INDEX)
    if not len(where):
        return None
    lines = (f"M{k} {r}l1 1m0-1l-1 1" for r, k in where)
    transform = f"translate({place.left:.4g} {place.top:.4g})scale({place.cell:.4g})"
    # the width is a style of its own: the sheet's is in points, this one in cells
    look = f"stroke-width:{1.6 / place.cell:.2g}"
    return tag("path", {"class": "h", "transform": transform, "style": look, "d": "".join(lines)})


def signs(values: Array, index: Array, place: MatrixGeometry) -> Markup | None:
    """Return the number in each large cell, + or - in each middling one, nothing in small ones."""
    if place.cell < MARKED:
        return None
    groups: dict[str, list[tuple[int, int]]] = {}
    for r, c in np.argwhere((index != theme.PAPER_INDEX) & (index != theme.NAN_INDEX)):
        groups.setdefault(ink_class(int(index[r, c])), []).append((int(r), int(c)))
    draw = _numbers if place.cell >= NUMBERED else _signs
    return join(draw(values, ink, cells, place) for ink, cells in groups.items())


def corners(values: Array, index: Array, largest: float, place: MatrixGeometry) -> Markup | None:
    """Draw a mark in the upper right corner of each cell whose value is beyond the scale, in units of cells."""
    if place.cell < CORNERED:
        return None
    groups: dict[str, list[str]] = {}
    for r, c in np.argwhere(theme.beyond(values, largest)):
        groups.setdefault(ink_class(int(index[r, c])), []).append(f"M{c} {r}h.3v.3z")
    side = place.cell - place.gap
    transform = f"translate({place.left + 0.7 * side:.4g} {place.top:.4g})scale({place.cell:.4g})"
    return join(tag("path", {"class": f"b{ink}", "transform": transform, "d": "".join(d)}) for ink, d in groups.items())


def ink_class(colour: int) -> str:
    """Choose the ink of a colour on a light page and on a dark one: ``bb``, ``bw``, ``wb`` or ``ww``."""
    inks = (theme.ink_on(theme.colours(scheme)[colour]) for scheme in ("light", "dark"))
    return "".join("b" if ink == theme.BLACK else "w" for ink in inks)


def _numbers(values: Array, ink: str, cells: Sequence[tuple[int, int]], place: MatrixGeometry) -> Markup:
    half = (place.cell - place.gap) / 2
    room = (place.cell - place.gap) / DIGIT
    words = (
        tag(
            "text",
            {"x": f"{float(x(c, place)) + half:.4g}", "y": f"{float(y(r, place)) + half:.4g}"},
            formats.short(values[r, c], room),
        )
        for r, c in cells
    )
    return tag("g", {"class": f"t{ink}"}, *words)


def _signs(values: Array, ink: str, cells: Sequence[tuple[int, int]], place: MatrixGeometry) -> Markup:
    """Return a short line for minus, crossed for plus, in units of cells."""
    length = min(6.0, place.cell * 0.4) / place.cell
    half = f"{length / 2:.2g}"
    cross = f"m-{half}-{half}v{length:.2g}"
    lines = (f"M{c} {r}h{length:.2g}{'' if values[r, c] < 0 else cross}" for r, c in cells)
    middle = (place.cell - place.gap) / 2
    at = (place.left + middle - length / 2 * place.cell, place.top + middle)
    transform = f"translate({at[0]:.4g} {at[1]:.4g})scale({place.cell:.4g})"
    return tag(
        "path",
        {"class": f"s{ink}", "transform": transform, "stroke-width": f"{1 / place.cell:.2g}", "d": "".join(lines)},
    )


def worst_frame(worst: tuple[int, int] | None, place: MatrixGeometry) -> Markup | None:
    """Return a frame around one cell."""
    if worst is None:
        return None
    r, c = worst
    side = max(place.cell - 1, 5) + 2
    box = {
        "x": f"{float(x(c, place)) - 1:g}",
        "y": f"{float(y(r, place)) - 1:g}",
        "width": f"{side:g}",
        "height": f"{side:g}",
    }
    return join((tag("rect", {"class": "o", **box, "rx": 1.5}), tag("rect", {"class": "w", **box, "rx": 1.5})))


FONT = "font:10px system-ui,sans-serif"


def style_sheet(used: Array, cell: float, shapes: bool) -> Markup:
    """Return the rules of both themes.

    Args:
        used: the colour indices that occur.
        cell: size of a cell, which decides what is written on it; 0 for nothing.
        shapes: True when cells are shapes with a class per colour, False when they are a picture per theme.
    """
    pictures = "image{image-rendering:pixelated}image.d{display:none}", "image.l{display:none}image.d{display:inline}"
    light, dark = ("", "") if shapes else pictures
    themes = [_scheme(scheme, used, cell, shapes) for scheme in ("light", "dark")]
    return Markup(
        f"text{{{FONT};text-anchor:middle;dominant-baseline:central}}.r text{{text-anchor:end}}"
        f".f,.w,.o,.h,.e{{fill:none}}"
        f"{light}{themes[0]}@media(prefers-color-scheme:dark){{{dark}{themes[1]}}}"
    )


def _scheme(scheme: str, used: Array, cell: float, shapes: bool) -> str:
    ink, faint, paper = (getattr(colour, scheme) for colour in (theme.INK, theme.FAINT, theme.PAPER))
    table = theme.colours(scheme)
    rules = [
        f".p{{fill:{paper}}}.n,.r{{fill:{faint}}}.f{{stroke:{faint};stroke-opacity:.4}}.e{{stroke:{ink};stroke-opacity:.7}}"
    ]
    rules.append(f".w,.h{{stroke:{ink};stroke-width:1.6}}.o{{stroke:{paper};stroke-width:4}}")
    drawn = [int(k) for k in used if k != theme.PAPER_INDEX]
    inks = sorted({ink_class(k) for k in drawn}) if cell >= CORNERED else []
    colours = "".join(f".c{k}{{stroke:{table[k]}}}" for k in drawn) if shapes else ""
    return "".join((*rules, colours, *(_ink_rule(ink, scheme, cell) for ink in inks)))


def _ink_rule(ink: str, scheme: str, cell: float) -> str:
    colour = theme.BLACK if ink[("light", "dark").index(scheme)] == "b" else theme.WHITE
    if cell < MARKED:
        return f".b{ink}{{fill:{colour}}}"
    if cell >= NUMBERED:
        return f".t{ink},.b{ink}{{fill:{colour}}}"
    return f".b{ink}{{fill:{colour}}}.s{ink}{{stroke:{colour};stroke-opacity:.75}}"


def png(indices: np.ndarray[Any, Any], colours: Sequence[str]) -> bytes:
    """Encode an (h, w) array of indices into at most 256 hex colours."""
    from PIL import Image  # text needs no picture, and no package that makes one

    image = Image.fromarray(indices.astype(np.uint8), "P")
    image.putpalette(b"".join(bytes.fromhex(colour[1:]) for colour in colours))
    written = io.BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


def png_uri(indices: np.ndarray[Any, Any], colours: Sequence[str]) -> str:
    """Return the same as a ``data:`` address."""
    return "data:image/png;base64," + base64.b64encode(png(indices, colours)).decode("ascii")


NAMESPACE = "http://www.w3.org/2000/svg"
MOST_SHAPES = 100  # cells that are drawn as shapes; more become a picture


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
        largest: the value that gets the full colour on either side of zero, the matrix's own largest when None; a cell
            beyond it has a mark in its corner.
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
    top = theme.limit(values) if largest is None else largest
    place = MatrixGeometry.of(values.shape, rows or Axis(), cols or Axis())
    index = theme.indices(values, top)
    few = values.size <= MOST_SHAPES
    body: list[Markup | None] = [_cells(index, place) if few else _image(index, place), _frame(place)]
    body += [hatch(index, place), signs(values, index, place), corners(values, index, top, place)]
    sides = rows or Axis(), cols or Axis()
    body += [axis_labels(place, *sides), separators(place, *sides), worst_frame(worst, place)]
    sheet = style_sheet(np.unique(index), place.cell, few)
    w, h = round(place.width), round(place.height)
    start = {"xmlns": NAMESPACE, "width": str(w), "height": str(h), "viewBox": f"0 0 {w} {h}"}
    paper = tag("rect", {"class": "p", "width": "100%", "height": "100%", "rx": 4})
    return tag("svg", start, tag("style", None, sheet), paper, *body)


def thumbnail(matrix: Array, most: float | None = None, floor: float = 0.0) -> str:
    """Return a heat map of 48 pixels without words, for tables.

    Args:
        matrix: the numbers.
        most: what full colour stands for; by default by the numbers themselves.
        floor: the size up to which a number is drawn as nothing.
    """
    values = np.atleast_2d(np.abs(matrix) if np.iscomplexobj(matrix) else np.asarray(matrix, float))
    limit = theme.robust_limit(values, negligible=0) if most is None else most
    index = theme.indices(np.where(np.abs(values) <= floor, 0.0, values), limit)
    cell = 48.0 / max(*index.shape, 4)
    place = MatrixGeometry(cell, 0.0, 0.0, index.shape)
    h, w = index.shape
    start = {"xmlns": NAMESPACE, "width": f"{w * cell:.4g}", "height": f"{h * cell:.4g}"}
    paper = tag("rect", {"class": "p", "width": "100%", "height": "100%"})
    few = index.size <= 64
    sheet = style_sheet(np.unique(index), 0.0, few)
    return tag("svg", start, tag("style", None, sheet), paper, _cells(index, place) if few else _image(index, place))


def legend() -> str:
    """Return a bar from the most negative colour to the most positive, 160 x 12 pixels, without words."""
    stops = [tag("stop", {"class": f"g{k}", "offset": f"{k / 8:g}"}) for k in range(9)]
    themes = ("".join(f".g{k}{{stop-color:{theme.colours(t)[4 * k]}}}" for k in range(9)) for t in ("light", "dark"))
    sheet = Markup("{}@media(prefers-color-scheme:dark){{{}}}".format(*themes))
    start = {"xmlns": NAMESPACE, "width": "160", "height": "12"}
    bar = tag("rect", {"width": 160, "height": 12, "rx": 2, "fill": "url(#a)"})
    return tag("svg", start, tag("style", None, sheet), tag("linearGradient", {"id": "a"}, *stops), bar)


def _cells(index: Array, place: MatrixGeometry) -> Markup:
    """Return each cell as a short thick line in units of cells: that takes a third of the letters of a rectangle."""
    share = f"{1 - place.gap / place.cell:.3g}"
    lines = []
    for colour in np.unique(index[index != theme.PAPER_INDEX]):
        starts = (f"M{c} {r}h{share}" for r, c in np.argwhere(index == colour))
        lines.append(tag("path", {"class": f"c{colour}", "d": "".join(starts)}))
    middle = place.top + (place.cell - place.gap) / 2
    at = f"translate({place.left:.4g} {middle:.4g})scale({place.cell:.4g})"
    return tag("g", {"transform": at, "stroke-width": share}, *lines)


def _image(index: Array, place: MatrixGeometry) -> Markup:
    h, w = place.shape
    box = {"x": f"{place.left:g}", "y": f"{place.top:g}", "width": f"{w * place.cell:g}"}
    box |= {"height": f"{h * place.cell:g}", "preserveAspectRatio": "none"}
    one = {**box, "class": "l", "href": png_uri(index, theme.colours("light"))}
    other = {**box, "class": "d", "href": png_uri(index, theme.colours("dark"))}
    return join((tag("image", one), tag("image", other)))


def _frame(place: MatrixGeometry) -> Markup:
    h, w = place.shape
    box = {"x": f"{place.left - 0.5:g}", "y": f"{place.top - 0.5:g}"}
    return tag("rect", {"class": "f", **box, "width": f"{w * place.cell + 1:g}", "height": f"{h * place.cell + 1:g}"})


IMAGE = "display:block;max-width:100%;height:auto;margin:2px 0 0 0"
FIGURE = "display:inline-block;vertical-align:top;margin:0 16px 6px 0"
LONG_LABEL = 3  # letters


def panels(block: JacobianBlock) -> Markup:
    """Draw a block by backward, by finite differences and their difference, the scale below.

    Raises:
        LookupError, TypeError, ValueError: when its numbers were not kept.
    """
    pooled = block.pooled(32, 32)
    arrays = {panel: drawable(getattr(pooled, panel)) for panel in PANELS}
    top = theme.robust_limit(arrays["analytical"], arrays["numerical"])
    h, w = arrays["analytical"].shape
    wrong = wrong_cells(block, (0, 0), (pooled.rows, pooled.cols), (h, w))
    arrays["difference"] = shown_difference(block, arrays["difference"], wrong)
    outputs, inputs = (block.output_shape, pooled.rows, h), (block.input_shape, pooled.cols, w)
    rows = Axis(block.output_name, labels(*outputs, block.output_complex), breaks(*outputs))
    cols = Axis(block.input_name, labels(*inputs, block.input_complex), breaks(*inputs))
    short = max(map(len, rows.labels), default=0) <= LONG_LABEL  # long ones are written once, so that all three fit
    worst = worst_cell(block, pooled)
    figures = []
    for panel, values in arrays.items():
        beside = rows if short or panel == "analytical" else Axis(breaks=rows.breaks)
        marked = worst if panel == "difference" else None
        image = picture(
            heatmap(values, top, beside, cols, marked), _alt(block, panel, values, marked), {"style": IMAGE}
        )
        caption = tag("div", {"style": "font-size:0.9em;opacity:0.75"}, _caption(panel, values, top))
        figures.append(tag("div", {"style": FIGURE}, caption, image))
    scale = _scale(pooled, list(arrays.values()), top, worst)
    return join((tag("div", {"style": "margin:0"}, *figures), scale))


def _caption(panel: str, values: Array, top: float) -> str:
    words = messages.text(f"views.panel.{panel}")
    if panel == "difference" and bool((theme.indices(values, top) == theme.PAPER_INDEX).all()):
        return messages.text("views.panel.none", panel=words)
    return words


def _scale(pooled: Pooled, arrays: Sequence[Array], top: float, worst: tuple[int, int] | None) -> Markup:
    low, high = f"-{formats.number(top, 3)}", formats.number(top, 3)
    alt = messages.text("views.panel.legend_alt", low=low, high=high)
    bar = picture(legend(), alt, {"style": "display:inline-block;vertical-align:middle;margin:0 6px"})
    words = [messages.text("widgets.scale_robust")]
    if outside := sum(int(theme.beyond(values, top).sum()) for values in arrays):
        words.append(messages.text("views.panel.beyond", count=formats.count(outside)))
    if worst is not None:
        words.append(messages.text("views.panel.worst"))
    if (pooled.rows, pooled.cols) != (1, 1):
        words.append(messages.text("views.panel.pooled", rows=pooled.rows, cols=pooled.cols))
    if np.iscomplexobj(pooled.analytical):
        words.append(messages.text("views.panel.complex"))
    faint = tag("span", {"style": "opacity:0.75"}, " · ".join(words))
    return tag("div", {"style": "font-size:0.9em;margin:0 0 4px 0"}, low, bar, high, " ", faint)


def _alt(block: JacobianBlock, panel: str, values: Array, worst: tuple[int, int] | None) -> str:
    rows, cols = block.shape
    finite = values[np.isfinite(values)]
    low, high = (formats.number(finite.min()), formats.number(finite.max())) if finite.size else ("NaN", "NaN")
    words = messages.text(
        "views.panel.alt", panel=messages.text(f"views.panel.{panel}"), entry=block_name(block), rows=rows, cols=cols,
        output=block.output_name, input=block.input_name, low=low, high=high,
    )  # fmt: skip
    if worst is None:
        return words
    return f"{words} {messages.text('views.panel.alt_worst', row=worst[0], col=worst[1])}"
