"""Snapshots: what is kept of a value at one moment, taken without a torch operation and without keeping it alive.

torch itself bounds what ``memory.py`` copies: ``as_strided`` to the tensor's own sizes raises when the storage is
smaller than they say. Address, size and version are looked at again after the copy, and any change discards it.

One encoding from here to ``Call``: a record holds snapshots; ``live_log.py`` makes Values of them when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from math import prod, sqrt
from types import BuiltinFunctionType, FunctionType, WrapperDescriptorType
from typing import Any, ClassVar

import numpy as np
import torch

from nbautograd.core import stumbles
from nbautograd.core.display import Phrase
from nbautograd.core.recording import memory
from nbautograd.core.statistics import pictured, shown, statistics
from nbautograd.core.stumbles import ask, hands_over
from nbautograd.core.torch_private import tensors as private

SHAPES, SUMMARY, POOLED, VALUES, AS_IT_LIES = 1, 2, 3, 4, 5
LEVELS = {"off": 0, "shapes": SHAPES, "summary": SUMMARY, "pooled": POOLED, "values": VALUES}
# bytes up to which all elements of a tensor are copied at each level; of a larger one a sample is
_WHOLE = {SHAPES: 0, SUMMARY: memory.WHOLE, POOLED: 2**25, VALUES: 2**62, AS_IT_LIES: 2**62}

_PLAIN_NAMES: dict[type, str] = {torch.Tensor: "Tensor", torch.nn.Parameter: "Parameter"}
PLAIN_TYPES = frozenset(_PLAIN_NAMES)
_CPU = torch.device("cpu")
# of torch itself: what a subclass has in their place is code of the user's, which may raise or end the process
SHAPE_OF = torch.Tensor.shape.__get__  # type: ignore[attr-defined]
DTYPE_OF = torch.Tensor.dtype.__get__  # type: ignore[attr-defined]
DEVICE_OF = torch.Tensor.device.__get__
LAYOUT_OF = torch.Tensor.layout.__get__  # type: ignore[attr-defined]
IS_NESTED = torch.Tensor.is_nested.__get__  # type: ignore[attr-defined]
REQUIRES_GRAD_OF = torch.Tensor.requires_grad.__get__  # type: ignore[attr-defined]
name_of: Callable[[type], str] = type.__dict__["__name__"].__get__
_ORDINARY = frozenset({private.ORDINARY, private.INFERENCE} - {0})  # dispatch keys

_BLOCKS, _BLOCK = 8, 512  # of a larger contiguous one: so many blocks of so many bytes; the system asks for each page
_PICKED = 256  # of a larger one with gaps or repeats: so many elements


@dataclass(slots=True, eq=False)
class TensorSnapshot:
    """A tensor as it was at one moment.

    Attributes:
        type: name of its Python type.
        shape, dtype, device, requires_grad: as the tensor gave them; a size that is no number is -1, and the shape is
            None where the tensor has none (nested ones).
        version: its in-place counter, None where it has none.
        grad_fn: name of the node that made it, or None.
        key: ``id`` of the tensor: the same for what was the same tensor in one call; 0 when that is not known.
        storage, address: where its storage and its first element lie; 0 when not known.
        nbytes: size of its elements in bytes.
        is_view: True for a view that autograd knows of.
        held: bytes that it keeps alive: a view keeps its base.
        data: the elements as bytes, or a copy from a device that is still under way, or None.
        strides: in elements when ``data`` spans the tensor's memory as it lies, () when it lies in row-major order;
            None when ``data`` is a sample.
        reason: why ``data`` is missing, None when it is not.
        measured: in place of the elements of a large tensor, what a TensorSummary tells of all of them.
    """

    type: str
    shape: tuple[int, ...] | None
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    version: int | None
    grad_fn: str | None
    key: int
    storage: int
    address: int
    nbytes: int
    is_view: bool = False
    held: int = 0
    data: bytes | memory.PendingCopy | None = None
    strides: tuple[int, ...] | None = None
    reason: Phrase | None = None
    measured: dict[str, Any] | None = None


@dataclass(slots=True, eq=False)
class ObjectSnapshot:
    """Anything that is not a tensor: its type's name and a short text made without calling the user's code."""

    type: str
    repr: str
    version: ClassVar[None] = None


Snapshot = TensorSnapshot | ObjectSnapshot


class CallSnapshots(dict[int, TensorSnapshot]):
    """By id of a tensor: its snapshot in this call.

    Attributes:
        copied: bytes of elements that were copied.
        own_outputs: what tells the outputs of an operation's forward from other tensors.
    """

    copied = 0
    own_outputs: frozenset[tuple[int, type, int]] = frozenset()


# a snapshot that wants its elements, the tensor to copy them from, and that tensor's version
Wanted = list[tuple[TensorSnapshot, torch.Tensor, int | None]]
# the same with the strides of its copy, None for a sample, and the bytes of it
Plan = tuple[TensorSnapshot, torch.Tensor, int | None, tuple[int, ...] | None, int]

_NONE = ObjectSnapshot("NoneType", "None")
_GONE = Phrase("recording.missing.storage")
_LAYOUT = Phrase("recording.missing.layout")
_UNREADABLE = Phrase("recording.missing.storage")
_CHANGED = Phrase("recording.missing.changed")


def snapshots(values: Iterable[Any], level: int, known: CallSnapshots | None = None) -> tuple[Snapshot, ...]:
    """Take a snapshot of each value; a tensor that this call has shown already shares its first one.

    Args:
        level: how much to keep, ``SHAPES``, ``SUMMARY``, ``POOLED`` or ``VALUES``.
        known: what this call has taken before; grows.
    """
    known = CallSnapshots() if known is None else known
    taken: list[Snapshot] = []
    wanted: Wanted = []
    for value in values:
        kind = type(value)
        if value is None:
            taken.append(_NONE)
        elif kind in PLAIN_TYPES or issubclass(kind, torch.Tensor):
            key = id(value)
            one = known.get(key)
            if one is None:
                one = known[key] = _tensor(value, kind, level, wanted)
            taken.append(one)
        else:
            taken.append(ObjectSnapshot(name_of(kind), safe_repr(value)))
    if wanted:
        copied = copy_elements(wanted, _WHOLE[level])
        known.copied += copied if level != POOLED else sum([_measure(one) for one, _, _ in wanted])
    return tuple(taken)


def memory_of(tensors: Sequence[torch.Tensor]) -> list[TensorSnapshot]:
    """Take snapshots of plain tensors with all elements as they lie in memory, conjugated ones too, in one copy."""
    wanted: Wanted = []
    taken = [_tensor(one, torch.Tensor, AS_IT_LIES, wanted) for one in tensors]
    if wanted:
        copy_elements(wanted, _WHOLE[AS_IT_LIES], guarded=True)
    return taken


def is_whole_copy(one: Snapshot) -> bool:
    """Return True when all elements of a tensor were copied from its memory."""
    return isinstance(one, TensorSnapshot) and type(one.data) is bytes and one.strides is not None


def changed_elements(tensors: list[tuple[Any, TensorSnapshot]]) -> list[bool]:
    """Return for each tensor that was kept whole whether its elements are others now."""
    now = [replace(before, data=None, strides=None) for _, before in tensors]
    if now:
        copy_elements([(one, tensor, None) for one, (tensor, _) in zip(now, tensors, strict=True)], memory.WHOLE)
    pairs = zip(now, tensors, strict=True)
    return [one.data is not None and one.strides is not None and one.data != before.data for one, (_, before) in pairs]


def copy_elements(wanted: Wanted, whole: int, guarded: bool = False) -> int:
    """Fill in the elements of some snapshots, all in one copy.

    Args:
        wanted: whose elements; those that cannot be copied get a reason.
        whole: bytes of a tensor up to which all of its elements are copied; a sample of a larger one will do.
        guarded: True where conjugated ones may be among them, which an operation outside a guard would read.

    Returns:
        The number of bytes that were copied.
    """
    copier = memory.copier()
    if copier is None or private.only_kernels is None or private.profiling():
        # the check of the storage's size would appear in the table of a profiler
        kind = "off" if memory.off else "profiler" if copier and private.profiling() else "no_copier"
        for one, _, _ in wanted:
            one.reason = Phrase(f"recording.missing.{kind}")
        return 0
    plans: list[Plan] = []
    pieces: list[int] = []
    total = 0
    for one, tensor, version in _in_bounds(wanted, guarded):
        if 0 in (one.shape or ()):  # not ``nbytes``: that of 2**62 elements overflows to 0
            one.data, one.strides = b"", ()
        elif not one.address:  # zeros that nobody wrote down, or what only stands for a tensor
            one.reason = _LAYOUT
        else:
            steps: tuple[int, ...] | None = ()
            size = one.nbytes
            if tensor.is_contiguous() and size <= whole:
                pieces += one.address, size
            else:
                steps, spread = _spans(one, tensor, tensor.stride(), whole)
                pieces += spread
                size = sum(spread[1::2])
            plans.append((one, tensor, version, steps, size))
            total += size
    copied = copier.copy(pieces, total) if pieces else b""
    if copied is None and len(plans) > 1:  # where one of them is not there, each is tried alone
        return sum([copy_elements([plan[:3]], whole, guarded) for plan in plans])
    _hand_out(plans, copied)
    return total


def _in_bounds(wanted: Wanted, guarded: bool) -> Wanted:
    """Return those whose storage holds all elements, which torch itself checks; the others get a reason."""
    plain = not guarded and private.nobody_hears()
    checks: list[Callable[[], Any]] = []
    try:
        for one, tensor, _ in wanted:
            if plain and one.address and not tensor.is_quantized:
                tensor.as_strided(one.shape or (), tensor.stride())
            else:  # what only stands for a tensor, or holds its elements in a code: the guard has no kernel for it
                checks.append(partial(tensor.as_strided, one.shape or (), tensor.stride()))
        if checks:
            private.run_unheard(checks)
        return wanted
    except NotImplementedError:  # it is no ordinary strided CPU tensor
        reason = _LAYOUT
    except RuntimeError:  # "... are out of bounds for storage of size ..."
        reason = _GONE
    if len(wanted) > 1:
        return [one for alone in wanted for one in _in_bounds([alone], guarded)]
    wanted[0][0].reason = reason
    return []


def _hand_out(plans: list[Plan], copied: bytes | None) -> None:
    """Give each snapshot its part of a copy, or the reason why it has none; what changed meanwhile gets none."""
    at = 0
    for one, tensor, version, steps, size in plans:
        moved = tensor.nbytes != one.nbytes or private.data_address(tensor) != one.address
        if copied is None:
            one.reason = _UNREADABLE
        elif moved or (version is not None and tensor._version != version):
            one.reason = _CHANGED
        else:
            one.data, one.strides = copied[at : at + size], steps
            # of one with repeats nothing is written out
            if steps and size > memory.WHOLE and prod(one.shape or ()) * tensor.itemsize < size:
                _close_gaps(one, tensor)
        at += size


def _spans(
    one: TensorSnapshot, tensor: torch.Tensor, strides: tuple[int, ...], whole: int
) -> tuple[tuple[int, ...] | None, list[int]]:
    """Return the strides of the copy (None for a sample), and the pieces of memory that make it up."""
    shape, itemsize, address = one.shape or (), tensor.itemsize, one.address
    contiguous = tensor.is_contiguous()
    span = one.nbytes
    if not contiguous:
        span = (1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])) * itemsize
    if span <= whole:
        apart = None if contiguous or span <= memory.WHOLE else _runs(shape, strides, itemsize, address, span)
        return (() if contiguous else strides, [address, span]) if apart is None else ((), apart)
    if contiguous:
        step = (span - _BLOCK) // (_BLOCKS - 1) // itemsize * itemsize
        return None, [number for i in range(_BLOCKS) for number in (address + i * step, _BLOCK)]
    last = prod(shape) - 1  # may be more than a float can count
    places = np.unravel_index([last * i // (_PICKED - 1) for i in range(_PICKED)], shape)
    offsets = np.asarray(places).T @ np.asarray(strides) * itemsize
    return None, [number for at in offsets.tolist() for number in (address + at, itemsize)]


_APART = 64  # bytes, a cache line: runs of memory that lie further apart on average are copied one by one


def _runs(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, address: int, span: int) -> list[int] | None:
    """Return the runs of memory that a tensor with wide gaps is made of, in row-major order; None for other tensors."""
    run, inner = itemsize, len(shape)
    while inner and (strides[inner - 1] * itemsize == run or shape[inner - 1] == 1):
        inner -= 1
        run *= shape[inner]
    if prod(shape[:inner]) * (run + _APART) > span:
        return None
    offsets = np.zeros((), np.int64)
    for size, step in zip(shape[:inner], strides[:inner], strict=True):
        offsets = offsets[..., None] + np.arange(size) * (step * itemsize)
    return [number for at in offsets.reshape(-1).tolist() for number in (address + at, run)]


RUNS = 8  # rows in which a sample is shown: a contiguous tensor's is so many runs of its memory
_NUMPY: dict[torch.dtype, Any] = {
    torch.float64: np.float64,
    torch.float32: np.float32,
    torch.float16: np.float16,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.int16: np.int16,
    torch.int8: np.int8,
    torch.uint8: np.uint8,
    torch.uint16: np.uint16,
    torch.uint32: np.uint32,
    torch.uint64: np.uint64,
    torch.bool: np.bool_,
}


def measures(one: TensorSnapshot) -> dict[str, Any]:
    """Return the fields of a TensorSummary that its elements give; none where they are not known."""
    array = elements(one)
    if array is None:
        return {}
    if one.strides is None:
        runs = array.reshape(RUNS, -1) if array.size % RUNS == 0 else array
        return {**statistics(array), "sampled": array.size, "thumbnail": pictured(runs)["thumbnail"]}
    repeats = prod(one.shape or ()) // array.size if array.size else 1
    if repeats > 1:
        fields = statistics(array)
        counts = {name: fields[name] * repeats for name in ("zeros", "nan", "inf")}
        norm = {"norm": fields["norm"] * sqrt(repeats)} if "norm" in fields else {}
        return {**fields, **counts, **norm, "thumbnail": pictured(array)["thumbnail"]}
    return {**statistics(array), **pictured(array), "values": shown(array)}


def _measure(one: TensorSnapshot) -> int:
    """Put what there is to say of all elements of a large tensor in their place; return how many bytes that leaves."""
    if type(one.data) is not bytes:
        return 0
    if len(one.data) <= memory.WHOLE or one.strides is None or not (fields := measures(one)):
        return len(one.data)
    one.measured, one.data = fields, None
    return 3 * int(fields["thumbnail"].nbytes)


REPEATED = 2**16  # elements; of a tensor with more, those that ``expand`` repeats are looked at once


def elements(one: TensorSnapshot) -> np.ndarray[Any, Any] | None:
    """Return the elements that were copied: in the tensor's shape, flat when they are a sample, None without any.

    A large tensor that was expanded has 1 in place of the sizes along which it repeats itself: written out it may be
    larger than all memory.
    """
    if one.data is None:
        return None
    if not isinstance(one.data, bytes):
        one.data = one.data.wait()
    flat = flat_elements(one.data, one.dtype)
    if flat is None:
        one.reason = Phrase("recording.missing.dtype", dtype=str(one.dtype).removeprefix("torch."))
        return None
    if one.strides is None:
        return flat
    shape = one.shape or ()
    if not flat.size or not one.strides:
        return flat.reshape(shape)
    strides = tuple(step * flat.itemsize for step in one.strides)
    if prod(shape) > REPEATED:
        shape = tuple(size if step else 1 for size, step in zip(shape, strides, strict=True))
        if prod(shape) > REPEATED + flat.size:  # windows that overlap
            one.strides = None
            return flat
    return np.lib.stride_tricks.as_strided(flat, shape, strides, writeable=False)


def flat_elements(data: bytes, dtype: torch.dtype) -> np.ndarray[Any, Any] | None:
    """Return copied bytes as a flat array, None for a dtype that cannot be read."""
    known = _NUMPY.get(dtype)
    if known is not None:
        return np.frombuffer(data, known)
    if dtype == torch.bfloat16:  # the upper half of a float32
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype == torch.complex32:
        return np.frombuffer(data, np.float16).astype(np.float32).view(np.complex64)
    if not data:
        return np.empty(0, np.float32)
    try:
        with torch.no_grad():
            return torch.frombuffer(bytearray(data), dtype=dtype).to(torch.float64).numpy()
    except (RuntimeError, TypeError, ValueError):  # a dtype that torch itself cannot convert
        return None


def _close_gaps(one: TensorSnapshot, tensor: torch.Tensor) -> None:
    flat = np.frombuffer(one.data, f"V{tensor.itemsize}")  # type: ignore[arg-type]
    steps = [step * tensor.itemsize for step in one.strides or ()]
    apart = np.lib.stride_tricks.as_strided(flat, one.shape, steps)
    one.data, one.strides = apart.tobytes(), ()


def _tensor(value: Any, kind: type, level: int, wanted: Wanted) -> TensorSnapshot:
    name = _PLAIN_NAMES.get(kind)
    if name is None:
        return _of_subclass(value)
    if not value.is_cpu:
        return _unusual(value, name, level, wanted)
    try:
        version = value._version
    except RuntimeError:  # made in inference mode
        version = None
    try:
        requires_grad, is_view, nbytes = value.requires_grad, value._is_view(), value.nbytes
        # a view's node is made anew when its base was changed
        node = value.grad_fn if requires_grad and not is_view else None
        storage, offset = private.storage_data(value), value.storage_offset()
        one = TensorSnapshot(
            name, value.shape, value.dtype, _CPU, requires_grad, version, None if node is None else type(node).__name__,
            id(value), storage, storage + offset * value.itemsize if storage and offset else storage, nbytes, is_view,
            value._base.nbytes if is_view else nbytes,
        )  # fmt: skip
    except RuntimeError:  # tensors of other kinds refuse one question or another, at last ``copy_elements``'
        return _unusual(value, name, level, wanted)
    if level >= SUMMARY:
        if level != AS_IT_LIES and (value.is_conj() or value.is_neg()):  # its memory holds what it is computed from
            one.reason = _LAYOUT
        else:
            wanted.append((one, value, version))
    return one


def _unusual(value: Any, name: str, level: int, wanted: Wanted) -> TensorSnapshot:
    """Describe a tensor that is not ordinary: each thing is asked for on its own, since any may be refused."""
    shape = ask(lambda: _sizes(value), None)
    device = ask(lambda: value.device, _CPU)
    plain_node = ask(lambda: value.requires_grad and not value._is_view() and not value.is_leaf, False)
    one = TensorSnapshot(
        name, shape, value.dtype, device, ask(lambda: value.requires_grad, False), ask(lambda: value._version, None),
        ask(lambda: type(value.grad_fn).__name__, None) if plain_node else None, id(value), 0, 0,
        ask(lambda: value.nbytes, 0),
    )  # fmt: skip
    if level < SUMMARY:
        return one
    inner = ask(lambda: private.unwrap_for_grad(value), value)
    if inner is not value and private.dispatch_keys(inner) in _ORDINARY:
        one.address, one.nbytes = private.data_address(inner), inner.nbytes
        wanted.append((one, inner, None))  # inside torch.func.grad or jvp
        return one
    batched = ask(lambda: private.vmap_level(value), None)
    if batched is not None:
        one.reason = Phrase("recording.missing.vmap", level=batched)
    elif device.type in ("cpu", "meta"):
        one.reason = Phrase("recording.missing.device", device="meta") if device.type == "meta" else _LAYOUT
    else:
        one.data, one.strides, one.reason = memory.copied_from_device(value, level != VALUES)
    return one


@hands_over
def _sizes(value: Any) -> tuple[int, ...]:
    return tuple([n if type(n) is int else -1 for n in SHAPE_OF(value)])


def _of_subclass(value: Any) -> TensorSnapshot:
    """Describe a tensor of a subclass by what torch says of it; its elements are its own business."""
    with private.disable_torch_function():
        name = name_of(type(value))
        return TensorSnapshot(
            name, ask(lambda: _sizes(value), None), DTYPE_OF(value), ask(lambda: DEVICE_OF(value), _CPU),
            ask(lambda: REQUIRES_GRAD_OF(value), False), None, None, id(value), 0, 0, 0,
            reason=Phrase("recording.missing.subclass", type=name),
        )  # fmt: skip


_LITERALS = frozenset({int, float, bool})
_SAFE = _LITERALS | {complex, bytes, str, torch.Size, torch.dtype, torch.device, range, type(None)}
_LONGEST = 120  # characters of a text
_MOST_SHOWN = 4  # items of a container

NEEDS_GRADIENT = "<Tensor requires_grad>"


def safe_repr(value: Any, depth: int = 2) -> str:
    """Return a short text for anything, without running a ``__repr__`` of the user's."""
    kind = type(value)
    if kind in _LITERALS:
        return repr(value)
    if kind in _SAFE:
        text = repr(value[:100]) if kind is str or kind is bytes else repr(value)
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    if issubclass(kind, torch.Tensor):
        with private.disable_torch_function():
            return NEEDS_GRADIENT if REQUIRES_GRAD_OF(value) else f"<{name_of(kind)}>"
    if kind is slice:
        inside = ", ".join(safe_repr(item, 0) for item in (value.start, value.stop, value.step))
        return f"slice({inside})"
    if kind in (tuple, list) and depth:
        inside = ", ".join(safe_repr(item, depth - 1) for item in value[:_MOST_SHOWN])
        inside += ", …" if len(value) > _MOST_SHOWN else ""
        return f"({inside})" if kind is tuple else f"[{inside}]"
    if kind is dict and depth:
        items = islice(value.items(), _MOST_SHOWN)
        shown = [f"{safe_repr(k, 0)}: {safe_repr(v, depth - 1)}" for k, v in items]
        return "{" + ", ".join(shown) + (", …" if len(value) > _MOST_SHOWN else "") + "}"
    if kind is np.ndarray:
        return f"<ndarray {value.dtype} {'×'.join(map(str, value.shape))}>"
    named = kind in (FunctionType, BuiltinFunctionType, type)
    return f"<{name_of(kind)} {value.__name__}>" if named else f"<{name_of(kind)}>"


_ARGUMENTS = vars(BaseException)["args"].__get__
_FILENAME = vars(OSError)["filename"].__get__


def safe_text(error: BaseException) -> str:
    """Return the text of an exception, without running a ``__str__`` or ``__repr__`` of the user's."""
    kind, arguments = type(error), _ARGUMENTS(error)
    parts = (*arguments, _FILENAME(error)) if issubclass(kind, OSError) else arguments
    if type(kind.__str__) is WrapperDescriptorType and all(type(one) in _SAFE for one in parts):
        return stumbles.said(error) if arguments else ""
    return ", ".join(one if type(one) is str else safe_repr(one) for one in arguments)
