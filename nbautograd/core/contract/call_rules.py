"""The contract by watching: what one recorded call broke, told from its record alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nbautograd.core import syntax
from nbautograd.core.contract.severity import SEVERITY
from nbautograd.core.findings import Finding
from nbautograd.core.recording.decode import (
    ctx_saver,
    elements,
    forward_names,
    input_names,
    output_names,
    place_of,
    readable,
    saved_names,
    tensor_places,
)
from nbautograd.core.recording.record import CallRecord
from nbautograd.core.recording.snapshot import NEEDS_GRADIENT, Snapshot, TensorSnapshot

_CONTAINERS = ("list", "tuple", "dict")
_LAYOUT = ("view size is not compatible", "contiguous", "stride", "single memory location")  # of torch's own errors


def broken_rules(record: CallRecord, forward: CallRecord | None, set_up: CallRecord | None) -> tuple[Finding, ...]:
    """Return what breaks the contract in one call.

    Args:
        record: the call.
        forward: the forward call whose ctx it got, None when that is gone.
        set_up: the setup_context call that filled that ctx, if there was one.
    """
    broken: list[Finding] = []
    saver = ctx_saver(record, forward, set_up)
    if record.method == "forward":
        broken += [*_hidden(record), *_inputs_changed(record, saver), *_outputs_that_are_inputs(record, saver)]
    if saver is record and record.ctx is not None:
        broken += _tensors_on_ctx(record)
    if record.method == "backward":
        if forward is not None and saver is not None:
            broken += [*_saved_changed(record, saver), *_state_changed(record, forward, set_up)]
            broken += _reused(record, forward)
        if record.exception is not None:
            broken += _layout(record)
        else:
            broken += _gradients_changed(record)
            broken += _gradients(record, forward, saver) if forward is not None else []
            broken += _not_finite(record)
    return tuple(broken)


def _broken(
    code: str, record: CallRecord, where: int | None = None, sentence: str | None = None, **params: Any
) -> Finding:
    """Return a finding about one call; where is the position of the input that it is about."""
    place = None if where is None else (0, where)
    base = {"function": record.function.name, "call": record.index}
    return Finding(code, SEVERITY[code], f"recording.call_{sentence or code}", {**base, **params}, place)


def _hidden(record: CallRecord) -> Iterator[Finding]:
    """Tensors that require grad and reach forward otherwise than as arguments."""
    labels = input_names(record)
    for name in record.hidden:
        if _reads(record, name):
            yield _broken("hidden_input", record, name=name)
    for i, one in enumerate(record.inputs):
        if one.type in _CONTAINERS and not isinstance(one, TensorSnapshot) and NEEDS_GRADIENT in one.repr:
            yield _broken("hidden_input", record, i, "hidden_in_container", input=labels[i], kind=one.type)


def _reads(record: CallRecord, name: str) -> bool:
    """Return True when forward reads a name from around it; False when it may be an attribute of that name."""
    code = record.function.methods.codes.get("forward")
    if code is None or name in code.co_freevars:
        return code is not None
    tree = syntax.method_at(code)
    nodes = ast.walk(tree) if tree is not None else iter(())
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load) for node in nodes)


def _dirty(saver: CallRecord | None) -> set[str]:
    """Return the places of the inputs that were given to ``mark_dirty``."""
    if saver is None or saver.ctx is None:
        return set()
    places = tensor_places(saver)
    return {places.get(key, "?") for key in saver.ctx.dirty}


def _inputs_changed(record: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    dirty, labels = _dirty(saver), input_names(record)
    for i in record.changed:
        if f"input {i}" not in dirty:
            yield _broken("mutates_input", record, input=labels[i])


def _outputs_that_are_inputs(record: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    """Outputs that are an input, or lie in its memory though autograd knows of no view."""
    dirty, inputs, outputs = _dirty(saver), input_names(record), output_names(record)
    for j, output in enumerate(record.outputs):
        for i, given in enumerate(record.inputs):
            if not isinstance(output, TensorSnapshot) or not isinstance(given, TensorSnapshot) or f"input {i}" in dirty:
                continue
            same = output.key == given.key != 0
            shares = output.storage == given.storage != 0 or output.address == given.address != 0
            if same or (shares and not output.is_view):
                sentence = None if same else "output_shares_memory"
                yield _broken("output_aliases_input", record, None, sentence, output=outputs[j], input=inputs[i])
                break


def _tensors_on_ctx(record: CallRecord) -> Iterator[Finding]:
    assert record.ctx is not None
    places, (inputs, outputs) = tensor_places(record), forward_names(record)
    for name, value in record.ctx.attributes.items():
        if isinstance(value, TensorSnapshot):
            place = place_of(value, places)
            code = "output_on_ctx" if place.startswith("output") else "tensor_on_ctx"
            yield _broken(code, record, attribute=name, value=readable(place, inputs, outputs) or name)


def _gradients_changed(record: CallRecord) -> Iterator[Finding]:
    labels = input_names(record)
    for i in record.changed:
        yield _broken("mutates_grad_output", record, name=labels[i])


def _layout(record: CallRecord) -> Iterator[Finding]:
    """Report a backward that raised over a gradient that is expanded or otherwise not contiguous."""
    text = record.exception or ""
    if record.strided and any(word in text for word in _LAYOUT):
        name = input_names(record)[record.strided[0]]
        yield _broken("fails_noncontiguous_grad", record, name=name, error=text.partition(". ")[0])


def _saved_changed(record: CallRecord, saver: CallRecord) -> Iterator[Finding]:
    """Saved tensors that are not what they were when forward ended."""
    if saver.ctx is None or record.saved_after is None or len(record.saved_after) != len(saver.ctx.saved):
        return
    places, (inputs, outputs) = tensor_places(saver), forward_names(saver)
    labels = saved_names(record.function, saver.ctx, places, inputs, outputs)
    for label, before, after in zip(labels, saver.ctx.saved, record.saved_after, strict=True):
        if isinstance(before, TensorSnapshot) and isinstance(after, TensorSnapshot) and _differs(before, after):
            yield _broken("mutates_saved", record, name=label)


def _differs(before: TensorSnapshot, after: TensorSnapshot) -> bool:
    if before.version is not None and after.version is not None and before.version != after.version:
        return True
    whole = before.strides == after.strides and before.strides is not None
    return whole and before.data is not None and after.data is not None and before.data != after.data


def _state_changed(record: CallRecord, forward: CallRecord, set_up: CallRecord | None) -> Iterator[Finding]:
    """Attributes of the class that another call set between this forward and its backward."""
    before = (set_up.class_state if set_up is not None else None) or forward.class_state
    for name, mark in (record.class_state or {}).items():
        if before is not None and name in before and before[name] != mark:
            yield _broken("shared_state", record, name=name, forward=forward.index)


def _reused(record: CallRecord, forward: CallRecord) -> Iterator[Finding]:
    given = {one.key for one in (*forward.inputs, *record.inputs) if isinstance(one, TensorSnapshot)}
    labels = output_names(record)
    for i, earlier in record.reused:
        one = record.outputs[i]
        if isinstance(one, TensorSnapshot) and one.key not in given:
            yield _broken("grad_buffer_reused", record, i, gradient=labels[i], earlier=earlier)


def _gradients(record: CallRecord, forward: CallRecord, saver: CallRecord | None) -> Iterator[Finding]:
    """Returned gradients against forward's inputs, by the engine's own rules."""
    gradients = list(record.outputs)
    expected = len(forward.inputs)
    while len(gradients) > expected and gradients[-1].type == "NoneType":
        gradients.pop()
    if len(gradients) != expected:
        yield _broken("wrong_number_of_gradients", record, got=len(record.outputs), expected=expected)
        return
    inputs = input_names(forward)
    needs = saver.ctx.needs_input_grad if saver is not None and saver.ctx is not None else ()
    for i, (gradient, given) in enumerate(zip(gradients, forward.inputs, strict=True)):
        yield from _gradient(record, i, inputs[i], gradient, given, needs[i] if i < len(needs) else None)


def _gradient(
    record: CallRecord, i: int, name: str, gradient: Snapshot, given: Snapshot, needed: bool | None
) -> Iterator[Finding]:
    if gradient.type == "NoneType":
        if needed:
            yield _broken("none_gradient", record, i, input=name)
    elif not isinstance(gradient, TensorSnapshot):
        yield _broken("gradient_not_a_tensor", record, i, input=name, got=gradient.type)
    elif not isinstance(given, TensorSnapshot):
        yield _broken("gradient_for_non_tensor", record, i, input=name, type=given.type)
    elif needed is False:
        yield _broken("ignores_needs_input_grad", record, i, input=name)
    else:
        yield from _form(record, i, name, gradient, given)


def _form(record: CallRecord, i: int, name: str, gradient: TensorSnapshot, given: TensorSnapshot) -> Iterator[Finding]:
    got, expected = gradient.shape, given.shape
    if got is not None and expected is not None and got != expected:
        code = "grad_shape_reduced" if sums_to(got, expected) else "wrong_gradient_shape"
        yield _broken(code, record, i, input=name, got=_shape(got), expected=_shape(expected))
    if gradient.dtype != given.dtype:
        dtypes = [str(dtype).removeprefix("torch.") for dtype in (gradient.dtype, given.dtype)]
        yield _broken("grad_dtype_cast", record, i, input=name, got=dtypes[0], expected=dtypes[1])


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def sums_to(got: Sequence[int], expected: Sequence[int]) -> bool:
    """Return True when the engine can sum one shape to another, as broadcasting would have grown it."""
    if len(expected) > len(got):
        return False
    tail = got[len(got) - len(expected) :]
    return all(e in (1, g) for g, e in zip(tail, expected, strict=True))


def _not_finite(record: CallRecord) -> Iterator[Finding]:
    """NaN or inf that came out of finite gradients."""
    if not all(map(_finite, record.inputs)):
        return
    labels = output_names(record)
    for i, value in enumerate(record.outputs):
        if not _finite(value):
            yield _broken("nonfinite", record, i, gradient=labels[i])


def _finite(value: Snapshot) -> bool:
    array = elements(value) if isinstance(value, TensorSnapshot) else None
    return array is None or bool(np.isfinite(array).all())
