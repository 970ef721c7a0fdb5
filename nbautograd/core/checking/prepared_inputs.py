"""Inputs made safe to check: copies of them, and a sentence for what cannot be checked."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.migration import recognise
from nbautograd.errors import CallError, InputError

_CONTAINERS = (list, tuple, set, dict, collections.OrderedDict, collections.defaultdict)
DOUBLE = (torch.float64, torch.complex128)
NARROW = 8  # bits of a floating number: torch computes next to nothing in so few


def unreadable_kind(tensor: Tensor) -> str | None:
    """Return the kind of a tensor whose entries cannot be read and moved one by one; None for an ordinary one.

    Returns:
        ``"nested"``, ``"jagged"``, ``"sparse"``, ``"mkldnn"``, ``"quantised"``, ``"subclass"`` (one with a
        ``__torch_dispatch__`` of its own), ``"float8"``, ``"chalf"`` or ``"meta"``.

    Example:
        >>> import torch
        >>> from nbautograd.core.checking.prepared_inputs import unreadable_kind
        >>> unreadable_kind(torch.eye(2).to_sparse()), unreadable_kind(torch.eye(2))
        ('sparse', None)
    """
    if tensor.is_nested:
        return "jagged" if tensor.layout is torch.jagged else "nested"
    if type(tensor).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return "subclass"
    if tensor.layout is not torch.strided:
        return "mkldnn" if tensor.is_mkldnn else "sparse"
    if tensor.is_quantized:
        return "quantised"
    if tensor.device.type == "meta":
        return "meta"
    if tensor.dtype is torch.complex32:
        return "chalf"
    return "float8" if tensor.is_floating_point() and tensor.itemsize * 8 <= NARROW else None


# an output of which kind -> what gives its contents
CONTENTS = {
    **dict.fromkeys(("sparse", "mkldnn"), ".to_dense()"),
    "nested": ".to_padded_tensor(0.0)",
    "jagged": ".values()",
    "float8": ".float()",
    "chalf": ".to(torch.complex64)",
}


def refuse_unreadable(tensors: Iterable[tuple[int, Tensor]], sentences: str = "") -> None:
    """Raise a sentence for the first tensor of an unreadable kind.

    Args:
        tensors: with their positions.
        sentences: how the ids of the sentences begin, empty for inputs.

    Raises:
        InputError: with what can be checked in its place.
    """
    for position, tensor in tensors:
        kind = unreadable_kind(tensor)
        if kind is not None:
            about = {"position": position, "type": type(tensor).__name__, "dtype": str(tensor.dtype)}
            if sentences and kind in CONTENTS:
                raise InputError("checking.output", kind=kind, unwrap=CONTENTS[kind], **about)
            if kind in ("float8", "chalf"):
                raise InputError("checking.float8", unwrap=CONTENTS[kind], **about)
            raise InputError(f"checking.{sentences}{kind}", **about)


def callable_of(fn: Any) -> Callable[..., Any]:
    """Return the callable: ``fn`` itself, or ``apply`` of a Function class.

    Raises:
        CallError: when ``fn`` cannot be called, is a Function class in the style of old torch, or an object of a
            Function.
    """
    if isinstance(fn, type) and issubclass(fn, torch.autograd.Function):
        if recognise(fn) is not None:
            raise CallError("checking.legacy", name=fn.__name__)
        return fn.apply
    if isinstance(fn, torch.autograd.Function):
        sentence = "checking.function_object" if recognise(type(fn)) is None else "checking.legacy"
        raise CallError(sentence, name=type(fn).__name__)
    if not callable(fn):
        raise CallError("checking.not_callable", type=type(fn).__name__)
    return fn  # type: ignore[no-any-return]


def prepare(inputs: Any, assume_grad: bool = False) -> tuple[Any, ...]:
    """Return detached copies of the inputs, strides kept, requiring grad where the caller's do.

    A single tensor counts as a tuple of one. An input whose elements overlap in memory (``expand``) becomes a
    contiguous copy, since a change of one of its entries would change others.

    Args:
        inputs: as the caller wrote them.
        assume_grad: where none requires grad, all floating ones do, but for those that look like a mask.

    Raises:
        CallError: when the inputs are no sequence.
        InputError: when nothing in them can be differentiated, one of an unreadable kind should be, or there is no
            room for a copy of an expanded one.
    """
    if isinstance(inputs, Tensor):
        inputs = (inputs,)
    if isinstance(inputs, (str, bytes, Mapping)) or not isinstance(inputs, Sequence):
        raise CallError("checking.inputs_not_tuple", type=type(inputs).__name__)
    assumed = frozenset[int]()
    if assume_grad and not any(map(is_differentiable, inputs)):
        floating = frozenset(i for i, item in enumerate(inputs) if is_floating(item))
        assumed = frozenset(i for i in floating if not looks_like_a_mask(inputs[i])) or floating
    _refuse(inputs, assumed)
    return tuple(copy(item, True if i in assumed else None) for i, item in enumerate(inputs))


def looks_like_a_mask(tensor: Tensor) -> bool:
    """Return True for a floating tensor that holds 0 and 1, both of them, and nothing else.

    Nothing but ones, or zeros, are first of all what weights and biases begin with.
    """
    if unreadable_kind(tensor) is not None:
        return False
    zeros, ones = tensor == 0, tensor == 1
    return bool(zeros.any()) and bool(ones.any()) and bool((zeros | ones).all())


def copy(item: Any, requires_grad: bool | None = None) -> Any:
    """Return a detached copy of a tensor with its strides, also inside a plain container; anything else as it is.

    A call may take entries out of a dict that it is given, or write into the tensors of a list: the next gets them all.
    """
    if isinstance(item, dict) and type(item) in _CONTAINERS:
        made = item.copy()
        made.update((key, copy(value)) for key, value in item.items())
        return made
    if type(item) in _CONTAINERS:
        return type(item)(map(copy, item))
    if not isinstance(item, Tensor):
        return item
    if unreadable_kind(item) is not None:
        return item  # one that requires grad is refused before
    keep = item.requires_grad if requires_grad is None else requires_grad
    fresh = _copied(item.detach())
    return fresh.requires_grad_() if keep else fresh  # under vmap it is refused, of what is in a list too


def _copied(item: Tensor) -> Tensor:
    if item.layout is not torch.strided or item.is_contiguous() or type(item) is not Tensor:
        return item.clone()
    if _overlaps(item):
        try:
            return item.clone(memory_format=torch.contiguous_format)
        except RuntimeError:  # no room for what ``expand`` made of little
            raise InputError("checking.expanded_too_large", shape=str(tuple(item.shape))) from None
    return torch.empty_strided(item.shape, item.stride(), dtype=item.dtype, device=item.device).copy_(item)


def _overlaps(item: Tensor) -> bool:
    """Return True where elements may share memory: a stride is smaller than the span of the dimensions below."""
    span = 0
    for stride, size in sorted((st, n) for n, st in zip(item.shape, item.stride(), strict=True) if n > 1):
        if stride <= span:
            return True
        span += stride * (size - 1)
    return False


def in_double(item: Any) -> Any:
    """Return a tensor of real or complex numbers in double precision; anything else, and one that is so, as it is."""
    if not is_floating(item) or item.dtype in DOUBLE or unreadable_kind(item) is not None:
        return item
    wide = torch.complex128 if item.is_complex() else torch.float64
    return item.detach().to(wide).requires_grad_(item.requires_grad)


def is_floating(item: Any) -> bool:
    """Return True for a floating or complex tensor."""
    return isinstance(item, Tensor) and (item.is_floating_point() or item.is_complex())


def is_differentiable(item: Any) -> bool:
    """Return True for a floating or complex tensor that requires grad."""
    return is_floating(item) and bool(item.requires_grad)


def _refuse(inputs: Sequence[Any], assumed: frozenset[int]) -> None:
    tensors = [(i, item) for i, item in enumerate(inputs) if isinstance(item, Tensor)]
    moved = [(i, item) for i, item in tensors if i in assumed or is_differentiable(item)]
    refuse_unreadable(moved or [(i, item) for i, item in tensors if item.is_quantized])
    if moved:
        return
    if not tensors:
        raise InputError("checking.no_tensors", count=len(inputs))
    raise InputError("checking.integers_only", dtype=str(tensors[0][1].dtype).removeprefix("torch."))
