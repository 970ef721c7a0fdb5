"""A value whose live view is its document: a comparison, an audit, a trace of dispatches, the exercises tried."""

from __future__ import annotations

from typing import Any

from nbautograd.views.builders import build
from nbautograd.widgets.base import ViewWidget
from nbautograd.widgets.states import DocumentState


class DocumentWidget(ViewWidget):
    """The document of a value, drawn live: its trees fold, what it links to is a click away."""

    KIND = "document"

    def make_state(self, value: Any) -> DocumentState:
        """Return the document."""
        return DocumentState(document=build(value))
