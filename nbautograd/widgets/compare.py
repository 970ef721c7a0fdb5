"""The Compare view: a Function beside its reference."""

from __future__ import annotations

from typing import Any

from nbautograd.core.comparison import Comparison
from nbautograd.core.display import plain
from nbautograd.views.comparison import Row, rows
from nbautograd.widgets import parts
from nbautograd.widgets.base import ViewWidget
from nbautograd.widgets.graph_pictures import first_picture

MOST_NODES = 300  # of a graph that is drawn beside another


def comparison_state(comparison: Comparison) -> dict[str, Any]:
    """The quantities as rows, and the two graphs laid out where they are small enough to stand beside each other."""
    tensors = [row for row in rows(comparison) if row.values]
    outputs = len(comparison.outputs)
    graphs = comparison.graphs
    drawn = graphs is not None and all(0 < len(graph.nodes) <= MOST_NODES for graph in graphs)
    return {
        "names": list(comparison.names),
        "agree": comparison.agree,
        "outputs": [_row(row, comparison.outputs[k][0].name) for k, row in enumerate(tensors[:outputs])],
        "gradients": [_row(row, comparison.input_names[k]) for k, row in enumerate(tensors[outputs:])],
        "saved_bytes": list(comparison.saved_bytes),
        "seconds": plain(comparison.seconds),
        "nodes": None if graphs is None else [len(graph.nodes) for graph in graphs],
        "graphs": [first_picture(graph)["layout"] for graph in graphs] if drawn and graphs is not None else None,
    }


def _row(row: Row, name: str) -> dict[str, Any]:
    first, second, error = row.values
    said = {"name": name, "said": row.difference, "agrees": row.agrees}
    return {
        **said,
        "values": parts.values([v for v in (first, second) if v]),
        "error": parts.values([error])[0] if error else None,
    }


class CompareWidget(ViewWidget):
    """A Function beside its reference: outputs, gradients, saved bytes, time, graphs."""

    KIND = "compare"

    def make_state(self, value: Comparison) -> dict[str, Any]:
        """Everything that the comparison holds."""
        return comparison_state(value)
