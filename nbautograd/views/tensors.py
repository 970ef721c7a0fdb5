"""A recorded value in words: its type and shape, its elements or its range, what is odd about it."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.values import TensorSummary, Value

FEW = 6  # elements that are written out
SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex128": "c128", "complex64": "c64",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
}  # fmt: skip


def what(value: Value) -> str:
    """Return ``float64 2×3``, ``int 5``, ``None``: what the value is, without its elements."""
    return kind(value.tensor) if value.tensor is not None else value.repr


def kind(tensor: TensorSummary) -> str:
    """Return ``float64 2×3``; the device too when it is not the CPU."""
    shape = formats.shape(tensor.shape) or messages.text("views.tensor.scalar")
    device = "" if tensor.device == "cpu" else f" {tensor.device}"
    return f"{tensor.dtype} {shape}{device}"


def abbreviated(value: Value) -> str:
    """Return ``weight f64 2×3``: name, short dtype and shape, for a table of calls."""
    if value.tensor is None:
        return f"{value.name} {value.repr}"
    return (
        f"{value.name} {SHORT.get(value.tensor.dtype, value.tensor.dtype)} {formats.shape(value.tensor.shape)}".rstrip()
    )


def contents(tensor: TensorSummary, digits: int = 4) -> str:
    """Return the elements when they are few, else range, mean, norm, and what is odd; nothing when unknown."""
    if tensor.reason:
        return messages.text("views.tensor.unknown", reason=tensor.reason)
    if not tensor.numel:
        return messages.text("views.tensor.empty")
    if tensor.values is not None and len(tensor.values) <= FEW:
        return ", ".join(formats.number(v, digits) for v in tensor.values)
    range_ = () if tensor.min is None else (_range(tensor, digits),)
    return messages.text("views.comma").join((*range_, *oddities(tensor)))


def picture_caption(tensor: TensorSummary) -> str:
    """Return the same beside a live picture of the elements: nothing where it shows each, and none is odd."""
    shown = tensor.thumbnail is not None and 1 < tensor.thumbnail.size == tensor.numel <= FEW
    return "" if shown and not oddities(tensor) else contents(tensor)


def oddities(tensor: TensorSummary) -> tuple[str, ...]:
    """Return NaN, infinities, all zeros, sampled statistics: each in a few words."""
    found = []
    if tensor.nan:
        found.append(messages.text("views.tensor.nan", n=formats.count(tensor.nan)))
    if tensor.inf:
        found.append(messages.text("views.tensor.inf", n=formats.count(tensor.inf)))
    if tensor.zeros and tensor.zeros == tensor.numel > FEW:
        found.append(messages.text("views.tensor.zeros"))
    if tensor.sampled:
        n, total = formats.count(tensor.sampled), formats.count(tensor.numel)
        found.append(messages.text("views.tensor.sampled", n=n, total=total))
    return tuple(found)


def pooling(tensor: TensorSummary) -> str:
    """Say how many elements a cell of the thumbnail stands for; nothing where it shows each."""
    if tensor.ranges is None:
        return ""
    return messages.text("views.panel.pooled", rows=tensor.ranges.rows, cols=tensor.ranges.cols)


def remarks(value: Value) -> str:
    """List other facts of a tensor: ``requires grad``, ``same object as input 0``."""
    words = []
    if value.tensor is not None and value.tensor.requires_grad:
        words.append(messages.text("views.tensor.requires_grad"))
    if value.same_as:
        words.append(messages.text("views.tensor.same", other=_place(value.same_as)))
    return messages.text("views.comma").join(words)


def _place(name: str) -> str:
    """Return ``"input 0"`` in the language of the moment; other names as they are."""
    kind, _, number = name.partition(" ")
    known = kind in ("input", "output") and number.isdigit()
    return messages.text(f"views.tensor.{kind}", number=number) if known else name


def _range(tensor: TensorSummary, digits: int) -> str:
    low, high, mean, norm = (formats.number(x, digits) for x in (tensor.min, tensor.max, tensor.mean, tensor.norm))
    return messages.text("views.tensor.range", min=low, max=high, mean=mean, norm=norm)
