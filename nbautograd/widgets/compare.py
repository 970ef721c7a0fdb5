"""The Compare view: a Function beside its reference."""

from __future__ import annotations

from typing import Any

from nbautograd.inspection.comparison import Comparison
from nbautograd.views.builders.comparison import comparison_document, headline
from nbautograd.views.to_json import to_json
from nbautograd.widgets.base import ViewWidget


def comparison_state(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison's one sentence and its whole document."""
    return {"headline": headline(comparison), "document": to_json(comparison_document(comparison))}


class CompareWidget(ViewWidget):
    """A Function beside its reference: outputs, gradients, saved bytes, time, graphs."""

    KIND = "compare"

    def make_state(self, value: Comparison) -> dict[str, Any]:
        """Everything that the comparison holds."""
        return comparison_state(value)
