"""The Audit view: every custom Function of a program, and the report on each call that is wrong."""

from __future__ import annotations

from typing import Any

from nbautograd.inspection.audit_report import AuditReport
from nbautograd.views.builders.audit import audit_document, headline
from nbautograd.views.to_json import to_json
from nbautograd.widgets.base import ViewWidget


class AuditWidget(ViewWidget):
    """An audit: the page draws its document, as it does a comparison's."""

    KIND = "compare"

    def make_state(self, value: AuditReport) -> dict[str, Any]:
        """Return the answer in one sentence and the whole document."""
        return {"headline": headline(value), "document": to_json(audit_document(value))}
