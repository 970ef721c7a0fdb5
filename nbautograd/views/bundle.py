"""What a notebook stores of a value: the static page and the plain text."""

from __future__ import annotations

from typing import Any

from nbautograd.views.html import html
from nbautograd.views.text import text


def mimebundle(value: Any, anchor: str = "") -> dict[str, str]:
    """``text/plain`` and ``text/html`` of a public value.

    Args:
        value: a report, log, graph or any other value of this package.
        anchor: an extra class on the outermost element, by which a live widget finds the static page it replaces.

    Returns:
        The two texts by MIME type; the HTML survives sanitizers, untrusted notebooks and nbconvert.

    Example:
        >>> from nbautograd.core.recording.calls import CallLog
        >>> from nbautograd.views.bundle import mimebundle
        >>> sorted(mimebundle(CallLog()))
        ['text/html', 'text/plain']
    """
    return {"text/plain": text(value), "text/html": html(value, anchor)}
