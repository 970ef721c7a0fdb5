"""Width of a text, estimated without a font at hand, and its shortening.

Widths are those of DejaVu Sans, the widest of the faces that a page falls back to, so that text fits its box in any.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from nbautograd import messages
from nbautograd.core import formats

# advance of the characters from space to tilde, in hundredths of the font size
_REGULAR = (
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84,
    84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61,
    69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59,
    82, 59, 59, 52, 64, 34, 64, 84,
)  # fmt: skip
_OTHER = {
    "×": 84,
    "·": 32,
    "…": 100,
    "‖": 50,
    "–": 50,
    "∂": 52,
    "Σ": 63,
    "→": 84,
    "✓": 84,
    "✗": 84,
    **dict.fromkeys("▁▂▃▄▅▆▇█", 100),
}
_known = {chr(32 + i): width for i, width in enumerate(_REGULAR)} | _OTHER
BOLD = 1.12  # bold letters are at most this much wider on average

LONGEST = 200  # letters of either end of a text that are looked at

SIZES = {"title": 13, "text": 12, "name": 11, "muted": 11, "good": 11, "bad": 11, "label": 11}


@lru_cache(maxsize=8192)
def text_width(text: str, style: str = "text") -> int:
    """Return the width in px of a text in one of the styles of ``SIZES``, rounded up."""
    try:
        hundredths = sum(map(_known.__getitem__, text))
    except KeyError:
        hundredths = sum(map(_advance, text))
    wide = BOLD if style in ("title", "name") else 1.0
    return int(hundredths * SIZES[style] * wide / 100) + 1


def _advance(letter: str) -> int:
    if letter in _known:
        return _known[letter]
    if unicodedata.combining(letter):
        return 0
    return 100 if unicodedata.east_asian_width(letter) in "WF" else 70


def fit(text: str, width: int, style: str = "text") -> str:
    """Return the text, or as much of its start and its end as fits with an ellipsis between.

    Example:
        >>> from nbautograd.views.layout.text import fit
        >>> fit("ConvolutionBackward0", 90)
        'Convo…ward0'
    """
    text = printable(text)
    if text_width(text, style) <= width:
        return text
    cut = min(len(text) * 3 // 5, LONGEST)
    head, tail = text[:cut], text[cut:][-LONGEST:]
    while (head or tail) and text_width(f"{head}…{tail}", style) > width:
        if len(head) > len(tail):
            head = head[:-1]
        else:
            tail = tail[1:]
    return f"{head}…{tail}"


def printable(text: str) -> str:
    """Return the text on one line, without control characters, which XML could not hold."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " for c in text)


def shape_text(shape: tuple[int, ...] | None) -> str:
    """Return ``"5×3"``, ``"scalar"``; unknown is empty."""
    return "" if shape is None else formats.shape(shape) or messages.text("views.tensor.scalar")
