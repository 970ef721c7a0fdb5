"""Is a constant ratio of wrong to right gradient the same at other points, and at other sizes?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from nbautograd.core.checking import other_points
from nbautograd.core.checking.backward_call import cotangents, pull
from nbautograd.core.checking.diagnosis.hypothesis import Cause
from nbautograd.core.checking.directional import directional_derivative
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Outputs, Subject

SIZE = re.compile(r"([^()\s/]+)\.(?:shape\[(\d+)\]|numel\(\))")
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
    if asked is None or gradient is None or gradient.is_complex() or abs(asked.slope) <= 1e3 * asked.error:
        return None
    return float((gradient.double() * asked.u.double()).sum()) / asked.slope, outputs


def ratios_at(subject: Subject, which: int, places: Iterable[tuple[Any, ...]]) -> list[RatioAt]:
    """The ratios at these inputs, as far as they are clear."""
    found = (gradient_ratio(subject, which, inputs) for inputs in places)
    return [r for r in found if r is not None]


def varies(c: float, found: Sequence[RatioAt]) -> bool:
    """Whether the ratio is another one at one of these places."""
    return any(abs(r - c) > 1e-4 * abs(c) for r, _ in found)


def confirm_constant(subject: Subject, position: int, c: float, names: Iterable[str], cause: Cause) -> Cause:
    """A constant factor with the first of its names that other sizes bear out, or said to vary where it does."""
    which = subject.differentiable.index(position)
    numbers = {key: cause.params[key] for key in ("ratio", "inverse")}
    sized: list[RatioAt] | None = None
    for name in names:
        if isinstance(_argument(subject, name), Tensor) or name.removeprefix("1/") in _computed(subject):
            return Cause("missing_factor", "constant_factor_named", {**numbers, "name": name})
        if SIZE.search(name):
            sized = (
                sized
                if sized is not None
                else ratios_at(subject, which, other_points.apart(subject, subject.seed + 63))
            )
            if not _follows(subject, name, sized) or not (varies(c, sized) or not sized):
                continue
        return Cause("constant_factor", "constant_factor_named", {**numbers, "name": name})
    if varies(c, ratios_at(subject, which, [nearby_inputs(subject, subject.seed + k) for k in (64, 65)])):
        return Cause("constant_factor", "constant_factor_varies", numbers)
    return Cause("constant_factor", "constant_factor", numbers)


def _follows(subject: Subject, name: str, found: Sequence[RatioAt]) -> bool:
    """Whether the ratio is what the name stands for at all of these places."""
    pairs = [(r, _size(subject, name, outputs)) for r, outputs in found]
    return all(value is None or abs(r - value) <= 1e-4 * abs(value) for r, value in pairs)


def _size(subject: Subject, name: str, outputs: Outputs) -> float | None:
    """What a name such as ``1/sqrt(x.shape[1])`` stands for in this call."""
    found = SIZE.search(name)
    tensors = dict(zip((*subject.input_names, *subject.output_names), (*outputs.inputs, *outputs), strict=False))
    tensor = tensors.get(found[1]) if found is not None else None
    if found is None or not isinstance(tensor, Tensor):
        return None
    if found[2] is not None and int(found[2]) >= tensor.dim():
        return None
    n = float(tensor.numel() if found[2] is None else tensor.shape[int(found[2])])
    if "- 1" in name:
        value = (n - 1) / n
        return value if name.startswith("(") else 1 / value if n > 1 else None
    n = math.sqrt(n) if "sqrt" in name else n
    return 1 / n if name.startswith("1/") else n


def _computed(subject: Subject) -> set[str]:
    """Names of tensors that forward computes: no constants, though a single number here."""
    names = set(subject.output_names) | set((subject.source.saved if subject.source is not None else None) or ())
    return names - {
        n for n, item in zip(subject.input_names, subject.inputs, strict=True) if not isinstance(item, Tensor)
    }


def _argument(subject: Subject, name: str) -> Any:
    """The argument that a name, or the inverse of one, stands for."""
    bare = name.removeprefix("1/")
    return subject.inputs[subject.input_names.index(bare)] if bare in subject.input_names else None
