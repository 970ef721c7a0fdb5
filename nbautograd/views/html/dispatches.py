"""A log of dispatches on a page: a call tree in a table."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.views import dispatches as tree
from nbautograd.views.markup import Markup, join, prose, tag
from nbautograd.views.pieces import block, chip, faint, paragraph, table, wide_row

COLUMNS = ("call", "asked", "answer", "result")
STEP = 18  # pixels that a call inside another is moved to the right


def dispatches_markup(log: DispatchLog) -> Markup:
    """The headline, the tree and what it means."""
    head = block(tag("strong", None, prose(tree.headline(log))))
    if not log.dispatches:
        return join((head, *map(paragraph, tree.notes(log))))
    header = [messages.text(f"tracing.column.{c}") for c in COLUMNS]
    made = [_row(row) for row in tree.rows(log)]
    drawn = table(messages.text("tracing.caption"), header, made, wrap=False)
    return join((head, *map(paragraph, tree.notes(log)), drawn))


def _row(row: tree.Row) -> list[object]:
    if row.dispatch is None:
        return [wide_row(join((_branch(row.depth), f"… {row.words}")), len(COLUMNS))]
    found = row.dispatch
    call = join((_branch(row.depth), tag("code", {"title": found.func}, tree.call(found))))
    return [call, tag("code", None, found.owner) if found.owner else "", _answer(found), _result(found)]


def _branch(depth: int) -> Markup | None:
    """The line that leads from the call around to this one."""
    if not depth:
        return None
    look = f"display:inline-block;width:{STEP * depth}px;text-align:right;opacity:0.5;padding-right:4px"
    return tag("span", {"style": look, "aria-hidden": "true"}, "└")


def _answer(found: Dispatch) -> object:
    words = tree.answer(found)
    if found.outcome == "NotImplemented":
        return chip(words, "lint")
    if found.outcome == "raised":
        return chip(words, "wrong")
    return tag("code", None, words) if found.handler else faint(words)


def _result(found: Dispatch) -> object:
    if found.exception:
        return tag("span", {"style": "display:inline-block;max-width:24em;white-space:normal"}, tree.result(found))
    return tag("code", None, tree.result(found))
