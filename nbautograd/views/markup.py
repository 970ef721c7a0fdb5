"""Building HTML and SVG from parts: the only place that escapes.

Text that is not already ``Markup`` is escaped wherever it enters, so a class named like a tag stays a name.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping

Attributes = Mapping[str, "str | int | float | bool | None"]

# HTML's elements without an end tag, and the SVG shapes that have no content
_EMPTY = frozenset(("br", "wbr", "hr", "img", "col", "rect", "path", "line", "image", "use", "circle", "stop"))
# what is read as one word and may not be broken at its hyphens: options, small numbers; in live views frontend/dom.js
_WHOLE = re.compile(r"((?<![\w-])--?[A-Za-z][\w-]*|-?\d[\d.]*e-\d+)")
# what goes with the word behind it, in words as in frontend/dom.js: the d of d y[0] / d x, a number before its unit;
# nothing that Python source can have
_DERIVATIVE = re.compile(r"\bd ([^\s/[\]]+(?: \d+)?(?:\[[\d,]*\])?(?:\.\w+)?) / d (?=\S)")
_UNIT = re.compile(r"(?<=\d) (?=(?:[kMGT]?B|ms|s)\b|%(?![\s\w(]))")
# control characters, halves of pairs, and what would turn the direction of the text behind it
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Markup(str):
    """Text that is HTML or SVG already."""

    __slots__ = ()


def escape(text: object) -> Markup:
    """Return text as markup; what is markup already stays as it is. Control characters become visible replacements."""
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(_CONTROL.sub("\ufffd", str(text)), quote=True))


def tag(name: str, attributes: Attributes | None = None, *children: object) -> Markup:
    """Return one element; attributes that are None or False are left out, True stands alone.

    Example:
        >>> from nbautograd.views.markup import tag
        >>> tag("b", {"title": 'a "b"'}, "1 < 2")
        '<b title="a &quot;b&quot;">1 &lt; 2</b>'
    """
    start = name + "".join(_attribute(k, v) for k, v in (attributes or {}).items())
    if name in _EMPTY and not children:
        return Markup(f"<{start}/>")
    return Markup(f"<{start}>{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Return parts one after another, each escaped unless it is markup."""
    return Markup(escape(between).join(escape(p) for p in parts if p is not None))


def unbroken(words: str) -> Markup:
    """Return words that go on in another line only where a reader expects it: ``--inputs``, ``1e-11``, ``d y``.

    Example:
        >>> from nbautograd.views.markup import unbroken
        >>> unbroken("right to 1e-11")
        'right to <span style="white-space:nowrap">1e-11</span>'
    """
    tied = _UNIT.sub("\u00a0", _DERIVATIVE.sub("d\u00a0\\1 / d\u00a0", words))
    pieces = _WHOLE.split(tied)
    return join(tag("span", {"style": "white-space:nowrap"}, p) if k % 2 else p for k, p in enumerate(pieces))


def prose(sentence: str) -> Markup:
    """Return a sentence with its ```code``` between backticks set as code.

    Example:
        >>> from nbautograd.views.markup import prose
        >>> prose("wrong for `weight`")
        'wrong for <code>weight</code>'
    """
    pieces = re.split(r"`([^`\n]+)`", sentence)
    return join(tag("code", None, unbroken(p)) if k % 2 else unbroken(p) for k, p in enumerate(pieces))


def picture(svg: str, alt: str, attributes: Attributes | None = None) -> Markup:
    """Return an SVG document as an ``<img>``, the one form of picture that every front end keeps."""
    source = "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8", "replace")).decode("ascii")
    return tag("img", {"src": source, "alt": alt, **(attributes or {})})


def _attribute(name: str, value: str | int | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(value)}"'
