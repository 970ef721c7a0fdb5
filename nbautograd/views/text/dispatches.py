"""A log of dispatches as plain text: a call tree."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.views import dispatches as tree
from nbautograd.views.tables import indent, table, wrap

COLUMNS = ("call", "asked", "answer", "result")


def dispatches_text(log: DispatchLog) -> str:
    """The headline, the tree and what it means."""
    lines = [tree.headline(log).replace("`", "")]
    header = [messages.text(f"tracing.column.{c}") for c in COLUMNS]
    lines += indent(table(header, [_cells(row) for row in tree.rows(log)], cut=False)) if log.dispatches else []
    for note in tree.notes(log):
        lines += wrap(note)
    return "\n".join(lines)


def dispatch_text(dispatch: Dispatch) -> str:
    """One dispatch on one line."""
    return f"{tree.call(dispatch)}  {tree.asked(dispatch)}  {tree.answer(dispatch)}  {tree.result(dispatch)}"


def _cells(row: tree.Row) -> list[str]:
    mark = "   " * (row.depth - 1) + "└─ " if row.depth else ""
    if row.dispatch is None:
        return [f"{mark}… {row.words}", "", "", ""]
    found = row.dispatch
    return [mark + tree.call(found), tree.asked(found), tree.answer(found), tree.result(found)]
