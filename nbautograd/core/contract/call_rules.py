"""The contract by watching: what one recorded call broke, told from its record alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from nbautograd.core.contract import rules
from nbautograd.core.contract.rules import Seen, broken
from nbautograd.core.findings import Finding
from nbautograd.core.recording.live_log import (
    ctx_saver,
    forward_names,
    input_names,
    output_names,
    saved_names,
    tensor_places,
)
from nbautograd.core.recording.record import OWN_CALL, CallRecord
from nbautograd.core.recording.snapshot import NEEDS_GRADIENT, Snapshot, TensorSnapshot, elements
from nbautograd.core.user_source import changed_in_place

_CONTAINERS = ("list", "tuple", "dict")
_LAYOUT = ("view size is not compatible", "contiguous", "stride", "single memory location")  # of torch's own errors


def broken_rules(record: CallRecord, forward: CallRecord | None, set_up: CallRecord | None) -> tuple[Finding, ...]:
    """Return what breaks the contract in one call.

    Args:
        forward: the forward call whose ctx it got, None when that is gone.
        set_up: the setup_context call that filled that ctx, if there was one.
    """
    found: list[Finding] = []
    saver = ctx_saver(record, forward, set_up)
    if record.method == "forward":
        found += [*hidden(record), *inputs_changed(record, saver), *outputs_in_inputs(record, saver)]
    if saver is record and record.ctx is not None:
        found += tensors_on_ctx(record)
    if record.method == "backward":
        if forward is not None and saver is not None:
            found += [*_saved_changed(record, saver), *_state_changed(record, forward, set_up)]
            found += _reused(record, forward)
        if record.exception is not None:
            found += _layout(record)
        else:
            found += gradients_changed(record)
            found += gradient_forms(record, forward, saver) if forward is not None else []
            found += _nothing_returned(record, forward, saver) if forward is not None else []
            found += _not_finite(record)
    return tuple(found)


def _seen(record: CallRecord, line: int | None = None, position: int | None = None) -> Seen:
    source, where = record.function.source, None if position is None else (0, position)
    line = line or (None if source is None else source.line(record.method))
    if record.index == OWN_CALL:
        return Seen(line, where=where)
    return Seen(line, record.function.name, record.index, where)


def hidden(record: CallRecord) -> Iterator[Finding]:
    """Yield findings on tensors that require grad and reach forward otherwise than as arguments."""
    labels = input_names(record)
    for name in record.hidden:
        if _reads(record, name):
            yield rules.hidden_input(_seen(record), name=name, tensor=f"`{name}`")
    for i, one in enumerate(() if record.function.operation else record.inputs):
        if one.type in _CONTAINERS and not isinstance(one, TensorSnapshot) and NEEDS_GRADIENT in one.repr:
            where = _seen(record, position=i)
            yield rules.hidden_input(where, "causes.hidden_input_in_container", input=labels[i], type=one.type)


def _reads(record: CallRecord, name: str) -> bool:
    """Return True when forward reads a name from around it; False when it may be an attribute of that name."""
    code = record.function.methods.codes.get("forward")
    if code is None or name in code.co_freevars:
        return code is not None
    tree = record.function.methods.tree("forward")
    nodes = ast.walk(tree) if tree is not None else iter(())
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in nodes)


def _dirty(saver: CallRecord | None) -> set[str]:
    if saver is None or saver.ctx is None:
        return set()
    places = tensor_places(saver)
    return {places.get(key, "?") for key in saver.ctx.dirty}


def inputs_changed(record: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    """Yield findings on inputs that require grad and were changed unmarked; others are buffers."""
    dirty, labels = _dirty(saver), input_names(record)
    for i in record.changed:
        one = record.inputs[i]
        if f"input {i}" not in dirty and isinstance(one, TensorSnapshot) and one.requires_grad:
            yield rules.input_changed(_seen(record), labels[i])


def gradients_changed(record: CallRecord) -> Iterator[Finding]:
    """Yield findings on gradients that backward was given and changed in place."""
    names, function = input_names(record), record.function.methods.tree("backward")
    lines = {} if function is None else changed_in_place(function)
    for i in record.changed:
        yield broken("mutates_grad_output", _seen(record, lines.get(names[i])), name=names[i])


def outputs_in_inputs(record: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    """Yield findings on outputs in the memory of an input without a word to autograd, which notices an input itself."""
    dirty, inputs, outputs = _dirty(saver), *forward_names(record)
    for j, output in enumerate(record.outputs):
        for i, given in enumerate(record.inputs):
            if not isinstance(output, TensorSnapshot) or not isinstance(given, TensorSnapshot) or f"input {i}" in dirty:
                continue
            if _share_memory(output, given) and not _same(output, given) and not output.is_view:
                yield broken("output_aliases_input", _seen(record), output=outputs[j], input=inputs[i])
                break


def _same(one: TensorSnapshot, other: TensorSnapshot) -> bool:
    return one.key == other.key != 0


def _share_memory(one: TensorSnapshot, other: TensorSnapshot) -> bool:
    return bool(one.nbytes) and (one.storage == other.storage != 0 or one.address == other.address != 0)


def tensors_on_ctx(record: CallRecord) -> Iterator[Finding]:
    """Yield findings on inputs and outputs on ctx; what forward made for itself nobody else can change."""
    assert record.ctx is not None
    split = record.setup_inputs if record.method == "setup_context" else len(record.inputs)
    outputs = [one for one in (*record.inputs[split:], *record.outputs) if isinstance(one, TensorSnapshot)]
    inputs = [one for one in record.inputs[:split] if isinstance(one, TensorSnapshot)]
    for name, value in record.ctx.attributes.items():
        if not isinstance(value, TensorSnapshot):
            continue
        seen = _seen(record, _line_of_attribute(record, name))
        of_input = any(_same(value, one) or _share_memory(value, one) for one in inputs)
        if not of_input and any(_same(value, one) for one in outputs):
            yield broken("output_on_ctx", seen, name=name)
        elif of_input or any(value.address == one.address != 0 for one in outputs):
            # nothing notices when it is changed before backward; an output's memory alone refers to no ctx
            yield broken("tensor_on_ctx", seen, "" if of_input else "causes.output_memory_on_ctx", name=name)


def _line_of_attribute(record: CallRecord, name: str) -> int | None:
    for method in ("forward", "setup_context"):
        function = record.function.methods.tree(method)
        for node in ast.walk(function) if function is not None else ():
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store):
                return node.lineno
    return None


def _layout(record: CallRecord) -> Iterator[Finding]:
    text = record.exception or ""
    if record.strided and any(word in text for word in _LAYOUT):
        given = [one for k, one in enumerate(record.inputs) if k in record.strided and isinstance(one, TensorSnapshot)]
        after = "y.t()" if given and all(one.strides and 0 not in one.strides for one in given) else "y.sum()"
        yield rules.fails_for_strided_gradient(_seen(record), text.partition(". ")[0], after)


def _saved_changed(record: CallRecord, saver: CallRecord) -> Iterator[Finding]:
    if saver.ctx is None or record.saved_after is None or len(record.saved_after) != len(saver.ctx.saved):
        return
    places, (inputs, outputs) = tensor_places(saver), forward_names(saver)
    labels = saved_names(record.function, saver.ctx, places, inputs, outputs)
    for label, before, after in zip(labels, saver.ctx.saved, record.saved_after, strict=True):
        if isinstance(before, TensorSnapshot) and isinstance(after, TensorSnapshot) and _differs(before, after):
            yield rules.saved_changed(_seen(record), label)


def _differs(before: TensorSnapshot, after: TensorSnapshot) -> bool:
    if before.version is not None and after.version is not None and before.version != after.version:
        return True
    whole = before.strides == after.strides and before.strides is not None
    return whole and before.data is not None and after.data is not None and before.data != after.data


def _state_changed(record: CallRecord, forward: CallRecord, set_up: CallRecord | None) -> Iterator[Finding]:
    before = (set_up.class_state if set_up is not None else None) or forward.class_state
    for name, mark in (record.class_state or {}).items():
        if before is not None and name in before and before[name] != mark:
            sentence = "causes.shared_state_attribute"
            yield rules.state_outside_ctx(_seen(record), sentence, name=name, forward=forward.index)


def _reused(record: CallRecord, forward: CallRecord) -> Iterator[Finding]:
    given = {one.key for one in (*forward.inputs, *record.inputs) if isinstance(one, TensorSnapshot)}
    for i in record.reused:
        one = record.outputs[i]
        if isinstance(one, TensorSnapshot) and one.key not in given:
            yield rules.buffer_reused(_seen(record, position=i))


def _of_inputs(record: CallRecord, forward: CallRecord) -> list[tuple[int, Snapshot, Snapshot]] | None:
    gradients, given = list(record.outputs), forward.inputs[: len(forward.inputs) - len(forward.keywords)]
    while len(gradients) > len(given) and gradients[-1].type == "NoneType":
        gradients.pop()
    if len(gradients) != len(given):
        return None
    return [(i, *pair) for i, pair in enumerate(zip(gradients, given, strict=True))]


def gradient_forms(record: CallRecord, forward: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    """Compare returned gradients with forward's inputs, by the engine's own rules."""
    inputs, needed = input_names(forward), _needed(saver)
    pairs = _of_inputs(record, forward)
    if pairs is None:
        by_position = inputs[: len(inputs) - len(forward.keywords)]
        yield rules.number_of_gradients(_seen(record), len(record.outputs), by_position)
    for i, gradient, given in pairs or ():
        if gradient.type == "NoneType" or (record.function.operation and gradient.type == given.type == "list"):
            continue
        seen = _seen(record, getattr(rules.returned(record.function.source, i), "line", None), i)
        if not isinstance(gradient, TensorSnapshot):
            yield broken("gradient_not_a_tensor", seen, input=inputs[i], type=gradient.type)
        elif not isinstance(given, TensorSnapshot):
            yield broken("gradient_for_non_tensor", seen, input=inputs[i])
        elif needed.get(i) is False:
            yield broken("ignores_needs_input_grad", seen, input=inputs[i], position=i)
        else:
            params = {"input": inputs[i], "value": rules.value_returned(record.function.source, i)}
            got, expected = gradient.shape, given.shape
            if got is not None and expected is not None and got != expected:
                # the engine sums one shape to another as broadcasting would have grown it
                ends = got[max(0, len(got) - len(expected)) :]
                fits = len(expected) <= len(got) and all(e in (1, g) for g, e in zip(ends, expected, strict=True))
                shapes: dict[str, Any] = {"got": list(got), "expected": list(expected), **params}
                reduced = broken("grad_shape_reduced", seen, **shapes)
                yield reduced if fits else broken("wrong_gradient_shape", seen, **shapes)
            if gradient.dtype != given.dtype:
                dtypes = [str(dtype).removeprefix("torch.") for dtype in (gradient.dtype, given.dtype)]
                yield broken("grad_dtype_cast", seen, got=dtypes[0], expected=dtypes[1], **params)


def _needed(saver: CallRecord | None) -> dict[int, bool]:
    return dict(enumerate(saver.ctx.needs_input_grad)) if saver is not None and saver.ctx is not None else {}


def _nothing_returned(record: CallRecord, forward: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    """Yield findings on inputs that need a gradient and get None; only a check can tell if it is zero."""
    inputs, needed = input_names(forward), _needed(saver)
    for i, gradient, _ in _of_inputs(record, forward) or ():
        if gradient.type == "NoneType" and needed.get(i):
            yield broken("returns_none", _seen(record, position=i), input=inputs[i])


def _not_finite(record: CallRecord) -> Iterator[Finding]:
    if not all(map(_finite, record.inputs)):
        return
    labels = output_names(record)
    for i, value in enumerate(record.outputs):
        if not _finite(value):
            yield broken("returns_nonfinite", _seen(record, position=i), gradient=labels[i])


def _finite(value: Snapshot) -> bool:
    if not isinstance(value, TensorSnapshot):
        return True
    if value.measured:
        return not (value.measured["nan"] or value.measured["inf"])
    array = elements(value)
    return array is None or bool(np.isfinite(array).all())
