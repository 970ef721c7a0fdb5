"""Is a constant ratio of wrong to right gradient the same at other points, and at other sizes?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from nbautograd.core.checking.causes.hypothesis import Cause
from nbautograd.core.checking.probes.raw import cotangents, pull
from nbautograd.core.checking.probes.state import elsewhere
from nbautograd.core.checking.repair import variants
from nbautograd.core.checking.repair.truth import direction
from nbautograd.core.checking.subject import Subject


def ratio(subject: Subject, which: int, inputs: tuple[Any, ...]) -> float | None:
    """The gradient along a random direction over the true slope there; None where it cannot be told."""
    try:
        outputs = subject.call(inputs)
        v = cotangents(subject, outputs, subject.seed + 61)
        gradient = pull(subject, outputs, v)[which]
    except Exception:
        return None
    asked = direction(subject, outputs.inputs, which, v, subject.seed + 62)
    if asked is None or gradient is None or gradient.is_complex() or abs(asked.slope) <= 1e3 * asked.error:
        return None
    return float((gradient.double() * asked.u.double()).sum()) / asked.slope


def varies(subject: Subject, which: int, c: float, places: Iterable[tuple[Any, ...]]) -> bool:
    """Whether the ratio is another one at one of these inputs."""
    found = (ratio(subject, which, inputs) for inputs in places)
    return any(r is not None and abs(r - c) > 1e-4 * abs(c) for r in found)


def confirmed(subject: Subject, position: int, c: float, cause: Cause) -> Cause:
    """A constant factor, with its name left out where other sizes contradict it, or said to vary where it does."""
    which = subject.differentiable.index(position)
    if cause.message == "constant_factor_named":
        name = str(cause.params["name"])
        if isinstance(_argument(subject, name), Tensor):
            return Cause("missing_factor", cause.message, cause.params)
        sized = ".shape[" in name or ".numel()" in name
        if not sized or varies(subject, which, c, variants.apart(subject, subject.seed + 63)):
            return cause
    elif varies(subject, which, c, [elsewhere(subject, subject.seed + k) for k in (64, 65)]):
        return Cause("constant_factor", "constant_factor_varies", cause.params)
    return Cause("constant_factor", "constant_factor", cause.params)


def _argument(subject: Subject, name: str) -> Any:
    """The argument that a name, or the inverse of one, stands for."""
    bare = name.removeprefix("1/")
    return subject.inputs[subject.input_names.index(bare)] if bare in subject.input_names else None
