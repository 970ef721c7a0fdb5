"""What a progress bar looks like: static for every page, live where a page is connected to the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nbautograd import messages
from nbautograd.views.markup import prose, tag
from nbautograd.views.pieces import chip
from nbautograd.views.words import VERDICT_MARKS, say
from nbautograd.widgets import front_ends, live

if TYPE_CHECKING:
    from nbautograd.widgets.progress import Work

_TRACK = "height:6px;max-width:420px;margin-top:6px;border-radius:3px;background-color:rgba(128,128,128,.25)"
_FILLED = "height:6px;width:{}%;border-radius:3px;background-color:#1976d2"


def live_bar(work: Work) -> tuple[str, Any]:
    """The class of the static bar, and the live bar that takes its place; None where a page cannot show one there."""
    anchor = front_ends.fresh_anchor()
    if live.kernel() is None or front_ends.shows_views_only():
        return anchor, None
    try:
        from nbautograd.widgets.progress import ProgressWidget

        return anchor, ProgressWidget(work, anchor=anchor)
    except Exception:  # the static bar says the same
        return anchor, None


def static_bar(state: dict[str, Any], anchor: str) -> dict[str, str]:
    """The bar as it stands in the output: it names the kernel's own stop button."""
    percent = min(100, 100 * state["done"] // max(1, state["total"]))
    words = messages.text("magics.progress", percent=percent, what=state["what"])
    verdict = None
    if state["headline"]:
        mark = chip(f"{VERDICT_MARKS[state['tone']]} {say('verdict', state['tone'])}", state["tone"])
        verdict = tag("div", None, mark, " ", tag("strong", None, prose(state["headline"])))
    bar = tag("div", {"style": _TRACK}, tag("div", {"style": _FILLED.format(percent)}))
    plain = "\n".join(part for part in (state["headline"], words) if part)
    page = tag("div", {"class": f"nbautograd {anchor}"}, verdict or "", prose(words), bar)
    return {"text/plain": plain, "text/html": str(page)}
