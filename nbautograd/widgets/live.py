"""Static first, then live: the report is stored as plain HTML, and in a live kernel a widget takes its place.

The output that the notebook keeps holds no widget, so that it can be read wherever it is opened. Beside it the widget's
model is opened with the class of the static report; on the page the model's ``initialize`` finds the report by that
class and puts the interactive view in its place. Nothing of anywidget is imported where no kernel runs.
"""

from __future__ import annotations

import importlib
import sys
from collections import deque
from typing import Any

from nbautograd.core.display import Phrase
from nbautograd.core.stumbles import any_errors, record
from nbautograd.errors import CallError
from nbautograd.views.bundle import mimebundle as static_bundle
from nbautograd.views.card import Notice
from nbautograd.widgets.front_ends import fresh_anchor
from nbautograd.widgets.marks import marks_bundle

MOST_OPEN = 50  # widgets that stay connected; older ones give way to their static reports

# class of the value -> module and class of its widget, imported when first shown
VIEWS = {
    "FunctionReport": ("inspector", "InspectorWidget"),
    "AutogradGraph": ("graph", "GraphWidget"),
    "JacobianReport": ("jacobian", "JacobianWidget"),
    "GradcheckReport": ("gradcheck", "GradcheckWidget"),
    "CallLog": ("calls", "CallsWidget"),
    "SlowMotion": ("slow_motion", "SlowMotionWidget"),
    "Comparison": ("document", "DocumentWidget"),
    "AuditReport": ("document", "DocumentWidget"),
    "Explanation": ("document", "DocumentWidget"),
    "DispatchLog": ("document", "DocumentWidget"),
    "CourseProgress": ("document", "DocumentWidget"),
}

_open: deque[tuple[str, str, Any]] = deque()  # (cell, run of the cell, widget), oldest first


def widget(value: Any, *, anchor: str = "", **options: Any) -> Any:
    """Return the interactive view of a value.

    Args:
        value: a FunctionReport, AutogradGraph, JacobianReport, GradcheckReport or CallLog.
        anchor: class of the static report whose place the view takes on the page.
        options: ``tab`` and ``selection`` to begin with.

    Raises:
        CallError: when there is no interactive view of such a value, or for an unknown option.
    """
    home = _home(value)
    if home is None:
        raise CallError("widgets.no_view", type=type(value).__name__, known=", ".join(VIEWS))
    module = importlib.import_module(f"{__package__}.{home[0]}")
    return getattr(module, home[1])(value, anchor=anchor, **options)


def mimebundle(value: Any) -> dict[str, Any]:
    """Return the static bundle of a value; in a live kernel the interactive view takes its place on the page.

    An interrupt of the drawing takes the interactive view away, a second one leaves a sentence: the value is whole, and
    nobody is shown a traceback of ours.
    """
    try:
        return {**_bundle(value), **_marks(value)}
    except KeyboardInterrupt:
        return static_bundle(Notice((Phrase("views.interrupted"),)))


def _marks(value: Any) -> dict[str, Any]:
    """Return what an editor shows of a value; nothing where no kernel runs, whose cells could be meant."""
    if kernel() is None:
        return {}
    with any_errors("marks in the editor"):  # the report is complete without them
        return marks_bundle(value)
    return {}


def _bundle(value: Any) -> dict[str, str]:
    running = kernel()
    if running is None or _home(value) is None:
        return static_bundle(value)
    anchor = fresh_anchor()
    try:  # first, so that the page makes the view ready while the report is still being written, and nothing jumps
        _keep(running, widget(value, anchor=anchor))
    except (Exception, KeyboardInterrupt) as error:  # the static report is complete without it
        record(error, "live view")
        return static_bundle(value)
    return static_bundle(value, anchor=anchor, live=True)


def close_all() -> None:
    """Close every widget that took a static report's place; the static reports come back."""
    while _open:
        _open.popleft()[2].close()


def _home(value: Any) -> tuple[str, str] | None:
    """Return module and class of the view of a value; a live log is a CallLog too."""
    return next((VIEWS[cls.__name__] for cls in type(value).__mro__ if cls.__name__ in VIEWS), None)


def kernel() -> Any | None:
    """Return the running IPython kernel that a page may be connected to, or None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    kernel = getattr(shell, "kernel", None)
    return kernel if hasattr(kernel, "get_parent") else None


def _keep(kernel: Any, view: Any) -> None:
    """Remember a widget; close those of an earlier run of the same cell, and the oldest beyond the bound."""
    cell, run = _place(kernel)
    stale = [entry for entry in _open if cell and entry[0] == cell and entry[1] != run]
    _open.append((cell, run, view))
    excess = max(0, len(_open) - len(stale) - MOST_OPEN)
    for entry in stale + [entry for entry in _open if entry not in stale][:excess]:
        _open.remove(entry)
        entry[2].close()


def _place(kernel: Any) -> tuple[str, str]:
    """Return which cell is running, by the page's id for it, and which run of it this is."""
    try:
        parent = kernel.get_parent("shell")
        return str(parent["metadata"].get("cellId", "")), str(parent["header"]["msg_id"])
    except (KeyError, LookupError, TypeError, AttributeError):
        return "", ""
