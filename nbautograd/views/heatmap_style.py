"""The style sheet inside a heat map: both themes, chosen by the page's colour scheme."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbautograd.views import palette
from nbautograd.views.heatmap_marks import MARKED, NUMBERED
from nbautograd.views.markup import Markup

Array = np.ndarray[Any, Any]
FONT = "font:10px system-ui,sans-serif"


def style_sheet(used: Array, cell: float = 0.0) -> Markup:
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
