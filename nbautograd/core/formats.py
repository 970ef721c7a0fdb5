"""Numbers, shapes, indices, sizes and times as people write them: in text, on pages and in pictures alike.

The live views write the same strings: frontend/formats.js. A test compares the two, so a rule is changed in both.
"""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

NOTHING = "–"  # in place of a number that there is not
NOT_FINITE = {"nan": "NaN", "inf": "∞", "-inf": "-∞"}
MOST_DIGITS = 17  # with these two float64 that differ look different
PARTS = ("real", "imag")
_NARROW = 0.45  # by which a minus or a point is narrower than a digit, as a share of it, in fonts of user interfaces
_WHOLE = 1e-6  # relative; what finite differences may leave of a whole number
_HUGE = 1e6  # from here on a whole number is written with an exponent


def number(value: Any, digits: int = 4) -> str:
    """Return a number short enough to read: ``1.0``, ``-0.5``, ``3e-10``, ``NaN``, ``∞``; ``–`` for None.

    A number that is not zero never reads as zero, and no digit is written that the rounding did not leave: 1234.5 is
    ``1235``.
    """
    if value is None:
        return NOTHING
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, int):
        return str(value) if abs(value) < _HUGE else number(float(value), digits)
    if isinstance(value, (complex, np.complexfloating)):
        imaginary = number(value.imag, digits)
        return f"{number(value.real, digits)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    x = float(value)
    if not math.isfinite(x):
        return NOT_FINITE[str(x)]
    if x == int(x) and abs(x) < _HUGE:
        return f"{x or 0.0:.1f}"  # no minus on a zero
    rounded, power = _rounded(x, digits)
    if not -5 < power < digits:
        return f"{rounded:e}".replace("e+", "e")
    text = f"{rounded:f}"
    return text if "." in text or power >= digits - 1 else f"{text}.0"


def _rounded(x: float, digits: int) -> tuple[decimal.Decimal, int]:
    """Round to so many digits, halves away from zero as JavaScript does; return the power of ten of the first too."""
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_HALF_UP)
    rounded = context.normalize(context.create_decimal_from_float(x))
    return rounded, rounded.adjusted()


def error(value: float) -> str:
    """Return the size of an error with the two digits that are enough for it: ``3e-10``, ``0.0``, ``1.5``."""
    return number(value, 2)


def compared(first: Any, second: Any, digits: int = 4) -> tuple[str, str]:
    """Return two numbers with as many digits as it takes for different ones to look different."""
    for more in range(digits, MOST_DIGITS + 1):
        texts = number(first, more), number(second, more)
        if texts[0] != texts[1] or first == second:
            break
    else:  # NaN twice
        return number(first, digits), number(second, digits)
    return texts


def short(value: float, room: float = 5) -> str:
    """Return a number that takes at most so many digits' room, where that can be, for a cell of a heat map.

    A number that only rounding makes whole keeps its zeros, ``-1.0``; up to what finite differences leave it is whole.
    """
    if not math.isfinite(value):
        return NOT_FINITE[str(float(value))]
    text = ""
    for digits in (3, 2, 1):
        rounded, power = _rounded(float(value), digits)
        if abs(float(rounded) - value) > _WHOLE * abs(value):
            rounded = rounded.quantize(decimal.Decimal((0, (1,), power - digits + 1)))
        long = value and not -5 < power < digits
        text = f"{rounded:e}".replace("e+", "e") if long else f"{abs(rounded) if not value else rounded:f}"
        if text.lstrip("-").startswith("0."):
            text = text.replace("0.", ".", 1)
        if len(text) - _NARROW * sum(map(text.count, "-.")) <= room:
            break
    return text


def count(value: int) -> str:
    """Return a whole number with its thousands set apart, ``1,048,576``; a very large one as ``1e12``."""
    return f"{value:,}" if value < 10**8 else number(float(value), 3)


def shape(sizes: tuple[int, ...]) -> str:
    """Return ``2×3``; an empty text for a scalar."""
    return "×".join(map(str, sizes))


def index(position: tuple[int, ...], pair: bool = False) -> str:
    """Return ``[0,2]``, empty for a scalar's only element; with ``pair`` the last number is a part: ``[0].imag``."""
    if pair:
        return f"{index(position[:-1])}.{PARTS[position[-1]]}"
    return f"[{','.join(map(str, position))}]" if position else ""


def size(count_of_bytes: int) -> str:
    """Return ``96 B``, ``1.2 kB``, ``33.6 MB``, ``336 MB``."""
    value, units = float(count_of_bytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    whole = units[0] == "B" or value >= 99.95
    return f"{math.floor(value + 0.5) if whole else number(math.floor(value * 10 + 0.5) / 10)} {units[0]}"


def milliseconds(seconds: float) -> str:
    """Return seconds as milliseconds with the two or three digits that mean something: ``0.042``, ``1.3``, ``250``."""
    ms = seconds * 1000
    return str(math.floor(ms + 0.5)) if ms >= 10 else number(ms, 2)


def time(seconds: float) -> str:
    """Return ``1.3 ms``, ``2.4 s``, ``2 min 10 s``."""
    if seconds < 1:
        return f"{milliseconds(seconds)} ms"
    whole = math.floor(seconds + 0.5)
    if whole < 60:
        return f"{number(seconds, 2) if seconds < 10 else whole} s"
    return f"{whole // 60} min {whole % 60} s"
