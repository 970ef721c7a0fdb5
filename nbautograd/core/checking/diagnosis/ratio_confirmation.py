"""Is a constant ratio of wrong to right gradient the same at other points, and at other sizes?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking import other_points
from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.checking.diagnosis.patterns import Measure
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Outputs, Subject

RatioAt = tuple[float, Outputs]


def gradient_ratio(subject: Subject, which: int, inputs: tuple[Any, ...]) -> RatioAt | None:
    """The gradient along a random direction over the true slope there, and the outputs; None where nothing is clear."""
    try:
        outputs = subject.call(inputs)
        v = cotangents(subject, outputs, subject.seed + 61)
        gradient = pull(subject, outputs, v)[which]
    except Exception:
        return None
    asked = directional_derivative(subject, outputs.inputs, which, v, subject.seed + 62)
    if asked is None or gradient is None or abs(asked.slope) <= 1e3 * asked.error:
        return None
    g, u = (torch.view_as_real(t) if t.is_complex() else t for t in (gradient.resolve_conj(), asked.u))
    return float((g.double() * u.double()).sum()) / asked.slope, outputs


def ratios_at(subject: Subject, which: int, places: Iterable[tuple[Any, ...]]) -> list[RatioAt]:
    """The ratios at these inputs, as far as they are clear."""
    found = (gradient_ratio(subject, which, inputs) for inputs in places)
    return [r for r in found if r is not None]


def varies(c: float, found: Sequence[RatioAt]) -> bool:
    """Whether the ratio is another one at one of these places."""
    return any(abs(r - c) > 1e-4 * abs(c) for r, _ in found)


def confirm_constant(subject: Subject, position: int, c: float, names: Iterable[Measure], cause: Cause) -> Cause:
    """Return a constant factor with the first name that other inputs and sizes bear out, or as one that varies.

    Args:
        subject: what is checked.
        position: of the input.
        c: the gradient over the right one, here.
        names: what c may be.
        cause: the constant factor without a name.
    """
    which = subject.differentiable.index(position)
    numbers = {key: cause.params[key] for key in ("ratio", "inverse")}
    places = (*(nearby_inputs(subject, subject.seed + k) for k in (64, 65)),)
    near = ratios_at(subject, which, places)
    sized: list[RatioAt] | None = None
    for measure in names:
        if measure.label.removeprefix("1/") in _computed(subject) or isinstance(_argument(subject, measure), Tensor):
            return Cause("missing_factor", "constant_factor_named", {**numbers, "name": measure.label})
        if measure.name:
            if sized is None:
                sizes = itertools.chain(
                    other_points.apart(subject, subject.seed + 63), other_points.doubled(subject, subject.seed + 63)
                )
                sized = ratios_at(subject, which, sizes)
            if not varies(c, sized) or not _follows(subject, measure, [*near, *sized]):
                continue  # what no other size bears out is a coincidence
        elif varies(c, near):
            continue
        return Cause("constant_factor", "constant_factor_named", {**numbers, "name": measure.label})
    message = "constant_factor_varies" if varies(c, near) else "constant_factor"
    return Cause("constant_factor", message, numbers)


def _follows(subject: Subject, measure: Measure, found: Sequence[RatioAt]) -> bool:
    """Whether the ratio is what the measure comes to at all of these places."""
    for ratio, outputs in found:
        named = dict(zip((*subject.input_names, *subject.output_names), (*outputs.inputs, *outputs), strict=False))
        value = measure.take(named[measure.name]) if isinstance(named.get(measure.name), Tensor) else math.nan
        if not abs(ratio - value) <= 1e-4 * abs(value):
            return False
    return True


def _computed(subject: Subject) -> set[str]:
    """Names of tensors that forward computes: no constants, though a single number here."""
    names = set(subject.output_names) | set((subject.source.saved if subject.source is not None else None) or ())
    return names - {
        n for n, item in zip(subject.input_names, subject.inputs, strict=True) if not isinstance(item, Tensor)
    }


def _argument(subject: Subject, measure: Measure) -> Any:
    """The argument that a label, or the inverse of one, stands for."""
    bare = measure.label.removeprefix("1/")
    return subject.inputs[subject.input_names.index(bare)] if bare in subject.input_names else None
