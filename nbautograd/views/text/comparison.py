"""Comparisons as plain text."""

from __future__ import annotations

from nbautograd.inspection.comparison import Comparison
from nbautograd.views.comparison import headline, rows
from nbautograd.views.tables import table


def comparison_text(comparison: Comparison) -> str:
    """A comparison: one sentence, then a line per quantity."""
    lines = [[row.title, *row.cells, row.difference] for row in rows(comparison)]
    return "\n".join([headline(comparison), *table(["", *comparison.names, ""], lines)])
