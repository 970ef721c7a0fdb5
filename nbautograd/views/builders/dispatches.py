"""A log of dispatches as a document: a call tree, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.tracing.dispatches import Dispatch, DispatchLog
from nbautograd.core.values import Value
from nbautograd.views.builders import build
from nbautograd.views.document import Branch, Cell, Chip, Code, Document, Faint, Strong, Table, paragraph, sentences

MOST_ROWS = 60
CHAIN = 8  # calls of one function, each inside the one before, from which on they are folded
CALL = 72  # characters of a call, from which on its arguments are shortened
LEAST = 20  # characters that an argument may have in any case
ROOM = 48  # characters of a result
DASH = "–"


COLUMNS = ("call", "asked", "answer", "says")


@build.register
def log_document(log: DispatchLog) -> Document:
    """Return how many dispatches there were, the tree of calls, and what the reader should know."""
    head = paragraph(Strong(headline(log)))
    if not log.dispatches:
        return sentences(notes(log)) or (head,)
    told = {
        "asked": len({receiver(d) for d in log}) > 1,
        "answer": any(d.handler or d.outcome != "returned" for d in log),
    }
    columns = [c for c in COLUMNS if told.get(c, True)]  # the headline says whom torch asked; by itself it answers
    header = tuple(messages.text(f"views.column.{c}") for c in columns)
    shown = (dict(zip(COLUMNS, _cells(row), strict=True)) for row in rows(log))
    table = Table(
        header, tuple(tuple(row[c] for c in columns) for row in shown), messages.text("tracing.caption"), cut=False
    )
    return (head, *sentences(notes(log)), table)


@build.register
def dispatch_document(dispatch: Dispatch) -> Document:
    """Return one dispatch as a row."""
    return (Table((), (_cells(Row(0, dispatch)),), cut=False),)


def _cells(row: Row) -> tuple[Cell, ...]:
    branch = Branch(row.depth)
    if row.dispatch is None:
        return ((branch, f"… {row.text}"), "", "", "")
    shown = row.dispatch
    words = result(shown)
    back = words if shown.exception or words == DASH else Code(words)
    return ((branch, Code(call(shown))), Code(receiver(shown)), _answered(shown), back)


def _answered(dispatch: Dispatch) -> Cell:
    words = answer(dispatch)
    if dispatch.outcome in ("NotImplemented", "raised"):
        return Chip(words, "lint" if dispatch.outcome == "NotImplemented" else "wrong")
    return Code(words) if dispatch.handler else Faint(words)


@dataclass(frozen=True)
class Row:
    """One line of the tree.

    Attributes:
        depth: how many calls it stands in.
        dispatch: what it shows, or None for a line that stands for several.
        text: what such a line says.
    """

    depth: int
    dispatch: Dispatch | None
    text: str = ""


def headline(log: DispatchLog) -> str:
    """Count the dispatches, and name who got them."""
    if not log.dispatches:
        return messages.text("tracing.empty")
    owners = messages.text("views.comma").join(f"`{owner}`" for owner in dict.fromkeys(d.owner for d in log))
    n = len(log)
    return messages.text("tracing.headline", n=formats.count(n), owners=owners)


def rows(log: DispatchLog) -> list[Row]:
    """Return the tree, top down; long runs and deep chains are folded into one line each."""
    made = list(_below(_children(log), None, 0))
    if len(made) <= MOST_ROWS:
        return made
    half = MOST_ROWS // 2
    left = messages.text("graphs.more", count=formats.count(len(made) - 2 * half))
    return [*made[:half], Row(0, None, left), *made[-half:]]


def notes(log: DispatchLog) -> list[str]:
    """List what the reader should know: calls nobody answered, what comes back to itself, what is missing."""
    owners = [(d[0].func, dict.fromkeys(f"`{one.owner}`" for one in d)) for d in _unanswered(log)]
    told = [messages.text("tracing.nobody", func=func, owners=", ".join(names)) for func, names in owners]
    told += [
        messages.text("tracing.recursion", func=chain[0].func, owner=chain[0].owner, n=formats.count(len(chain)))
        for chain in _chains(_children(log))
    ]
    told += list(map(str, log.problems))
    if log.dropped:
        told.append(messages.text("tracing.dropped", n=formats.count(log.dropped)))
    return list(dict.fromkeys(told))


def call(dispatch: Dispatch) -> str:
    """Return ``torch.add(<ScalarTensor _N=2>, float32 2×2)``."""
    parts = [_argument(v) for v in dispatch.args] + [f"{v.name}={_argument(v)}" for v in dispatch.kwargs]
    if len(dispatch.func) + sum(len(part) + 2 for part in parts) > CALL:
        room = max(LEAST, (CALL - len(dispatch.func)) // len(parts) - 2)
        parts = [shortened(part, room) for part in parts]
    return f"{dispatch.func}({', '.join(parts)})"


def shortened(words: str, room: int) -> str:
    """Return the description of an object with as many whole attributes as there is room for.

    Example:
        >>> from nbautograd.views.builders.dispatches import shortened
        >>> shortened("<ScalarTensor _N=3 _value=2.123>", 24)
        '<ScalarTensor _N=3 …>'
    """
    if len(words) <= room:
        return words
    if not words.endswith(">"):
        return f"{words[: room - 1]}…"
    name, _, _ = words.partition(" ")
    return f"{words[: room - 2].rpartition(' ')[0] or name} …>"


def receiver(dispatch: Dispatch) -> str:
    """Return ``ScalarTensor``, with the protocol where it is the deeper one."""
    return dispatch.owner if dispatch.protocol == "__torch_function__" else f"{dispatch.owner} (dispatch)"


def answer(dispatch: Dispatch) -> str:
    """Name who answered, or say that nobody did."""
    if dispatch.outcome == "returned" and dispatch.handler:
        if dispatch.handler_line is None:
            return dispatch.handler
        return messages.text("tracing.by", name=dispatch.handler, line=dispatch.handler_line)
    words = {
        "returned": messages.text("tracing.itself"),
        "raised": messages.text("views.call.raised"),
        "running": messages.text("tracing.running"),
    }
    return words.get(dispatch.outcome, dispatch.outcome)


def result(dispatch: Dispatch) -> str:
    """Describe what came back, or the error."""
    if dispatch.exception:
        return dispatch.exception
    return DASH if dispatch.result is None else shortened(_argument(dispatch.result), ROOM)


def _argument(value: Value) -> str:
    if value.tensor is not None and value.tensor.values is not None and value.tensor.numel == 1:
        return f"{value.repr} {formats.number(value.tensor.values[0])}".strip()
    return value.repr


Tree = dict[int | None, list[Dispatch]]


def _children(log: DispatchLog) -> Tree:
    """Return dispatches by the one that they were made in; None for those at the top, whose parent may be forgotten."""
    known = {d.index for d in log}
    tree: Tree = {}
    for dispatch in log:
        tree.setdefault(dispatch.parent if dispatch.parent in known else None, []).append(dispatch)
    return tree


def _below(tree: Tree, parent: int | None, depth: int) -> Iterator[Row]:
    stack = [(dispatch, depth) for dispatch in reversed(tree.get(parent, []))]
    while stack:
        dispatch, deep = stack.pop()
        chain = _chain(tree, dispatch)
        yield Row(deep, dispatch)
        if len(chain) >= CHAIN:
            yield Row(deep + 1, None, messages.text("tracing.deep", n=formats.count(len(chain) - 2)))
            dispatch, deep = chain[-1], deep + 2
            yield Row(deep, dispatch)
        stack += [(child, deep + 1) for child in reversed(tree.get(dispatch.index, []))]


def _chain(tree: Tree, dispatch: Dispatch) -> list[Dispatch]:
    """Return the dispatch and those inside it while each holds just one, of the same function and class."""
    chain = [dispatch]
    while True:
        inside = tree.get(chain[-1].index, [])
        if len(inside) != 1 or (inside[0].func, inside[0].owner) != (dispatch.func, dispatch.owner):
            return chain
        chain.append(inside[0])


def _chains(tree: Tree) -> list[list[Dispatch]]:
    found, stack = [], list(tree.get(None, []))
    while stack:
        dispatch = stack.pop()
        chain = _chain(tree, dispatch)
        found += [chain] if len(chain) >= CHAIN else []
        stack += tree.get(chain[-1].index, [])
    return found


def _unanswered(log: DispatchLog) -> list[list[Dispatch]]:
    """Return calls that every type was receiver about and none answered; torch asks one type after another."""
    found = []
    for siblings in _children(log).values():
        for _, group in groupby(siblings, key=lambda d: (d.func, d.types, d.protocol)):
            open_: list[Dispatch] = []
            for dispatch in group:
                if any(d.owner == dispatch.owner for d in open_):  # the same call once more
                    found.append(open_)
                    open_ = []
                open_ = [*open_, dispatch] if dispatch.outcome == "NotImplemented" else []
            found += [open_] if open_ else []
    return found
