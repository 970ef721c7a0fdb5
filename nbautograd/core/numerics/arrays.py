"""Tensors as the checker counts: real numbers in float64 numpy arrays, complex ones as pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]


def real_shape(tensor: Tensor) -> tuple[int, ...]:
    """Return the tensor's shape; with a dimension of size 2 (real, imaginary) at the end when it is complex."""
    return (*tensor.shape, 2) if tensor.is_complex() else tuple(tensor.shape)


def real_size(tensor: Tensor) -> int:
    """Return the number of real numbers in a tensor."""
    return math.prod(real_shape(tensor))


def to_real(tensor: Tensor) -> Tensor:
    """Return the tensor detached, dense and real (complex as pairs), in its own precision."""
    flat = tensor.detach()
    if flat.layout is not torch.strided:
        flat = flat.to_dense()
    return torch.view_as_real(flat.resolve_conj().resolve_neg()) if flat.is_complex() else flat


def to_array(tensor: Tensor) -> Array:
    """Return the tensor's real numbers as a new float64 array of shape ``real_shape``."""
    array = as_array(to_real(tensor))
    return array.copy() if tensor.dtype in (torch.float64, torch.complex128) else array


def as_array(tensor: Tensor) -> Array:
    """Return a real tensor as a float64 array, which may share its memory."""
    array: Array = tensor.to("cpu", torch.float64).numpy(force=True)
    return array


def from_array(array: Array, like: Tensor) -> Tensor:
    """Return real numbers shaped ``real_shape``, after batch dimensions if any, as a tensor like one."""
    dtype = like.dtype.to_real() if like.is_complex() else like.dtype
    own = np.array(array, order="C")  # a backward may write into what it is given, and the array is still to be read
    tensor = torch.from_numpy(own).to(like.device, dtype)
    return torch.complex(tensor[..., 0], tensor[..., 1]) if like.is_complex() else tensor


def epsilon(tensor: Tensor) -> float:
    """Return the spacing of the floating numbers of this tensor's dtype at 1."""
    return float(torch.finfo(tensor.dtype).eps)
