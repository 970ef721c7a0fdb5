"""A log of dispatches as plain text: a call tree."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.views import dispatches as tree
from nbautograd.views.tables import indent, width, wrap

COLUMNS = ("call", "asked", "answer", "result")


def dispatches_text(log: DispatchLog) -> str:
    """The headline, the tree and what it means."""
    lines = [tree.headline(log).replace("`", "")]
    lines += indent(_table(tree.rows(log))) if log.dispatches else []
    for note in tree.notes(log):
        lines += wrap(note)
    return "\n".join(lines)


def dispatch_text(dispatch: Dispatch) -> str:
    """One dispatch on one line."""
    return f"{tree.call(dispatch)}  {tree.asked(dispatch)}  {tree.answer(dispatch)}  {tree.result(dispatch)}"


def _table(rows: list[tree.Row]) -> list[str]:
    grid = [[messages.text(f"tracing.column.{c}") for c in COLUMNS], *map(_cells, rows)]
    widths = [max(width(row[k]) for row in grid) for k in range(len(COLUMNS))]
    return ["  ".join(c + " " * (w - width(c)) for c, w in zip(row, widths, strict=True)).rstrip() for row in grid]


def _cells(row: tree.Row) -> list[str]:
    mark = "   " * (row.depth - 1) + "└─ " if row.depth else ""
    if row.dispatch is None:
        return [f"{mark}… {row.words}", "", "", ""]
    found = row.dispatch
    return [mark + tree.call(found), tree.asked(found), tree.answer(found), tree.result(found)]
