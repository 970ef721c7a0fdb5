"""A matrix as a small SVG heat map that is light on light pages and dark on dark ones.

The picture is made for an ``<img>``: front ends let its style through, and browsers tell it the page's colour scheme.
Sign shows by mark as well as by colour where a cell is large enough; exact zeros are empty; NaN is hatched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.views import palette, theme
from nbautograd.views.heatmap.marks import corners, hatch, signs, worst_frame
from nbautograd.views.heatmap.place import Axis, Place, axis_labels, separators
from nbautograd.views.heatmap.style import style_sheet
from nbautograd.views.markup import Markup, join, tag
from nbautograd.views.png import png_uri

Array = np.ndarray[Any, Any]

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
    top = palette.limit(values) if largest is None else largest
    place = Place.of(values.shape, rows or Axis(), cols or Axis())
    index = palette.indices(values, top)
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


def thumbnail(matrix: Array) -> str:
    """Return a heat map of 48 pixels without words, for tables."""
    values = np.atleast_2d(np.abs(matrix) if np.iscomplexobj(matrix) else np.asarray(matrix, float))
    index = palette.indices(values, palette.robust_limit(values, negligible=0))
    cell = 48.0 / max(*index.shape, 4)
    place = Place(cell, 0.0, 0.0, index.shape)
    h, w = index.shape
    start = {"xmlns": NAMESPACE, "width": f"{w * cell:.4g}", "height": f"{h * cell:.4g}"}
    paper = tag("rect", {"class": "p", "width": "100%", "height": "100%"})
    few = index.size <= 64
    sheet = style_sheet(np.unique(index), 0.0, few)
    return tag("svg", start, tag("style", None, sheet), paper, _cells(index, place) if few else _image(index, place))


def legend() -> str:
    """Return a bar from the most negative colour to the most positive, 160 x 12 pixels, without words."""
    stops = [tag("stop", {"class": f"g{k}", "offset": f"{k / 8:g}"}) for k in range(9)]
    themes = ("".join(f".g{k}{{stop-color:{theme.MAPS[t][2 * k]}}}" for k in range(9)) for t in ("light", "dark"))
    sheet = Markup("{}@media(prefers-color-scheme:dark){{{}}}".format(*themes))
    start = {"xmlns": NAMESPACE, "width": "160", "height": "12"}
    bar = tag("rect", {"width": 160, "height": 12, "rx": 2, "fill": "url(#a)"})
    return tag("svg", start, tag("style", None, sheet), tag("linearGradient", {"id": "a"}, *stops), bar)


def _cells(index: Array, place: Place) -> Markup:
    """Return each cell as a short thick line in units of cells: that takes a third of the letters of a rectangle."""
    share = f"{1 - place.gap / place.cell:.3g}"
    lines = []
    for colour in np.unique(index[index != palette.PAPER_INDEX]):
        starts = (f"M{c} {r}h{share}" for r, c in np.argwhere(index == colour))
        lines.append(tag("path", {"class": f"c{colour}", "d": "".join(starts)}))
    middle = place.top + (place.cell - place.gap) / 2
    at = f"translate({place.left:.4g} {middle:.4g})scale({place.cell:.4g})"
    return tag("g", {"transform": at, "stroke-width": share}, *lines)


def _image(index: Array, place: Place) -> Markup:
    h, w = place.shape
    box = {"x": f"{place.left:g}", "y": f"{place.top:g}", "width": f"{w * place.cell:g}"}
    box |= {"height": f"{h * place.cell:g}", "preserveAspectRatio": "none"}
    one = {**box, "class": "l", "href": png_uri(index, palette.colours("light"))}
    other = {**box, "class": "d", "href": png_uri(index, palette.colours("dark"))}
    return join((tag("image", one), tag("image", other)))


def _frame(place: Place) -> Markup:
    h, w = place.shape
    box = {"x": f"{place.left - 0.5:g}", "y": f"{place.top - 0.5:g}"}
    return tag("rect", {"class": "f", **box, "width": f"{w * place.cell + 1:g}", "height": f"{h * place.cell + 1:g}"})
