"""Value, TensorSummary and CtxSnapshot: what is kept of the things a Function met.

Plain data on the CPU: no tensor, no graph and no ctx stays alive because it was summarised.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from nbautograd.core import stumbles
from nbautograd.core.display import Displayable, Phrase
from nbautograd.core.statistics import Ranges, pictured, shown, statistics
from nbautograd.core.stumbles import hands_over, record

LARGEST_REPR = 120  # letters: one line of a report


@dataclass(frozen=True, repr=False)
class TensorSummary(Displayable):
    """Summary of a tensor: its shape, its statistics, a thumbnail.

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
        sampled: how many elements the statistics come from where they are a sample, from first to last; else 0.
        thumbnail: array of at most 32x32 (rows x columns), pooled by the entry of largest size; of a
            sample its runs below each other; None when not known.
        ranges: what lies under each of its cells, where they stand for several elements; else None.
        values: all elements in row-major order when there are at most 64, for showing them; else None.
        reason: why values are missing: a sentence (``str`` of it), or torch's own words; None when they are not.
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
    sampled: int = 0
    thumbnail: np.ndarray[Any, Any] | None = field(default=None, compare=False)
    ranges: Ranges | None = field(default=None, compare=False)
    values: tuple[Any, ...] | None = None
    reason: Phrase | str | None = None

    def __repr__(self) -> str:
        return f"<TensorSummary {tensor_repr(self)}>"


@dataclass(frozen=True, repr=False)
class Value(Displayable):
    """One argument, output, saved tensor, gradient or ctx attribute.

    Attributes:
        name: the name that the user's source gives it, else such as ``"saved[1]"`` or ``"output 0"``; a Phrase for a
            gradient that the source does not name: ``str`` gives the words, in the language of the moment.
        type: the Python type's name, such as ``"Tensor"``, ``"int"``, ``"NoneType"``.
        repr: a short text of at most 120 characters; for tensors dtype and shape.
        tensor: the summary when it is a tensor.
        same_as: which other value it is identical with (``"input 0"``), if that was seen; else empty.
    """

    name: str | Phrase
    type: str
    repr: str
    tensor: TensorSummary | None = None
    same_as: str = ""

    def __repr__(self) -> str:
        return f"<Value {self.name}: {self.repr}>"


@dataclass(frozen=True, repr=False)
class CtxSnapshot(Displayable):
    """State of ``ctx`` as forward or setup_context left it.

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


def summarise(tensor: torch.Tensor) -> TensorSummary:
    """Summarise a tensor by reading all of its elements.

    This runs torch operations; while a Function is being recorded, ``core/recording/snapshot.py`` is used instead.

    Args:
        tensor: any tensor: of any dtype, device, layout; a fake or batched one gives a summary without statistics.

    Returns:
        Shape, dtype and the like, statistics, a thumbnail. Nothing of the tensor is kept alive.
    """
    described = metadata(tensor)
    try:
        array = to_numpy(tensor)
    except Exception as error:  # vmap levels, fake and meta tensors, subclasses that refuse
        record(error, "values")
        return TensorSummary(**described, reason=_first_line(error))
    return from_array(array, described)


def metadata(tensor: torch.Tensor) -> dict[str, Any]:
    """Return fields of a TensorSummary that need no elements."""
    grad_fn = tensor.grad_fn
    return {
        "shape": tuple(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "device": str(tensor.device),
        "requires_grad": tensor.requires_grad,
        "grad_fn": None if grad_fn is None else grad_fn.name(),
        "version": None if tensor.is_inference() else tensor._version,
        "numel": tensor.numel(),
    }


def from_array(array: np.ndarray[Any, Any], described: Mapping[str, Any]) -> TensorSummary:
    """Return a summary from the fields of ``metadata`` and all elements as an array."""
    return TensorSummary(**described, **statistics(array), **pictured(array), values=shown(array))


@hands_over
def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return all elements as an array; dtypes that numpy lacks (bfloat16, float8, quantised) become float32."""
    if tensor.is_meta:
        raise ValueError("meta device")
    with torch.no_grad():
        plain = tensor.detach()
        plain = plain.to_dense() if plain.layout != torch.strided else plain
        plain = plain.dequantize() if plain.is_quantized else plain
        plain = plain.resolve_conj().resolve_neg().cpu()
        if plain.dtype == torch.bfloat16 or str(plain.dtype).startswith("torch.float8"):
            plain = plain.to(torch.float32)
        return plain.numpy()


def describe(name: str, value: Any, same_as: str = "") -> Value:
    """Describe anything as a Value; a tensor with its full summary.

    Args:
        name: the name to show.
        value: anything; its ``repr`` is cut to 120 characters, and never raises.
        same_as: which other value it is identical with, if known.
    """
    if isinstance(value, torch.Tensor):
        summary = summarise(value)
        return Value(name, type(value).__name__, tensor_repr(summary), summary, same_as)
    return Value(name, type(value).__name__, short_repr(value), None, same_as)


def tensor_repr(summary: TensorSummary) -> str:
    """Return dtype and shape in a few characters: ``"float64 2×3"``."""
    return f"{summary.dtype} {sizes_text(summary.shape)}"


def dtype_and_shape(tensor: torch.Tensor) -> str:
    """Return ``"float64 2×3"`` of a tensor that nothing else is asked of."""
    return f"{str(tensor.dtype).removeprefix('torch.')} {sizes_text(tensor.shape)}"


def sizes_text(sizes: Iterable[int | str]) -> str:
    """Return ``"2×3"``, and ``"scalar"`` where there is no dimension."""
    return "×".join(map(str, sizes)) or "scalar"


def short_repr(value: Any) -> str:
    """Return ``repr`` in one line of at most 120 characters; tensors inside it by dtype and shape."""
    try:
        text = _Short().repr(value)
    except Exception as error:
        record(error, "repr")
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= LARGEST_REPR else text[: LARGEST_REPR - 1] + "…"


class _Short(reprlib.Repr):
    """Bounded repr: long lists and strings are cut while they are read, not after."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 3, 80, LARGEST_REPR

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, torch.Tensor):
            return f"<{type(x).__name__} {dtype_and_shape(x)}>"
        return super().repr1(x, level)


def _first_line(error: Exception) -> str:
    return (stumbles.said(error).strip().splitlines() or [type(error).__name__])[0][:LARGEST_REPR]


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds by name, without asking its class, whose code may raise or do anything."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}
