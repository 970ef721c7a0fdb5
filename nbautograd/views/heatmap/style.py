"""The style sheet inside a heat map: both themes, chosen by the page's colour scheme."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.views import palette, theme
from nbautograd.views.heatmap.marks import CORNERED, MARKED, NUMBERED, ink_class
from nbautograd.views.markup import Markup

Array = np.ndarray[Any, Any]
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
    table = palette.colours(scheme)
    rules = [
        f".p{{fill:{paper}}}.n,.r{{fill:{faint}}}.f{{stroke:{faint};stroke-opacity:.4}}.e{{stroke:{ink};stroke-opacity:.7}}"
    ]
    rules.append(f".w,.h{{stroke:{ink};stroke-width:1.6}}.o{{stroke:{paper};stroke-width:4}}")
    drawn = [int(k) for k in used if k != palette.PAPER_INDEX]
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
