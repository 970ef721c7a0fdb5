"""What is drawn on a heat map's cells so that nothing rests on colour alone: numbers, signs, hatches, a frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.views import palette
from nbautograd.views.heatmap_place import Place, x, y
from nbautograd.views.markup import Markup, join, tag

Array = np.ndarray[Any, Any]
NUMBERED, MARKED = 26.0, 9.0  # from these sizes on a cell shows its number, or its sign


def hatch(index: Array, place: Place) -> Markup | None:
    """Crosses on the cells that are NaN."""
    where = np.argwhere(index == palette.NAN_INDEX)
    if not len(where):
        return None
    c = place.cell - 1
    lines = (f"M{x(k, place)} {y(r, place)}l{c:g} {c:g}m0 -{c:g}l-{c:g} {c:g}" for r, k in where)
    return tag("path", {"class": "h", "d": "".join(lines)})


def signs(values: Array, index: Array, place: Place) -> Markup | None:
    """The number in each large cell, + or - in each middling one, nothing in small ones."""
    if place.cell >= NUMBERED:
        return join(_number(float(values[r, c]), int(index[r, c]), r, c, place) for r, c in np.ndindex(*values.shape))
    if place.cell < MARKED:
        return None
    half, reach = place.cell / 2 - 0.5, min(3.0, place.cell / 5)
    marks: dict[int, list[str]] = {}
    for r, c in np.argwhere(index != palette.PAPER_INDEX):
        if np.isnan(values[r, c]):
            continue
        middle, height = place.left + c * place.cell + half, place.top + r * place.cell + half
        mark = f"M{middle - reach:.1f} {height:.1f}h{2 * reach:g}"
        if values[r, c] > 0:
            mark += f"M{middle:.1f} {height - reach:.1f}v{2 * reach:g}"
        marks.setdefault(int(index[r, c]), []).append(mark)
    return join(tag("path", {"class": f"s{k}", "d": "".join(m)}) for k, m in marks.items())


def _number(value: float, colour: int, r: int, c: int, place: Place) -> Markup | None:
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


def worst_frame(worst: tuple[int, int] | None, place: Place) -> Markup | None:
    """A frame around one cell."""
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
