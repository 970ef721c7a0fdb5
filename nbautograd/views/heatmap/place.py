"""Geometry of a heat map: its cells, and the names along its sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nbautograd.views.markup import Markup, join, tag

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
class Place:
    """Geometry of the matrix: the size of a cell and the room left of it and above it."""

    cell: float
    left: float
    top: float
    shape: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...], rows: Axis, cols: Axis) -> Place:
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


def x(column: int, place: Place) -> str:
    """Return the left side of a column."""
    return f"{place.left + column * place.cell:.1f}"


def y(row: int, place: Place) -> str:
    """Return the top of a row."""
    return f"{place.top + row * place.cell:.1f}"


def axis_labels(place: Place, rows: Axis, cols: Axis) -> Markup:
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


def separators(place: Place, rows: Axis, cols: Axis) -> Markup | None:
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
