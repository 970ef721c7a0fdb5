"""The ctx contract watched on recorded calls: what one call broke, told from its record alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nbautograd.core.findings import Finding
from nbautograd.core.recording import names
from nbautograd.core.recording.decode import elements
from nbautograd.core.recording.reporting import finding, noticed_in
from nbautograd.core.recording.snapshot import RawObject, RawTensor
from nbautograd.core.recording.state import Recorded


def warnings_of(record: Recorded, forward: Recorded | None) -> tuple[Finding, ...]:
    """What breaks the contract in one call.

    Args:
        record: the call.
        forward: the forward call whose ctx it got, None when that is gone.
    """
    found = list(noticed_in(record, forward))
    if record.method == "forward":
        found += [*_inputs_changed(record), *_aliases(record)]
    if record.method in ("forward", "setup_context") and record.kept is not None:
        own = "setup_context" not in record.subject.methods.codes or record.method == "setup_context"
        found += _tensors_on_ctx(record) if own else []
    if record.method == "backward" and record.exception is None:
        found += _gradients_changed(record)
        found += _gradients(record, forward) if forward is not None else []
        found += _not_finite(record)
    return tuple(found)


def _inputs_changed(record: Recorded) -> Iterator[Finding]:
    dirty = record.kept.dirty if record.kept is not None else ()
    labels = names.values_in(record)
    for i in record.changed:
        if f"input {i}" not in dirty:
            yield finding("mutates_input", "bug", record, input=labels[i])


def _aliases(record: Recorded) -> Iterator[Finding]:
    dirty = record.kept.dirty if record.kept is not None else ()
    inputs, outputs = names.values_in(record), names.values_out(record)
    for i, place in enumerate(record.outputs_same):
        if place.startswith("input") and place not in dirty:
            named = names.readable(place, inputs, outputs)
            yield finding("output_aliases_input", "lint", record, output=outputs[i], input=named)


def _tensors_on_ctx(record: Recorded) -> list[Finding]:
    assert record.kept is not None
    found = []
    inputs, outputs = names.values_in(record), names.values_out(record)
    kept = record.kept
    for name, value, place in zip(kept.names, kept.attributes, kept.attributes_same, strict=True):
        if not isinstance(value, RawTensor):
            continue
        code = "output_on_ctx" if place.startswith("output") else "tensor_on_ctx"
        what = names.readable(place, inputs, outputs) or name
        found.append(finding(code, "lint", record, attribute=name, value=what))
    return found


def _gradients_changed(record: Recorded) -> Iterator[Finding]:
    labels = names.values_in(record)
    for i in record.changed:
        yield finding("mutates_grad_output", "bug", record, name=labels[i])


def _gradients(record: Recorded, forward: Recorded) -> Iterator[Finding]:
    """Returned gradients against forward's inputs, by the engine's own rules."""
    gradients = list(record.outputs)
    expected = len(forward.inputs)
    while len(gradients) > expected and gradients[-1].type == "NoneType":
        gradients.pop()
    if len(gradients) != expected:
        yield finding("wrong_number_of_gradients", "bug", record, got=len(record.outputs), expected=expected)
        return
    inputs = names.values_in(forward)
    needs = forward.kept.needs_input_grad if forward.kept is not None else ()
    for i, (gradient, given) in enumerate(zip(gradients, forward.inputs, strict=True)):
        needed = needs[i] if i < len(needs) else None
        yield from _gradient(record, i, inputs[i], gradient, given, needed)


def _gradient(
    record: Recorded,
    i: int,
    name: str,
    gradient: RawTensor | RawObject,
    given: RawTensor | RawObject,
    needed: bool | None,
) -> Iterator[Finding]:
    if gradient.type == "NoneType":
        if needed:
            yield finding("none_gradient", "lint", record, i, input=name)
    elif not isinstance(gradient, RawTensor):
        yield finding("gradient_not_a_tensor", "bug", record, i, input=name, got=gradient.type)
    elif not isinstance(given, RawTensor):
        yield finding("gradient_for_non_tensor", "bug", record, i, input=name, type=given.type)
    elif needed is False:
        yield finding("ignores_needs_input_grad", "note", record, i, input=name)
    else:
        yield from _gradient_form(record, i, name, gradient, given)


def _gradient_form(record: Recorded, i: int, name: str, gradient: RawTensor, given: RawTensor) -> Iterator[Finding]:
    got, expected = tuple(gradient.shape), tuple(given.shape)
    if got != expected:
        shapes = {"input": name, "got": _shape(got), "expected": _shape(expected)}
        if _sums_to(got, expected):
            yield finding("grad_shape_reduced", "lint", record, i, **shapes)
        else:
            yield finding("wrong_gradient_shape", "bug", record, i, **shapes)
    if gradient.dtype != given.dtype:
        dtypes = {
            "got": str(gradient.dtype).removeprefix("torch."),
            "expected": str(given.dtype).removeprefix("torch."),
        }
        yield finding("grad_dtype_cast", "lint", record, i, input=name, **dtypes)


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _sums_to(got: tuple[int, ...], expected: tuple[int, ...]) -> bool:
    """Can the engine sum this shape to that one, as broadcasting would have grown it?"""
    if len(expected) > len(got):
        return False
    tail = got[len(got) - len(expected) :]
    return all(e in (1, g) for g, e in zip(tail, expected, strict=True))


def _not_finite(record: Recorded) -> Iterator[Finding]:
    """NaN or inf that came out of finite gradients."""
    if not all(_finite(value) for value in record.inputs):
        return
    labels = names.values_out(record)
    for i, value in enumerate(record.outputs):
        if not _finite(value):
            yield finding("nonfinite", "lint", record, i, gradient=labels[i])


def _finite(value: RawTensor | RawObject) -> bool:
    if not isinstance(value, RawTensor) or not value.data:
        return True
    return bool(np.isfinite(elements(value)).all())
