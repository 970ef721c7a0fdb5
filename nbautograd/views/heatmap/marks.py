"""Marks on a heat map's cells, so that nothing rests on colour alone: numbers, signs, hatches, a frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbautograd.core import formats
from nbautograd.views import palette, theme
from nbautograd.views.heatmap.place import Place, x, y
from nbautograd.views.markup import Markup, join, tag

Array = np.ndarray[Any, Any]
CHARACTER = 6.2  # width of a digit
NUMBERED, MARKED, CORNERED = 26.0, 9.0, 4.0  # from these sizes on a cell shows its number, its sign, its corner


def hatch(index: Array, place: Place) -> Markup | None:
    """Return crosses on the cells that are NaN, in units of cells."""
    where = np.argwhere(index == palette.NAN_INDEX)
    if not len(where):
        return None
    lines = (f"M{k} {r}l1 1m0-1l-1 1" for r, k in where)
    transform = f"translate({place.left:.4g} {place.top:.4g})scale({place.cell:.4g})"
    # the width is a style of its own: the sheet's is in points, this one in cells
    look = f"stroke-width:{1.6 / place.cell:.2g}"
    return tag("path", {"class": "h", "transform": transform, "style": look, "d": "".join(lines)})


def signs(values: Array, index: Array, place: Place) -> Markup | None:
    """Return the number in each large cell, + or - in each middling one, nothing in small ones."""
    if place.cell < MARKED:
        return None
    groups: dict[str, list[tuple[int, int]]] = {}
    for r, c in np.argwhere((index != palette.PAPER_INDEX) & (index != palette.NAN_INDEX)):
        groups.setdefault(ink_class(int(index[r, c])), []).append((int(r), int(c)))
    draw = _numbers if place.cell >= NUMBERED else _signs
    return join(draw(values, ink, cells, place) for ink, cells in groups.items())


def corners(values: Array, index: Array, largest: float, place: Place) -> Markup | None:
    """Draw a mark in the upper right corner of each cell whose value is beyond the scale, in units of cells."""
    if place.cell < CORNERED:
        return None
    groups: dict[str, list[str]] = {}
    for r, c in np.argwhere(palette.beyond(values, largest)):
        groups.setdefault(ink_class(int(index[r, c])), []).append(f"M{c} {r}h.3v.3z")
    side = place.cell - place.gap
    transform = f"translate({place.left + 0.7 * side:.4g} {place.top:.4g})scale({place.cell:.4g})"
    return join(tag("path", {"class": f"b{ink}", "transform": transform, "d": "".join(d)}) for ink, d in groups.items())


def ink_class(colour: int) -> str:
    """Choose the ink of a colour on a light page and on a dark one: ``bb``, ``bw``, ``wb`` or ``ww``."""
    inks = (palette.ink_on(palette.colours(scheme)[colour]) for scheme in ("light", "dark"))
    return "".join("b" if ink == theme.BLACK else "w" for ink in inks)


def _numbers(values: Array, ink: str, cells: Sequence[tuple[int, int]], place: Place) -> Markup:
    half = (place.cell - place.gap) / 2
    room = max(4, int(place.cell / CHARACTER))
    words = (
        tag(
            "text",
            {"x": f"{float(x(c, place)) + half:.4g}", "y": f"{float(y(r, place)) + half:.4g}"},
            formats.short(values[r, c], room),
        )
        for r, c in cells
    )
    return tag("g", {"class": f"t{ink}"}, *words)


def _signs(values: Array, ink: str, cells: Sequence[tuple[int, int]], place: Place) -> Markup:
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


def worst_frame(worst: tuple[int, int] | None, place: Place) -> Markup | None:
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
