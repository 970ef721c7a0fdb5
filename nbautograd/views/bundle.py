"""Every public value as plain text, as a static page, and as what a notebook stores: both."""

from __future__ import annotations

from typing import Any

from nbautograd import messages
from nbautograd.core.stumbles import any_errors
from nbautograd.views.builders import (
    audit,
    blocks,
    build,
    calls,
    comparison,
    dispatches,
    explanation,
    graph,
    motion,
    report,
    summary,
)
from nbautograd.views.document import Document, Verbatim, sentences
from nbautograd.views.markup import Markup, tag
from nbautograd.views.phrases import failed
from nbautograd.views.to_html import SHEET, page
from nbautograd.views.to_text import to_text

BUILDERS = (
    audit,
    blocks,
    calls,
    comparison,
    dispatches,
    explanation,
    graph,
    motion,
    report,
    summary,
)  # imported, they register so
LOOK = "line-height:1.45;margin:2px 0;max-width:100%;overflow-wrap:break-word"  # a name may be longer than a line


def text(value: Any) -> str:
    """Return a public value as plain text: aligned, without colours, for a terminal, an e-mail, a log.

    Args:
        value: a report, log, call, graph, comparison, finding, summary, snapshot or recorded value.

    Returns:
        Lines joined by newlines, without a newline at the end; the value's ``repr`` for anything else.

    Example:
        >>> from nbautograd.core.values import TensorSummary
        >>> from nbautograd.views.bundle import text
        >>> text(TensorSummary((2,), "float64", numel=2, values=(1.0, 0.5)))
        'float64 2  1.0, 0.5'
    """
    try:
        return to_text(build(value))
    except Exception as error:
        return _in_place_of(value, failed(error, f"text of {type(value).__name__}"))


def html(value: Any, anchor: str = "") -> str:
    """Return a public value as one ``<div>`` of static HTML: tables, pictures as ``<img>``, inline styles, no scripts.

    Args:
        value: a report, log, call, graph, comparison, finding, summary, snapshot or recorded value.
        anchor: an extra class on the outermost element, by which a live widget finds the page that it replaces.

    Returns:
        Markup in which every name that came from the user is escaped.

    Example:
        >>> from nbautograd.core.values import Value
        >>> from nbautograd.views.bundle import html
        >>> "&lt;b&gt;" in html(Value("<b>", "int", "3"))
        True
    """
    try:
        return str(_outermost(page(build(value)), anchor))
    except Exception as error:
        instead = sentences([_in_place_of(value, failed(error, f"page of {type(value).__name__}"))])
        return str(_outermost(page(instead), anchor))


def mimebundle(value: Any, anchor: str = "", live: bool = False) -> dict[str, str]:
    """Return the ``text/plain`` and ``text/html`` of a public value.

    Args:
        value: a report, log, graph or any other value of this package.
        anchor: an extra class on the outermost element, by which a live widget finds the static page it replaces.
        live: whether a live view takes its place where there is a kernel; a line says how to get it elsewhere.

    Returns:
        The two texts by MIME type; the HTML survives sanitizers, untrusted notebooks and nbconvert.

    Example:
        >>> from nbautograd.core.recording.call import CallLog
        >>> from nbautograd.views.bundle import mimebundle
        >>> sorted(mimebundle(CallLog()))
        ['text/html', 'text/plain']
    """
    try:
        return written(build(value), anchor, live)
    except Exception as error:  # what can be written, and what went wrong, never our traceback
        words = failed(error, f"page of {type(value).__name__}")
        readable = text(value)
        return written((Verbatim(readable if words in readable else f"{readable}\n{words}"),), anchor)


def _in_place_of(value: Any, words: str) -> str:
    """Return one line of a value that cannot be written, and why."""
    one = f"<{type(value).__name__}>"
    with any_errors("repr"):
        one = repr(value)
    return f"{one}\n{words}"


def written(document: Document, anchor: str = "", live: bool = False) -> dict[str, str]:
    """Return a document as text and as a page, by MIME type."""
    hint = sentences([messages.text("views.stored")], "small") if live else ()
    return {"text/plain": to_text(document), "text/html": str(_outermost(page((*document, *hint)), anchor))}


def _outermost(inside: Markup, anchor: str) -> Markup:
    return tag("div", {"class": f"nbautograd {anchor}".strip(), "style": LOOK}, tag("style", None, SHEET), inside)
