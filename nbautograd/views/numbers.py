"""Numbers, shapes, sizes and times as people write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def number(value: Any, digits: int = 4) -> str:
    """A number short enough to read: ``1.0``, ``-0.5``, ``3e-10``, ``nan``.

    Example:
        >>> from nbautograd.views.numbers import number
        >>> [number(x) for x in (1, 2.0, 1 / 3, 3e-10, float("nan"), 1 + 2j, True)]
        ['1.0', '2.0', '0.3333', '3e-10', 'nan', '1.0+2.0j', 'True']
    """
    if value is None:
        return "-"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{number(value.real, digits)}{sign}{number(value.imag, digits)}j"
    x = float(value)
    if not math.isfinite(x):
        return str(x)
    if x == int(x) and abs(x) < 1e6:
        return f"{x or 0.0:.1f}"  # no minus on a zero
    mantissa, e, exponent = f"{x:.{digits}g}".partition("e")
    if e:
        return f"{mantissa}e{int(exponent)}"
    return mantissa if "." in mantissa or abs(x) >= 1e6 else f"{mantissa}.0"


def error(value: float) -> str:
    """The size of an error: one digit is enough for it. ``3e-10``, ``0.0``, ``1.0``."""
    return number(value, 2)


def count(value: int) -> str:
    """A whole number with its thousands set apart, ``1,048,576``; a very large one as ``1e12``."""
    return f"{value:,}" if value < 10**8 else number(float(f"{value:.3g}"), 3)


def shape(sizes: tuple[int, ...]) -> str:
    """``2x3``; an empty text for a scalar."""
    return "x".join(map(str, sizes))


PARTS = ("real", "imag")


def index(position: tuple[int, ...], pair: bool = False) -> str:
    """``[0,2]``; an empty text for a scalar's only element. With ``pair`` the last number is a part: ``[0].imag``."""
    if pair:
        return f"{index(position[:-1])}.{PARTS[position[-1]]}"
    return f"[{','.join(map(str, position))}]" if position else ""


def unravel(flat: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Position of a row-major element number in a tensor of these sizes."""
    return tuple(int(k) for k in np.unravel_index(flat, sizes)) if sizes else ()


def ravel(position: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    """Row-major element number of a position; the inverse of ``unravel``."""
    return int(np.ravel_multi_index(position, sizes)) if sizes else 0


def size(count_of_bytes: int) -> str:
    """``96 B``, ``1.2 kB``, ``3.4 MB``."""
    value = float(count_of_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with two or three digits that mean something: ``0.042``, ``1.3``, ``250``."""
    ms = seconds * 1000
    return f"{ms:.3f}" if ms < 0.1 else f"{ms:.2f}" if ms < 10 else f"{ms:.0f}"
