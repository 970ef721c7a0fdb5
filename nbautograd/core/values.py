"""Value, TensorSummary and CtxSnapshot: what is kept of the things a Function met.

Plain data on the CPU: no tensor, no graph and no ctx stays alive because it was summarised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbautograd.core.display import Displayable


@dataclass(frozen=True, repr=False)
class TensorSummary(Displayable):
    """What is kept of a tensor: its shape, its statistics, a thumbnail.

    Attributes:
        shape: sizes of the dimensions.
        dtype: such as ``"float64"`` (without ``torch.``).
        device: such as ``"cpu"``.
        requires_grad: as it was when seen.
        grad_fn: name of the node that made it, such as ``"MulBackward0"``, or None.
        version: the in-place counter ``tensor._version`` when seen, or None where it has none.
        numel: number of elements.
        min, max, mean, std, norm: over the finite elements (of the absolute value for complex); None when not known.
            ``std`` is the population's; ``norm`` is Euclidean.
        nan, inf, zeros: how many elements are NaN, infinite, exactly zero; None when not known.
        sampled: True when the statistics come from a sample of the elements.
        thumbnail: array of at most 32x32 (rows x columns), pooled by the entry of largest size; None when not known.
        values: all elements in row-major order when there are at most 64, for showing them; else None.
        reason: why values are missing ("vmap level 1", "meta device"); empty when they are not.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    requires_grad: bool = False
    grad_fn: str | None = None
    version: int | None = None
    numel: int = 0
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    norm: float | None = None
    nan: int | None = None
    inf: int | None = None
    zeros: int | None = None
    sampled: bool = False
    thumbnail: np.ndarray[Any, Any] | None = field(default=None, compare=False)
    values: tuple[Any, ...] | None = None
    reason: str = ""

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"<TensorSummary {self.dtype} {shape}>"


@dataclass(frozen=True, repr=False)
class Value(Displayable):
    """One argument, output, saved tensor, gradient or ctx attribute.

    Attributes:
        name: the name that the user's source gives it, else such as ``"saved[1]"`` or ``"output 0"``.
        type: the Python type's name, such as ``"Tensor"``, ``"int"``, ``"NoneType"``.
        repr: a short text of at most 120 characters; for tensors dtype and shape.
        tensor: the summary when it is a tensor.
        same_as: which other value it is identical with (``"input 0"``), if that was seen; else empty.
    """

    name: str
    type: str
    repr: str
    tensor: TensorSummary | None = None
    same_as: str = ""

    def __repr__(self) -> str:
        return f"<Value {self.name}: {self.repr}>"


@dataclass(frozen=True, repr=False)
class CtxSnapshot(Displayable):
    """What forward or setup_context left on ``ctx``, as it stood when they returned.

    Attributes:
        saved_tensors: what ``save_for_backward`` was given, with the names that the source gives them.
        attributes: everything else that was put on ctx, by name.
        needs_input_grad: one bool per argument of forward.
        dirty: names of the inputs given to ``mark_dirty``.
        non_differentiable: names of the outputs given to ``mark_non_differentiable``.
        materialize_grads: False after ``set_materialize_grads(False)``; None when it could not be seen.
        bytes: memory that the saved tensors hold, each storage counted once.
        freed: True when the saved tensors were gone already and only their description is left.
    """

    saved_tensors: tuple[Value, ...] = ()
    attributes: Mapping[str, Value] = field(default_factory=dict)
    needs_input_grad: tuple[bool, ...] = ()
    dirty: tuple[str, ...] = ()
    non_differentiable: tuple[str, ...] = ()
    materialize_grads: bool | None = True
    bytes: int = 0
    freed: bool = False

    def __repr__(self) -> str:
        return f"<CtxSnapshot {len(self.saved_tensors)} saved, {len(self.attributes)} attributes, {self.bytes} bytes>"
