"""Recorded calls, what they left on ctx, and recorded values as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.recording.call import Call, CallLog
from nbautograd.core.recording.trends import trends
from nbautograd.core.values import CtxSnapshot, TensorSummary, Value
from nbautograd.views.builders import build
from nbautograd.views.builders.summary import finding_document
from nbautograd.views.document import (
    Block,
    Cell,
    Chip,
    Code,
    Document,
    Faint,
    Fold,
    Item,
    PageOnly,
    Paragraph,
    Strong,
    Table,
    Thumbnail,
    Verbatim,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import (
    abbreviated,
    contents,
    counted,
    functions,
    kind,
    listed,
    picture_caption,
    remarks,
    say,
    what,
)

FIRST, LAST = 4, 8  # calls of a long log that are listed, and between them the first that something is wrong with
FEW = 2  # calls of which one sees at once what is wrong
MAX_DETAILED = 6  # calls that are shown in full
MAX_PRINTED = 4_000  # characters of what a call printed
MAX_VALUES = 12  # of one table

Row = tuple[Cell, ...]


@build.register
def log_document(log: CallLog) -> Document:
    """Return which call was the first with NaN, how many there are, a row for each, and what the last ones saw."""
    return calls_document(log, *(() if log.problems and not log else (how_many(log),)))


def how_many(log: CallLog) -> Paragraph:
    """Return how many calls there are."""
    if not log.calls:
        return Paragraph((messages.text("widgets.no_calls"),))
    return paragraph(Strong(messages.text("views.headline.calls", calls=counted("calls", len(log)))))


def calls_document(log: CallLog, *head: Block) -> Document:
    """Return the first call that something is wrong with, the table, what is missing, what the last calls saw.

    Args:
        log: the calls.
        head: what stands above the table, below what is wrong.
    """
    bad = trends(log).first_bad if len(log.calls) > FEW else None
    return (*first_bad(log, bad), *head, *calls_table(log, bad), *_missing(log), *_details(log, bad))


def first_bad(log: CallLog, bad: int | None) -> Document:
    """Return which call was the first to raise, to be given or to return NaN or infinity."""
    if bad is None:
        return ()
    call = log.calls[bad]
    which, names = ("raised", []) if call.exception else not_finite(call)
    if not which:
        return ()
    words = {"call": call.name, "method": f"{call.function}.{call.method}", "exception": call.exception}
    said = messages.text(f"views.calls.first_{which}", names=listed(names), **words)
    return (paragraph(Chip(say("kind", "lint"), "lint", plain=""), Strong(said), look="head"),)


def not_finite(call: Call) -> tuple[str, list[str]]:
    """Return whether a call was ``"given"`` or ``"returned"`` NaN or infinity, and in what."""
    for which, values in (("given", call.inputs), ("returned", call.outputs)):
        if names := [f"`{v.name}`" for v in values if v.tensor and (v.tensor.nan or v.tensor.inf)]:
            return which, names
    return "", []


def calls_table(log: CallLog, bad: int | None = None) -> Document:
    """Return a row per call, oldest first; of very many the first, the last and the first bad one."""
    if not log.calls:
        return ()
    calls, names, last = log.calls, log.names, len(log.calls)
    shown = [k for k in (*range(FIRST), bad, *range(last - LAST, last)) if k is not None and 0 <= k < last]
    rows: list[Row] = []
    before = -1
    for k in sorted(set(shown)):
        if k - before > 2:
            rows.append((messages.text("views.calls.folded", n=formats.count(k - before - 1)),))
        between = range(before + 1, k) if k - before == 2 else ()  # one that is hidden would take a row as well
        rows += [_row(calls[at], names, at == bad) for at in (*between, k)]
        before = k
    header = ("#", *(messages.text(f"views.column.{c}") for c in ("method", "in", "out", "ctx", "ms")))
    return (Table(header, tuple(rows), messages.text("views.caption.calls", function=functions(log)), right=(0, 5)),)


@build.register
def call_document(call: Call) -> Document:
    """Return one call in full."""
    saw = (block for part in _sections(call) for block in part)
    return (paragraph(Code(_title(call)), Faint(formats.time(call.seconds))), *saw)


@build.register
def ctx_document(ctx: CtxSnapshot) -> Document:
    """Return what is on ctx by name, then what else it was told."""
    return (*values_table(_ctx_groups(ctx)), *_ctx_facts(ctx)) or sentences([messages.text("views.nothing")])


@build.register
def value_document(value: Value) -> Document:
    """Return one value as a row: its name, what it is, its elements, what is odd about it."""
    return values_table([("", [value])], pictures=True)


@build.register
def tensor_document(tensor: TensorSummary) -> Document:
    """Return a summary as a row."""
    name = kind(tensor)
    return (
        Table(
            (), ((Code(name), contents(tensor), Thumbnail(Value(name, "Tensor", "", tensor))),), wrap=False, cut=False
        ),
    )


def values_table(groups: Sequence[tuple[str, Sequence[Value]]], pictures: bool = False) -> Document:
    """Return one table of several groups of values, each named on its first row; ``pictures`` adds small heat maps."""
    rows = [row for title, values in groups for row in _rows(title, values, pictures)]
    return (Table((), tuple(rows)),) if rows else ()


def _rows(title: str, values: Sequence[Value], pictures: bool) -> list[Row]:
    rows: list[Row] = []
    for k, value in enumerate(values[:MAX_VALUES]):
        words = contents(value.tensor) if value.tensor else ""
        row: Row = (Faint(title) if k == 0 else "", Code(str(value.name)), what(value), words, Faint(remarks(value)))
        rows.append((*row, Thumbnail(value)) if pictures else row)
    if len(values) > MAX_VALUES:
        more = Faint(messages.text("views.more", n=len(values) - MAX_VALUES))
        rows.append(("", more, *[""] * (len(rows[0]) - 2)))
    return rows


def _ctx_groups(ctx: CtxSnapshot) -> list[tuple[str, Sequence[Value]]]:
    return [
        (messages.text("views.call.saved"), ctx.saved_tensors),
        (messages.text("views.call.attributes"), tuple(ctx.attributes.values())),
    ]


def _ctx_facts(ctx: CtxSnapshot) -> Document:
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
    return sentences(facts, "faint")


def method_document(call: Call, names: Mapping[int, str] = MappingProxyType({})) -> Document:
    """Return what one method saw but for ctx, for a narrow column of a live view: circumstances, values, events."""
    backward = call.method == "backward"
    came, went = ("grad_outputs", "gradients") if backward else ("inputs", "outputs")
    own = call.method != "setup_context"  # whose values are those of forward
    _, events, _ = _sections(call, names=names)
    return (
        *sentences(_circumstances(call, None, names), "faint"),
        *(values_column(messages.text(f"views.call.{came}"), call.inputs) if own else ()),
        *events,
        *(values_column(messages.text(f"views.call.{went}"), call.outputs) if own and not call.exception else ()),
        *sentences(call.missing, "faint"),
    )


def ctx_column(ctx: CtxSnapshot) -> Document:
    """Return what is on ctx for a narrow column of a live view."""
    groups = [(title, values) for title, values in _ctx_groups(ctx) if values]
    held = [messages.text("views.call.held", size=formats.size(ctx.bytes))] if ctx.bytes else []
    columns = [block for group in groups for block in values_column(*group)]
    return (*columns, *_ctx_facts(ctx), *sentences(held, "faint")) or sentences([messages.text("views.nothing")])


def values_column(title: str, values: Sequence[Value]) -> Document:
    """Return values one below the other under their title."""
    items: list[Block] = [Item(_upright(value)) for value in values[:MAX_VALUES]]
    if len(values) > MAX_VALUES:
        items.append(paragraph(messages.text("views.more", n=len(values) - MAX_VALUES), look="faint"))
    nothing = sentences([messages.text("views.nothing")], "faint")
    return (Paragraph((Strong(title),), "small"), *(items or nothing))


def _upright(value: Value) -> Document:
    """Return a value's name and what it is, then its picture and elements, unless it is an object shown elsewhere."""
    tensor = None if value.same_as else value.tensor
    name = paragraph(Code(str(value.name)), Faint(what(value)), Faint(remarks(value)))
    if tensor is None:
        return (name,)
    words = picture_caption(tensor)
    return (name, Paragraph((Thumbnail(value),)), *sentences([words] if words else [], "faint"))


def _name(index: int | None, names: Mapping[int, str]) -> str:
    """Return the name of the call with this index; nothing where it is not known."""
    return "" if index is None else names.get(index, "")


def _row(call: Call, names: Mapping[int, str], bad: bool) -> Row:
    method = (Chip("✗", "wrong"), " ", Code(call.method)) if bad else (Code(call.method),)
    if (forward := _name(call.forward, names)) and call.method != "setup_context":
        method += (" ", Faint(messages.text("views.call.for", call=forward)))  # type: ignore[assignment]
    out = Strong(call.exception) if call.exception else _listed(call.outputs)
    return (
        call.name.removeprefix("#"),
        method,
        _listed(call.inputs),
        out,
        _held(call.ctx),
        formats.milliseconds(call.seconds),
    )


def _listed(values: Sequence[Value], most: int = 4) -> str:
    """Return ``input f64 2×2, weight f64 2×3``."""
    more = [messages.text("views.more", n=len(values) - most)] if len(values) > most else []
    return messages.text("views.comma").join([*(abbreviated(v) for v in values[:most]), *more])


def _held(ctx: CtxSnapshot) -> str:
    """Return the names of what is on ctx, and how many bytes it holds."""
    names = [*(str(v.name) for v in ctx.saved_tensors), *(f"ctx.{name}" for name in ctx.attributes)]
    size = f" ({formats.size(ctx.bytes)})" if ctx.bytes else ""
    return messages.text("views.comma").join(names) + size if names else ""


def _title(call: Call) -> str:
    return f"{call.name} {call.function}.{call.method}"


def _missing(log: CallLog) -> Document:
    words = list(map(str, log.problems))
    if log.dropped:
        words.append(messages.text("views.calls.dropped", n=formats.count(log.dropped)))
    return sentences(words, "faint")


def _details(log: CallLog, bad: int | None) -> Document:
    """Return what the last calls and the first bad one saw; text tells of it only what they printed and raised."""
    calls = list(log.calls[-MAX_DETAILED:])
    if not calls:
        return ()
    if bad is not None and bad < len(log.calls) - len(calls):
        calls = [log.calls[bad], *calls]
    by_index, names = {call.index: call for call in calls}, log.names
    folds = []
    for call in calls:
        left_by = by_index.get(-1 if call.forward is None else call.forward)
        values, events, circumstances = _sections(call, left_by, labels=False, names=names)
        inside = (PageOnly(values), *events, PageOnly(circumstances))
        folds.append(Fold(Code(_title(call)), inside, _circumstances_in_short(call, names), strong=False))
    title = messages.text("views.calls.details")
    return (Fold(title, tuple(folds), strong=False, in_text="body"),)


def _sections(
    call: Call, left_by: Call | None = None, labels: bool = True, names: Mapping[int, str] = MappingProxyType({})
) -> tuple[Document, Document, Document]:
    """Return a call's values, what it printed and raised, and its circumstances.

    Args:
        call: the call.
        left_by: the call that left ctx to it, where that is shown too; ctx is not repeated when it is as it was left.
        names: of calls, by index, where they are known.
        labels: False where the words beside the title say in text that the call printed or raised something.
    """
    same = left_by is not None and left_by.ctx == call.ctx != CtxSnapshot()
    table = values_table(_groups(call, with_ctx=not same), pictures=call.method == "backward")
    facts = () if same else _ctx_facts(call.ctx)
    events: tuple[Block, ...] = ()
    if call.stdout:
        left = len(call.stdout) - MAX_PRINTED
        more = f"… {messages.text('views.more', n=formats.count(left))}" if left > 0 else ""
        events += _event("printed", call.stdout[:MAX_PRINTED].rstrip("\n") + more, labels)
    if call.exception:
        events += _event("raised", call.exception, labels)
    for finding in call.warnings:
        events += finding_document(finding)
    words = [*_circumstances(call, left_by if same else None, names), *map(str, call.missing)]
    return (*table, *facts), events, sentences(words, "faint")


def _event(name: str, words: str, labelled: bool) -> Document:
    label = paragraph(messages.text(f"views.call.{name}"), look="faint")
    return (label if labelled else PageOnly((label,)), Item((Verbatim(words),)))


def _groups(call: Call, with_ctx: bool) -> list[tuple[str, Sequence[Value]]]:
    """Return what the call saw, in the order in which it saw it."""
    backward = call.method == "backward"
    came, went = ("grad_outputs", "gradients") if backward else ("inputs", "outputs")
    first = (messages.text(f"views.call.{came}"), call.inputs)
    last = (messages.text(f"views.call.{went}"), call.outputs)
    ctx = _ctx_groups(call.ctx) if with_ctx else []
    return [first, *ctx, last] if backward else [first, last, *ctx]


def _circumstances_in_short(call: Call, names: Mapping[int, str]) -> str:
    words = [formats.time(call.seconds)]
    if (forward := _name(call.forward, names)) and call.method != "forward":
        words.insert(0, messages.text("views.call.for", call=forward))
    words += [messages.text("views.call.raised")] if call.exception else []
    words += [messages.text("views.call.printed")] if call.stdout else []
    return messages.text("views.comma").join(words)


def _circumstances(call: Call, left_by: Call | None, names: Mapping[int, str]) -> list[str]:
    words = []
    if left_by is not None:
        words.append(messages.text("views.call.same_ctx", call=left_by.name))
    if parent := _name(call.parent, names):
        words.append(messages.text("views.call.inside", call=parent))
    if call.caller_line is not None:
        words.append(messages.text("views.call.caller", line=call.caller_line))
    if call.thread != "MainThread":
        words.append(messages.text("views.call.thread", thread=call.thread))
    if call.create_graph:
        words.append(messages.text("views.call.double_backward"))
    return [messages.text("views.comma").join(words)] if words else []
