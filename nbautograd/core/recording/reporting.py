"""Findings of what a Watch noticed while a call ran (``noticing.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nbautograd.core.findings import Finding, Kind
from nbautograd.core.recording import names
from nbautograd.core.recording.snapshot import NEEDS_GRADIENT, RawObject, RawTensor, named
from nbautograd.core.recording.state import Recorded

_HOLDERS = ("list", "tuple", "dict")
_LAYOUT = ("view size is not compatible", "contiguous", "stride", "single memory location")


def finding(code: str, kind: Kind, record: Recorded, where: int | None = None, **params: Any) -> Finding:
    """A finding about one call; where is the position of the input that it is about."""
    place = None if where is None else (0, where)
    base = {"function": record.subject.name, "call": record.index}
    return Finding(code, kind, f"recording.call_{code}", {**base, **params}, place)


def noticed_in(record: Recorded, forward: Recorded | None) -> Iterator[Finding]:
    """What was noticed, told as findings.

    Args:
        record: the call.
        forward: the forward call whose ctx it got, None when that is gone.
    """
    if record.method == "forward":
        yield from _hidden(record)
        yield from _shared_memory(record)
    if record.method == "backward":
        yield from _layout(record)
        if forward is not None:
            yield from _saved_changed(record, forward)
            yield from _state_changed(record, forward)
            yield from _reused(record, forward)


def _hidden(record: Recorded) -> Iterator[Finding]:
    """Tensors that require grad and reach forward otherwise than as arguments."""
    labels = names.values_in(record)
    for what, *rest in record.noticed:
        if what == "hidden":
            yield finding("hidden_input", "bug", record, name=rest[0])
    for i, one in enumerate(record.inputs):
        if isinstance(one, RawObject) and one.type in _HOLDERS and NEEDS_GRADIENT in one.repr:
            yield Finding("hidden_input", "bug", "recording.call_hidden_in_container",
                          {"function": record.subject.name, "call": record.index, "input": labels[i],
                           "kind": one.type}, (0, i))  # fmt: skip


def _shared_memory(record: Recorded) -> Iterator[Finding]:
    dirty = record.kept.dirty if record.kept is not None else ()
    inputs, outputs = names.values_in(record), names.values_out(record)
    for what, *rest in record.noticed:
        if what == "aliases" and f"input {rest[1]}" not in dirty:
            base = {"function": record.subject.name, "call": record.index}
            pair = {"output": outputs[rest[0]], "input": inputs[rest[1]]}
            yield Finding("output_aliases_input", "bug", "recording.call_output_shares_memory", {**base, **pair})


def _layout(record: Recorded) -> Iterator[Finding]:
    """backward raised over a gradient that is expanded or otherwise not contiguous."""
    spread = [rest[0] for what, *rest in record.noticed if what == "spread"]
    if spread and record.exception is not None and any(word in record.exception for word in _LAYOUT):
        name = names.values_in(record)[spread[0]]
        yield finding("fails_noncontiguous_grad", "bug", record, name=name, error=record.exception.partition(". ")[0])


def _saved_changed(record: Recorded, forward: Recorded) -> Iterator[Finding]:
    """Saved tensors that are not what they were when forward ended."""
    after = next((rest[0] for what, *rest in record.noticed if what == "saved"), ())
    kept = forward.kept.saved if forward.kept is not None else ()
    if len(after) != len(kept) or forward.kept is None:
        return
    inputs, outputs = names.values_in(forward), names.values_out(forward)
    labels = names.saved_names(record.subject, forward.kept.saved_same, inputs, outputs)
    for label, then, now in zip(labels, kept, map(named, after), strict=True):
        if isinstance(then, RawTensor) and isinstance(now, RawTensor) and _differs(then, now):
            yield finding("mutates_saved", "bug", record, name=label)


def _differs(then: RawTensor, now: RawTensor) -> bool:
    if then.version is not None and now.version is not None and then.version != now.version:
        return True
    whole = then.strides == now.strides == () and then.data is not None and now.data is not None
    return whole and then.data != now.data


def _state_changed(record: Recorded, forward: Recorded) -> Iterator[Finding]:
    """Attributes of the class that another call set between this forward and its backward."""
    set_up = [one for one in (*forward.noticed_in_setup, *forward.noticed) if one[0] == "state"]
    now = next((one for one in record.noticed if one[0] == "state"), None)
    if not set_up or now is None:
        return
    before = {name: rest for name, *rest in set_up[0][1:]}
    for name, *rest in now[1:]:
        if name in before and before[name] != rest:
            yield finding("shared_state", "bug", record, name=name, forward=forward.index)


def _reused(record: Recorded, forward: Recorded) -> Iterator[Finding]:
    given = {one.key for one in forward.inputs if isinstance(one, RawTensor)}
    labels = names.values_out(record)
    for i, earlier in (rest for what, *rest in record.noticed if what == "reused"):
        one = record.outputs[i]
        if isinstance(one, RawTensor) and one.key not in given:
            yield finding("grad_buffer_reused", "bug", record, i, gradient=labels[i], earlier=earlier)
