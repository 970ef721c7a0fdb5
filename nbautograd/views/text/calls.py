"""Calls, what they left on ctx, and recorded values as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd import messages
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.views import formats
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.tables import indent, table, wrap
from nbautograd.views.tensors import brief, contents, kind, remarks, what
from nbautograd.views.to_text import to_lines
from nbautograd.views.words import counted

FIRST, LAST = 4, 8


def log_text(log: CallLog) -> str:
    """A log: how many calls, a line for each (the middle of many folded), what is missing."""
    if not log.calls:
        head = messages.text("views.headline.no_calls")
    else:
        head = messages.text("views.headline.calls", calls=counted("calls", len(log)))
    return "\n".join([head, *log_lines(log)]).rstrip()


def log_lines(log: CallLog) -> list[str]:
    """The table of calls, then what they printed and raised, then what is missing."""
    first, folded, last = fold(log.calls)
    header = ["#", *(messages.text(f"views.column.{c}") for c in ("method", "in", "out", "ctx", "ms"))]
    rows = [call_row(c) for c in first]
    if folded:
        rows.append(["…", messages.text("views.calls.folded", n=formats.count(folded)), "", "", "", ""])
    rows += [call_row(c) for c in last]
    lines = table(header, rows, right=(0, 5)) if log.calls else []
    for call in (*first, *last):
        lines += _events(call)
    if log.dropped:
        lines.append(messages.text("views.calls.dropped", n=formats.count(log.dropped)))
    return [*lines, *map(str, log.problems)]


def fold(calls: Sequence[Call], first: int = FIRST, last: int = LAST) -> tuple[Sequence[Call], int, Sequence[Call]]:
    """The first calls, how many are folded, the last ones."""
    if len(calls) <= first + last + 1:
        return calls, 0, ()
    return calls[:first], len(calls) - first - last, calls[-last:]


def call_row(call: Call) -> list[str]:
    """Number, method, in, out, ctx, ms of a call."""
    out = call.exception if call.exception else values_line(call.outputs)
    return [
        str(call.index),
        method_of(call),
        values_line(call.inputs),
        out,
        ctx_line(call.ctx),
        formats.milliseconds(call.seconds),
    ]


def method_of(call: Call) -> str:
    """``backward of call 0``: the method and the forward call that it belongs to."""
    if call.forward is None or call.method == "setup_context":
        return call.method
    return f"{call.method} {messages.text('views.call.for', index=call.forward)}"


def values_line(values: Sequence[Value], most: int = 4) -> str:
    """``input float64 2×2, weight float64 2×3``."""
    more = [messages.text("views.more", n=len(values) - most)] if len(values) > most else []
    return messages.text("views.comma").join([*(brief(v) for v in values[:most]), *more])


def ctx_line(ctx: CtxSnapshot) -> str:
    """Names of what is on ctx, and how many bytes it holds."""
    names = [*(v.name for v in ctx.saved_tensors), *(f"ctx.{name}" for name in ctx.attributes)]
    held = f" ({formats.size(ctx.bytes)})" if ctx.bytes else ""
    return messages.text("views.comma").join(names) + held if names else ""


def call_text(call: Call) -> str:
    """One call in full."""
    head = f"#{call.index} {call.function}.{call.method}  {formats.time(call.seconds)}"
    backward = call.method == "backward"
    parts = [
        ("grad_outputs" if backward else "inputs", call.inputs),
        ("gradients" if backward else "outputs", call.outputs),
    ]
    lines = [head]
    for name, values in parts:
        if values:
            lines += [messages.text(f"views.call.{name}"), *indent(value_lines(values))]
    return "\n".join([*lines, *ctx_lines(call.ctx), *_events(call), *map(str, call.missing)])


def value_lines(values: Sequence[Value]) -> list[str]:
    """A table of values: name, what, values, remarks."""
    rows = [[v.name, what(v), contents(v.tensor) if v.tensor else "", remarks(v)] for v in values]
    return table(["", "", "", ""], rows)


def ctx_lines(ctx: CtxSnapshot) -> list[str]:
    """What is on ctx, with names."""
    lines: list[str] = []
    if ctx.saved_tensors:
        lines += [messages.text("views.call.saved"), *indent(value_lines(ctx.saved_tensors))]
    if ctx.attributes:
        lines += [messages.text("views.call.attributes"), *indent(value_lines(tuple(ctx.attributes.values())))]
    return [*lines, *ctx_facts(ctx)]


def ctx_facts(ctx: CtxSnapshot) -> list[str]:
    """The other things that ctx was told, one short line each."""
    colon, comma = messages.text("views.colon"), messages.text("views.comma")
    lists = {
        "needs_input_grad": [str(b) for b in ctx.needs_input_grad],
        "dirty": list(ctx.dirty),
        "non_differentiable": list(ctx.non_differentiable),
    }
    facts = [messages.text(f"views.call.{k}") + colon + comma.join(v) for k, v in lists.items() if v]
    if ctx.materialize_grads is False:
        facts.append(messages.text("views.call.materialize_off"))
    if ctx.freed:
        facts.append(messages.text("views.call.freed"))
    return facts


def ctx_text(ctx: CtxSnapshot) -> str:
    """What is on ctx, or that nothing is."""
    return "\n".join(ctx_lines(ctx)) or messages.text("views.nothing")


def value_text(value: Value) -> str:
    """One value in a line."""
    return value_lines([value])[0]


def tensor_text(tensor: TensorSummary) -> str:
    """One summary in a line."""
    return f"{kind(tensor)}  {contents(tensor)}"


def _events(call: Call) -> list[str]:
    name = f"#{call.index} {call.method}"
    lines: list[str] = []
    if call.stdout:
        lines += [
            f"{name} {messages.text('views.call.printed')}",
            *indent(call.stdout.rstrip("\n").split("\n")[:40], 4),
        ]
    if call.exception:
        lines += wrap(f"{name} {messages.text('views.call.raised')} {call.exception}")
    for finding in call.warnings:
        lines += to_lines(finding_document(finding))
    return lines
