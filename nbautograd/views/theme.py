"""The colours of everything that is drawn: pages, SVG, DOT, progress bars, and through frontend/widget.css live views.

Each has a light and a dark form; words in them have a contrast of at least 4.5 with the grounds that they stand on
(WCAG 2.2, 1.4.3).
"""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """A colour in both themes, and the system colour that takes its place where the reader forces colours."""

    light: str
    dark: str
    forced: str = "CanvasText"


# words and lines; in JupyterLab its own theme comes first, see HOST
INK = Colour("#1b1f27", "#e6e9ef")
FAINT = Colour("#4a5160", "#b4bcc9")
PAPER = Colour("#ffffff", "#16191e", "Canvas")
SOFT = Colour("#f2f3f5", "#2a2e35", "Canvas")
LINE = Colour("#dcdee3", "#454b55")
EDGE = Colour("#b9bec8", "#666e7a")
BRAND = Colour("#1565c0", "#6db3f8", "Highlight")

# what is said of a result
GOOD = Colour("#1a7a45", "#66cc80")
BAD = Colour("#b9262f", "#ff8f84")
OPEN = Colour("#8a5a00", "#e6b450")
PLAIN = Colour("#5a6672", "#a9b2bd")

# a change: the grounds of the line that goes and of the line that comes, a line that is pointed out
GONE = Colour("#fdeceb", "#43211f", "Canvas")
COME = Colour("#e6f5ea", "#1c3a25", "Canvas")
MARKED = Colour("#fff3c4", "#4a3d10", "Canvas")
CHANGE_INK = Colour("#1b1f27", "#e6e9ef")  # on these grounds, whatever the words of the page look like

# boxes of a graph, and their borders
OP, OP_LINE = Colour("#ffffff", "#20252c", "Canvas"), Colour("#8d95a3", "#7a8494")
FUNCTION, FUNCTION_LINE = Colour("#e9edff", "#1f2747", "Canvas"), Colour("#4a5fc1", "#8fa2ff")
LEAF, LEAF_LINE = Colour("#e3f3e6", "#17301e", "Canvas"), Colour("#3f8a50", "#66b67a")
OUTPUT, OUTPUT_LINE = Colour("#fdf0d8", "#382b12", "Canvas"), Colour("#a9741a", "#d9a441")
GROUP, GROUP_LINE = Colour("#eef0f3", "#2a3038", "Canvas"), Colour("#697281", "#98a2b1")
FROZEN = Colour("#d5dae1", "#3d4550", "Canvas")
TIE = Colour("#8a56b8", "#c79bea")

NAMED: dict[str, Colour] = {
    name.lower().replace("_", "-"): colour for name, colour in list(globals().items()) if isinstance(colour, Colour)
}
# JupyterLab's variable for each of these, which live views take where there is one
HOST = {
    "ink": "--jp-ui-font-color1",
    "faint": "--jp-ui-font-color2",
    "paper": "--jp-layout-color1",
    "soft": "--jp-layout-color2",
    "line": "--jp-border-color2",
    "edge": "--jp-border-color1",
    "brand": "--jp-brand-color1",
}

# a static page cannot know its theme: what it takes is seen on white and on black
BLACK, WHITE = "#000000", "#ffffff"
LINE_ON_ANY = "rgba(128,128,128,0.35)"
SOFT_ON_ANY = "rgba(128,128,128,0.08)"
TRACK_ON_ANY = "rgba(128,128,128,0.25)"
GONE_ON_ANY, COME_ON_ANY = "rgba(214,57,73,0.16)", "rgba(40,160,90,0.18)"

# heat maps, in matplotlib's figures too: equally spaced stops from -limit to +limit, blue for negative; matplotlib's
# "coolwarm" for light pages. In its dark "managua" small numbers have no sign: at an eighth of the limit +v and -v are
# 23 apart in CIE76 for some kind of colour blindness. In DUSK they are 36.
COOLWARM = (
    "#3b4cc0", "#4e68d8", "#6282ea", "#779af7", "#8db0fe", "#a3c2fe", "#b9d0f9", "#ccd9ed", "#dddcdc",
    "#ecd3c5", "#f5c4ac", "#f7b093", "#f4987a", "#eb7d62", "#dd5f4b", "#ca3b37", "#b40426",
)  # fmt: skip
DUSK = ("#8ee7ff", "#5ab5ea", "#4188c6", "#34629b", "#2c2f36", "#824a1c", "#b46d24", "#de9b3f", "#ffd273")
MAPS = {"light": COOLWARM, "dark": DUSK}
NAN = {"light": "#f2d53c", "dark": "#b8a100"}

# the ground of a chip, whose words have the colour of the page, by verdict or kind of finding
TONES = {
    "right": GOOD, "wrong": BAD, "cannot tell": OPEN, "meant": PLAIN, "unchecked": PLAIN,
    "bug": BAD, "lint": OPEN, "note": PLAIN,
}  # fmt: skip


def rule(name: str, colour: Colour, before: str = "") -> str:
    """Return a rule of an inline style: the light colour, which every front end keeps, then that of the page's theme.

    Args:
        name: of the property.
        colour: in both themes.
        before: what stands before it in the value, such as ``"4px solid "``.

    Example:
        >>> from nbautograd.views.theme import PAPER, rule
        >>> rule("color", PAPER)
        'color:#ffffff;color:light-dark(#ffffff,#16191e)'
    """
    return f"{name}:{before}{colour.light};{name}:{before}light-dark({colour.light},{colour.dark})"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two hex colours, from 1 to 21, as WCAG 2 defines it.

    Example:
        >>> from nbautograd.views.theme import contrast
        >>> contrast("#000000", "#ffffff")
        21.0
    """
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a hex colour, from 0 to 1, as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def style_variables() -> str:
    """Return the variables of frontend/widget.css: every colour by its name, in both themes and for forced colours."""
    both = {name: f"light-dark({colour.light}, {colour.dark})" for name, colour in NAMED.items()}
    free = [f"  --{name}: {f'var({HOST[name]}, {value})' if name in HOST else value};" for name, value in both.items()]
    forced = [f"    --{name}: {colour.forced};" for name, colour in NAMED.items()]
    return "\n".join((".nbag {", *free, "}", "@media (forced-colors: active) {", "  .nbag {", *forced, "  }", "}"))
