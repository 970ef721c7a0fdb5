"""The diverging colours of ``theme`` with symmetric limits: which colour a value gets, on which scale.

Exact zeros are drawn as empty paper, NaN and the infinities in colours that the maps do not contain.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from nbautograd.views import theme

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
        >>> from nbautograd.views.palette import robust_limit
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
    stops = theme.MAPS[scheme]
    levels = [_between(stops, k / (LEVELS - 1)) for k in range(LEVELS)]
    return (*levels, getattr(theme.PAPER, scheme), theme.NAN[scheme], stops[-1], stops[0])


def rgb(values: Array, largest: float, scheme: str = "light") -> Array:
    """Return the colours of values as an array (..., 3) of bytes, without rounding to levels."""
    stops = np.array([_rgb(c) for c in theme.MAPS[scheme]], float)
    share = np.clip(np.nan_to_num(values / largest, nan=0.0, posinf=1.0, neginf=-1.0), -1.0, 1.0)
    place = (share + 1.0) / 2.0 * (len(stops) - 1)
    out = np.stack([np.interp(place, np.arange(len(stops)), stops[:, k]) for k in range(3)], -1)
    out[indices(values, largest) == PAPER_INDEX] = _rgb(getattr(theme.PAPER, scheme))
    out[np.isnan(values)] = _rgb(theme.NAN[scheme])
    return np.asarray(np.rint(out), np.uint8)


def ink_on(colour: str) -> str:
    """Return black or white, whichever reads better on a colour."""
    return theme.BLACK if theme.luminance(colour) > 0.18 else theme.WHITE


def _between(stops: tuple[str, ...], share: float) -> str:
    place = share * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    pairs = zip(_rgb(stops[low]), _rgb(stops[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * (place - low)):02x}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
