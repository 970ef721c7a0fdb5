"""Recorded calls on a page: one table, then what each call saw."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.values import CtxSnapshot, Value
from nbautograd.views import formats
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.html.values import ctx_facts_markup, ctx_groups, values_table
from nbautograd.views.markup import Markup, join, tag
from nbautograd.views.pieces import block, faint, fold, paragraph, pre, table, wide_row
from nbautograd.views.text.calls import call_row
from nbautograd.views.text.calls import fold as fold_calls
from nbautograd.views.to_html import to_html
from nbautograd.views.words import counted, functions

DETAILED = 6  # calls that are shown in full
PRINTED = 4000  # characters of what a call printed


def log_markup(log: CallLog) -> Markup:
    """A log by itself: how many calls, then all about them."""
    if not log.calls:
        return join((paragraph(messages.text("views.headline.no_calls")), *_missing(log)))
    head = messages.text("views.headline.calls", calls=counted("calls", len(log)))
    return join((block(tag("strong", None, head)), calls_markup(log)))


def calls_markup(log: CallLog) -> Markup:
    """The table of calls and a fold with the last ones in full."""
    first, folded, last = fold_calls(log.calls)
    rows: list[list[object]] = [_row(c) for c in first]
    if folded:
        rows.append([wide_row(messages.text("views.calls.folded", n=formats.count(folded)), 6)])
    rows += [_row(c) for c in last]
    header = ["#", *(messages.text(f"views.column.{c}") for c in ("method", "in", "out", "ctx", "ms"))]
    caption = messages.text("views.caption.calls", function=functions(log))
    parts: list[Markup] = [table(caption, header, rows, right=(5,))] if log.calls else []
    return join((*parts, *_missing(log), _details(log)))


def call_markup(call: Call, left_by: Call | None = None) -> Markup:
    """One call in full; ctx is not repeated when it is as ``left_by`` left it."""
    same = left_by is not None and left_by.ctx == call.ctx != CtxSnapshot()
    parts: list[Markup | None] = [
        values_table(_groups(call, with_ctx=not same), pictures=call.method == "backward"),
        None if same else ctx_facts_markup(call.ctx),
        _printed(call),
        _raised(call),
        *(to_html(finding_document(f)) for f in call.warnings),
        *(
            paragraph(m, "opacity:0.75")
            for m in (*_circumstances(call, left_by if same else None), *map(str, call.missing))
        ),
    ]
    return join(p for p in parts if p)


def _groups(call: Call, with_ctx: bool) -> list[tuple[str, Sequence[Value]]]:
    """What the call saw, in the order in which it saw it."""
    backward = call.method == "backward"
    came, went = ("grad_outputs", "gradients") if backward else ("inputs", "outputs")
    first = (messages.text(f"views.call.{came}"), call.inputs)
    last = (messages.text(f"views.call.{went}"), call.outputs)
    ctx = ctx_groups(call.ctx) if with_ctx else []
    return [first, *ctx, last] if backward else [first, last, *ctx]


def call_title(call: Call) -> str:
    """``#1 LinearFunction.backward``."""
    return f"#{call.index} {call.function}.{call.method}"


def _details(log: CallLog) -> Markup | None:
    calls = log.calls[-DETAILED:]
    if not calls:
        return None
    words = "views.calls.details_folded" if len(log.calls) > len(calls) else "views.calls.details"
    by_index = {c.index: c for c in calls}
    body = join(_folded(c, by_index.get(-1 if c.forward is None else c.forward)) for c in calls)
    return fold(messages.text(words, n=len(calls)), body, strong=False)


def _folded(call: Call, left_by: Call | None) -> Markup:
    return fold(tag("code", None, call_title(call)), call_markup(call, left_by), _beside(call), strong=False)


def _beside(call: Call) -> str:
    words = [formats.time(call.seconds)]
    if call.forward is not None and call.method != "forward":
        words.insert(0, messages.text("views.call.for", index=call.forward))
    words += [messages.text("views.call.raised")] if call.exception else []
    words += [messages.text("views.call.printed")] if call.stdout else []
    return messages.text("views.comma").join(words)


def _row(call: Call) -> list[object]:
    index, method, inputs, outputs, ctx, ms = call_row(call)
    out: object = tag("strong", None, outputs) if call.exception else outputs
    name, _, rest = method.partition(" ")
    words = join((tag("code", None, name), " ", faint(rest) if rest else None))
    return [index, tag("span", {"style": "white-space:nowrap"}, words), inputs, out, ctx, ms]


def _printed(call: Call) -> Markup | None:
    if not call.stdout:
        return None
    left = len(call.stdout) - PRINTED
    shown = call.stdout[:PRINTED] + (f"… {messages.text('views.more', n=left)}" if left > 0 else "")
    return join((block(faint(messages.text("views.call.printed")), style="font-size:0.9em;margin:0"), pre(shown)))


def _raised(call: Call) -> Markup | None:
    if not call.exception:
        return None
    return join(
        (block(faint(messages.text("views.call.raised")), style="font-size:0.9em;margin:0"), pre(call.exception))
    )


def _circumstances(call: Call, left_by: Call | None) -> list[str]:
    words = []
    if left_by is not None:
        words.append(messages.text("views.call.same_ctx", index=left_by.index))
    if call.parent is not None:
        words.append(messages.text("views.call.inside", index=call.parent))
    if call.caller_line is not None:
        words.append(messages.text("views.call.caller", line=call.caller_line))
    if call.thread != "MainThread":
        words.append(messages.text("views.call.thread", thread=call.thread))
    if call.create_graph:
        words.append(messages.text("views.call.double_backward"))
    return [messages.text("views.comma").join(words)] if words else []


def _missing(log: CallLog) -> list[Markup]:
    words = list(map(str, log.problems))
    if log.dropped:
        words.append(messages.text("views.calls.dropped", n=formats.count(log.dropped)))
    return [paragraph(w, "opacity:0.75") for w in words]
