"""The looks of the SVG: one rule per class, light and dark, of which a document carries those that it uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from nbautograd.views import theme
from nbautograd.views.theme import Colour

Theme = Literal["light", "dark"]
SCHEMES: tuple[Theme, ...] = ("light", "dark")
ROOT = "font:12px system-ui,'DejaVu Sans',sans-serif"
DASHED, DOTTED = "stroke-dasharray:3 3", "stroke-dasharray:1.5 4;stroke-linecap:round"


class Rule(NamedTuple):
    """Style of a class: its colours, and what is alike in both themes."""

    colours: dict[str, Colour | None]
    look: str = ""

    def declarations(self, theme: Theme) -> str:
        """Return the colours of a theme, and for the light one, which the dark one builds on, the rest."""
        colours = [f"{name}:{getattr(colour, theme)}" for name, colour in self.colours.items() if colour is not None]
        if theme == "dark":
            return ";".join(colours)
        none = [f"{name}:none" for name, colour in self.colours.items() if colour is None]
        return ";".join(filter(None, [*none, *colours, self.look]))


def _box(ground: Colour | None, line: Colour, look: str = "") -> Rule:
    return Rule({"fill": ground, "stroke": line}, look)


RULES = {
    "b": _box(theme.PAPER, theme.LINE),
    "e": _box(None, theme.GROUP_LINE, "stroke-width:1.3"),
    "x": _box(None, theme.BAD, "stroke-width:1.8"),
    "z": _box(None, theme.GROUP_LINE, "stroke-dasharray:4 3"),
    "tie": _box(None, theme.TIE, f"stroke-width:1.4;{DOTTED}"),
    "same": _box(None, theme.TIE, "stroke-width:1.2"),
    "op": _box(theme.OP, theme.OP_LINE),
    "portal": _box(theme.OP, theme.OP_LINE, "stroke-dasharray:3 2"),
    "ghost": _box(None, theme.GROUP_LINE, DASHED),
    "function": _box(theme.FUNCTION, theme.FUNCTION_LINE, "stroke-width:1.6"),
    "leaf": _box(theme.LEAF, theme.LEAF_LINE),
    "output": _box(theme.OUTPUT, theme.OUTPUT_LINE),
    "group": _box(theme.GROUP, theme.GROUP_LINE, "stroke-width:2"),
    "l": Rule({"fill": theme.FAINT}, "font-size:10px"),
    "y": Rule({"fill": theme.BAD}, "font-size:10px"),
    "m": Rule({"fill": theme.FAINT}, "font-size:11px"),
    "n": Rule({}, "font-size:11px;font-weight:600"),
    "t": Rule({}, "font-size:13px;font-weight:600"),
    "g": Rule({}, "font-size:11px"),
    "r": Rule({"fill": theme.BAD}, "font-size:11px"),
}


def style_sheet(used: Iterable[str]) -> str:
    """Return the rules of the classes in use; the dark ones hold where the page says that its scheme is dark."""
    chosen = {"svg": Rule({"fill": theme.INK}, ROOT)}
    chosen |= {f".{name}": RULES[name] for name in RULES if name in set(used)}
    light, dark = (
        "".join(f"{name}{{{said}}}" for name, rule in chosen.items() if (said := rule.declarations(scheme)))
        for scheme in SCHEMES
    )
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
