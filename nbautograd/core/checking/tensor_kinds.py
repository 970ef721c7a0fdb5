"""Kinds of tensors whose entries no check can read or move one by one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from nbautograd.errors import InputError

NARROW = 8  # bits of a floating number: torch computes next to nothing in so few


def unreadable_kind(tensor: Tensor) -> str | None:
    """Return the kind of a tensor whose entries cannot be read and moved one by one; None for an ordinary one.

    Args:
        tensor: any tensor.

    Returns:
        ``"nested"``, ``"jagged"``, ``"sparse"``, ``"mkldnn"``, ``"quantised"``, ``"subclass"`` (one with a
        ``__torch_dispatch__`` of its own), ``"float8"``, ``"chalf"`` or ``"meta"``.

    Example:
        >>> import torch
        >>> from nbautograd.core.checking.tensor_kinds import unreadable_kind
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


def refuse_input(tensor: Tensor, position: int) -> None:
    """Raise a sentence for an input of an unreadable kind.

    Raises:
        InputError: with what can be checked in its place.
    """
    kind = unreadable_kind(tensor)
    if kind is not None:
        raise InputError(f"checking.{kind}", position=position, type=type(tensor).__name__, dtype=str(tensor.dtype))


def refuse_outputs(outputs: Sequence[Tensor]) -> None:
    """Raise a sentence for the first output of an unreadable kind.

    Raises:
        InputError: with what can be checked in its place.
    """
    for position, output in enumerate(outputs):
        kind = unreadable_kind(output)
        if kind is not None:
            about = {"position": position, "type": type(output).__name__, "dtype": str(output.dtype)}
            raise InputError(f"checking.output_{kind}", **about)
