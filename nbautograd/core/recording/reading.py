"""From raw records to Calls, when somebody looks at the log."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.recording import names
from nbautograd.core.recording.calls import Call
from nbautograd.core.recording.decode import value_of
from nbautograd.core.recording.state import RawCtx, Recorded
from nbautograd.core.recording.watching import warnings_of
from nbautograd.core.values import CtxSnapshot, Value


def call_of(record: Recorded, forward: Recorded | None) -> Call:
    """The Call that a record tells; forward is the record of the forward whose ctx it got, if it is still there."""
    subject = record.subject
    source = subject.source
    code = subject.methods.codes.get(record.method) or subject.methods.codes.get("vjp")
    line = source.lines.get(record.method, source.lines.get("vjp")) if source is not None else None
    return Call(
        index=record.index,
        function=subject.name,
        method=record.method,  # type: ignore[arg-type]  # one of Method by construction
        parent=record.parent,
        forward=record.forward,
        inputs=_values(names.values_in(record), record.inputs, record.inputs_same),
        outputs=_values(names.values_out(record), record.outputs, record.outputs_same),
        ctx=_ctx(record, forward),
        seconds=record.seconds,
        thread=record.thread,
        stdout=record.stdout,
        exception=record.exception,
        line=line if line is not None else (code.co_firstlineno if code is not None else None),
        caller_line=record.caller_line,
        cell=record.cell,
        create_graph=record.create_graph,
        run=record.run if record.method == "backward" else 0,
        first=record.first,
        warnings=warnings_of(record, forward),
        missing=tuple(messages.text("recording.incomplete", reason=reason) for reason in record.missing),
    )


def _values(labels: tuple[str, ...], raws: tuple[object, ...], same: tuple[str, ...]) -> tuple[Value, ...]:
    return tuple(value_of(n, r, s) for n, r, s in zip(labels, raws, same, strict=True))  # type: ignore[arg-type]


def _ctx(record: Recorded, forward: Recorded | None) -> CtxSnapshot:
    """What forward or setup_context left on ctx; for a later call what was there when it began."""
    own = record.method in ("forward", "setup_context")
    kept = record.kept if own else (forward.kept if forward is not None else None)
    if kept is None:
        return CtxSnapshot(freed=record.freed)
    first = record if record.method == "forward" or forward is None else forward
    inputs, outputs = _both(first, kept)
    saved = names.saved_names(record.subject, kept.saved_same, inputs, outputs)
    return CtxSnapshot(
        saved_tensors=_values(tuple(saved), kept.saved, kept.saved_same),
        attributes=dict(zip(kept.names, _values(kept.names, kept.attributes, kept.attributes_same), strict=True)),
        needs_input_grad=kept.needs_input_grad,
        dirty=tuple(names.readable(place, inputs, outputs) for place in kept.dirty),
        non_differentiable=tuple(names.readable(place, inputs, outputs) for place in kept.non_differentiable),
        materialize_grads=_materialised(record, forward, own),
        bytes=kept.bytes,
        freed=record.freed,
    )


def _materialised(record: Recorded, forward: Recorded | None, own: bool) -> bool | None:
    """What the run told; a method that never names the flag leaves it as it is, True."""
    saver = record if own or forward is None else forward
    for what, *rest in (*record.noticed, *saver.noticed, *saver.noticed_in_setup):
        if what == "materialize":
            return bool(rest[0])
    return True


def _both(record: Recorded, kept: RawCtx) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the inputs and outputs that the places in a RawCtx speak of."""
    if record.method == "forward":
        return names.values_in(record), names.values_out(record)
    return names.values_in(record), ()
