"""A value whose live view is its document: a comparison, an audit, a trace of dispatches, the exercises tried."""

from __future__ import annotations

from typing import Any

from nbautograd.inspection.audit_report import AuditReport
from nbautograd.inspection.comparison import Comparison
from nbautograd.views.builders import build
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.states import DocumentState
from nbautograd.widgets.thawing import taken_along


class DocumentWidget(ViewWidget):
    """The document of a value, drawn live: its trees fold, what it links to is a click away."""

    KIND = "document"

    def make_state(self, value: Any) -> DocumentState:
        """Return the document."""
        taken = isinstance(value, AuditReport | Comparison)
        return DocumentState(document=build(value), about=getattr(value, "function", "audit") if taken else "")

    def questions(self) -> dict[str, Question]:
        """Return the questions for a report on a program, or beside a reference, as text and as a page of its own."""
        return taken_along(self) if isinstance(self.value, AuditReport | Comparison) else {}
