"""The colours of everything that is drawn: pages, SVG, DOT, progress bars, and through frontend/widget.css live views.

Each has a light and a dark form; words in them have a contrast of at least 4.5 with the grounds that they stand on
(WCAG 2.2, 1.4.3). The colour of a number is one of a diverging map with symmetric limits: exact zeros are drawn as
empty paper, NaN and the infinities in colours that the map does not contain.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np


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

# heat maps, in matplotlib's figures too: equally spaced stops from -limit to +limit, blue for negative, orange for
# positive, as the red of matplotlib's "coolwarm" was taken for that of a wrong gradient. In its dark "managua" small
# numbers have no sign: at an eighth of the limit +v and -v are 23 apart in CIE76 for some kind of colour blindness. In
# DUSK they are 36.
DAWN = ("#3b4cc0", "#6282ea", "#8db0fe", "#b9d0f9", "#dddcdc", "#f3cf9f", "#eea75a", "#cf7a1e", "#a04a00")
DUSK = ("#8ee7ff", "#5ab5ea", "#4188c6", "#34629b", "#2c2f36", "#824a1c", "#b46d24", "#de9b3f", "#ffd273")
MAPS = {"light": DAWN, "dark": DUSK}
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


Array = np.ndarray[Any, Any]

HALF = 16  # levels on either side of zero: few enough for a style sheet of 2 kB
ZERO = HALF
LEVELS = 2 * HALF + 1
PAPER_INDEX, NAN_INDEX, PLUS_INF, MINUS_INF = LEVELS, LEVELS + 1, LEVELS + 2, LEVELS + 3
QUANTILE = 0.98  # of the sizes, that the robust limit covers
OUTLYING = 2.0  # times the robust limit
NEGLIGIBLE = 1e-6  # of the limit: what finite differences leave of an exact zero is not worth a colour


def limit(*arrays: Array) -> float:
    """Return the largest finite size in these arrays, 1.0 without any: the limit of their common scale."""
    sizes = [np.abs(a[np.isfinite(a)]) for a in arrays]
    largest = max((float(s.max()) for s in sizes if s.size), default=0.0)
    return largest if largest > 0 else 1.0


def robust_limit(*arrays: Array, negligible: float = NEGLIGIBLE) -> float:
    """Return the limit of a scale that no outlier washes out: the 98th percentile of the sizes that are not negligible.

    A largest size of less than twice that is no outlier, and then the limit itself. The live heat maps use the same
    rule: frontend/scale.js.

    Args:
        arrays: the numbers.
        negligible: the share of the largest up to which a size does not count; 0 for recorded values, which know no
            noise of finite differences.

    Example:
        >>> import numpy as np
        >>> from nbautograd.views.theme import robust_limit
        >>> robust_limit(np.append(np.ones(99), 30.0)), robust_limit(np.arange(100.0))
        (1.0, 99.0)
    """
    sizes = np.sort(np.concatenate([np.abs(a[np.isfinite(a)]).reshape(-1) for a in arrays]))
    top = limit(sizes)
    sizes = sizes[sizes > negligible * top]
    if not sizes.size:
        return top
    covering = float(sizes[math.ceil(QUANTILE * (sizes.size - 1))])
    return top if top <= OUTLYING * covering else covering


def beyond(values: Array, largest: float) -> Array:
    """Return where a value is outside of the scale, so that its colour says less than its size."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values) > largest)


def indices(values: Array, largest: float) -> Array:
    """Index of each value's colour in the tables of ``colours``: a level, paper, NaN or an infinity."""
    finite = np.isfinite(values)
    share = np.clip(np.where(finite, values, 0.0) / largest, -1.0, 1.0)
    out = np.rint(share * HALF).astype(np.int16) + ZERO
    out[np.abs(share) <= NEGLIGIBLE] = PAPER_INDEX
    out[np.isnan(values)] = NAN_INDEX
    out[np.isposinf(values)] = PLUS_INF
    out[np.isneginf(values)] = MINUS_INF
    return np.asarray(out)


@cache
def colours(scheme: str) -> tuple[str, ...]:
    """Return the hex colour of every index, for the scheme ``"light"`` or ``"dark"``."""
    stops = MAPS[scheme]
    levels = [_between(stops, k / (LEVELS - 1)) for k in range(LEVELS)]
    return (*levels, getattr(PAPER, scheme), NAN[scheme], stops[-1], stops[0])


def rgb(values: Array, largest: float, scheme: str = "light") -> Array:
    """Return the colours of values as an array (..., 3) of bytes, without rounding to levels."""
    stops = np.array([_rgb(c) for c in MAPS[scheme]], float)
    share = np.clip(np.nan_to_num(values / largest, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    place = (share + 1.0) / 2.0 * (len(stops) - 1)
    out = np.stack([np.interp(place, np.arange(len(stops)), stops[:, k]) for k in range(3)], -1)
    out[indices(values, largest) == PAPER_INDEX] = _rgb(getattr(PAPER, scheme))
    out[np.isnan(values)] = _rgb(NAN[scheme])
    return np.asarray(np.rint(out), np.uint8)


def ink_on(colour: str) -> str:
    """Return black or white, whichever reads better on a colour."""
    return BLACK if luminance(colour) > 0.18 else WHITE


def _between(stops: tuple[str, ...], share: float) -> str:
    place = share * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    pairs = zip(_rgb(stops[low]), _rgb(stops[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
