"""The style sheet inside a heat map: both themes, chosen by the page's colour scheme."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.views import palette
from nbautograd.views.heatmap.marks import CORNERED, MARKED, NUMBERED, ink_class
from nbautograd.views.markup import Markup

Array = np.ndarray[Any, Any]
FONT = "font:10px system-ui,sans-serif"


def style_sheet(used: Array, cell: float, shapes: bool) -> Markup:
    """The rules of both themes.

    Args:
        used: the colour indices that occur.
        cell: size of a cell, which decides what is written on it; 0 for nothing.
        shapes: True when cells are shapes with a class per colour, False when they are a picture per theme.
    """
    pictures = "image{image-rendering:pixelated}image.d{display:none}", "image.l{display:none}image.d{display:inline}"
    light, dark = ("", "") if shapes else pictures
    themes = [_theme(theme, used, cell, shapes) for theme in ("light", "dark")]
    return Markup(
        f"text{{{FONT};text-anchor:middle;dominant-baseline:central}}.r text{{text-anchor:end}}"
        f".f,.w,.o,.h,.e{{fill:none}}"
        f"{light}{themes[0]}@media(prefers-color-scheme:dark){{{dark}{themes[1]}}}"
    )


def _theme(theme: str, used: Array, cell: float, shapes: bool) -> str:
    ink, faint, paper = palette.INK[theme], palette.FAINT[theme], palette.PAPER[theme]
    table = palette.colours(theme)
    rules = [
        f".p{{fill:{paper}}}.n,.r{{fill:{faint}}}.f{{stroke:{faint};stroke-opacity:.4}}.e{{stroke:{ink};stroke-opacity:.7}}"
    ]
    rules.append(f".w,.h{{stroke:{ink};stroke-width:1.6}}.o{{stroke:{paper};stroke-width:4}}")
    drawn = [int(k) for k in used if k != palette.PAPER_INDEX]
    inks = sorted({ink_class(k) for k in drawn}) if cell >= CORNERED else []
    colours = "".join(f".c{k}{{stroke:{table[k]}}}" for k in drawn) if shapes else ""
    return "".join((*rules, colours, *(_ink_rule(ink, theme, cell) for ink in inks)))


def _ink_rule(ink: str, theme: str, cell: float) -> str:
    colour = palette.BLACK if ink[("light", "dark").index(theme)] == "b" else palette.WHITE
    if cell < MARKED:
        return f".b{ink}{{fill:{colour}}}"
    if cell >= NUMBERED:
        return f".t{ink},.b{ink}{{fill:{colour}}}"
    return f".b{ink}{{fill:{colour}}}.s{ink}{{stroke:{colour};stroke-opacity:.75}}"
