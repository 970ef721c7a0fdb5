"""The Compare view: a Function beside its reference."""

from __future__ import annotations

from typing import Any

from nbautograd.inspection.comparison import Comparison
from nbautograd.views.comparison import Row, headline, rows
from nbautograd.widgets import parts
from nbautograd.widgets.base import ViewWidget
from nbautograd.widgets.graph_pictures import first_picture

MOST_NODES = 300  # of a graph that is drawn beside another


def comparison_state(comparison: Comparison) -> dict[str, Any]:
    """The quantities as rows, and the two graphs laid out where they are small enough to stand beside each other."""
    graphs = comparison.graphs
    drawn = graphs is not None and all(0 < len(graph.nodes) <= MOST_NODES for graph in graphs)
    return {
        "names": list(comparison.names),
        "agree": comparison.agree,
        "said": headline(comparison),
        "rows": [_row(row) for row in rows(comparison)],
        "graphs": [first_picture(graph)["layout"] for graph in graphs] if drawn and graphs is not None else None,
    }


def _row(row: Row) -> dict[str, Any]:
    """A row in words; those of tensors with both values, and with the difference where there is one."""
    said = {"title": row.title, "cells": list(row.cells), "said": row.difference, "agrees": row.agrees}
    if not row.values:
        return said
    first, second, error = row.values
    return {
        **said,
        "values": parts.values([v for v in (first, second) if v]),
        "error": None if error is None or row.agrees else parts.values([error])[0],
    }


class CompareWidget(ViewWidget):
    """A Function beside its reference: outputs, gradients, saved bytes, time, graphs."""

    KIND = "compare"

    def make_state(self, value: Comparison) -> dict[str, Any]:
        """Everything that the comparison holds."""
        return comparison_state(value)
