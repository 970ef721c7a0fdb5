"""What a notebook stores of a value: the static page and the plain text."""

from __future__ import annotations

from typing import Any

from nbautograd import messages
from nbautograd.views.html import html
from nbautograd.views.markup import tag
from nbautograd.views.pieces import pre
from nbautograd.views.text import text


def mimebundle(value: Any, anchor: str = "") -> dict[str, str]:
    """``text/plain`` and ``text/html`` of a public value.

    Args:
        value: a report, log, graph or any other value of this package.
        anchor: an extra class on the outermost element, by which a live widget finds the static page it replaces.

    Returns:
        The two texts by MIME type; the HTML survives sanitizers, untrusted notebooks and nbconvert.

    Example:
        >>> from nbautograd.core.recording.call import CallLog
        >>> from nbautograd.views.bundle import mimebundle
        >>> sorted(mimebundle(CallLog()))
        ['text/html', 'text/plain']
    """
    return {"text/plain": _text(value), "text/html": _html(value, anchor)}


def _text(value: Any) -> str:
    """The text; should it ever fail, the value's one line and what went wrong, never our traceback."""
    try:
        return text(value)
    except Exception as error:
        return f"{value!r}\n{_failed(error)}"


def _html(value: Any, anchor: str) -> str:
    try:
        return html(value, anchor)
    except Exception as error:
        words = pre(f"{_text(value)}\n{_failed(error)}")
        return str(tag("div", {"class": f"nbautograd {anchor}".strip()}, words))


def _failed(error: Exception) -> str:
    return messages.text("views.failed", error=f"{type(error).__name__}: {error}")
