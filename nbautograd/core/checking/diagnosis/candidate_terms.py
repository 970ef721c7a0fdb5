"""What is at hand to explain a wrong gradient: inputs, outputs, saved tensors and numbers, with their names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.backward_call import own_node, tensors_on_ctx
from nbautograd.core.checking.diagnosis.evidence import Named, Terms
from nbautograd.core.checking.problem import Problem

LARGEST = 100_000  # number that an index may hold to be counted


def tensors(subject: Problem, outputs: Sequence[Tensor]) -> tuple[Named, ...]:
    """Inputs, outputs and what ctx holds, as arrays with names; each tensor once."""
    named = [Named(subject.input_names[i], "input", array(t), i) for i, t in _tensors(subject.inputs)]
    named += [Named(subject.output_names[k], "output", array(t), k) for k, t in _tensors(outputs)]
    known = [(n.values.shape, n.values.tobytes()) for n in named]
    for name, tensor in tensors_on_ctx(subject, own_node(subject, outputs)):
        values = array(tensor)
        if (values.shape, values.tobytes()) not in known and values.dtype.kind in "fbi":
            named.append(Named(name, "saved", values))
    return tuple(n for n in named if n.values.ndim)


def terms(subject: Problem, outputs: Sequence[Tensor]) -> Terms:
    """Return what a factor, a term or a threshold may be made of, at these outputs and the inputs of their call."""
    named = tensors(subject, outputs)
    return Terms((*named, *_counts(named)), scalars(subject, outputs), _constants(subject))


def _constants(subject: Problem) -> tuple[float, ...]:
    """Numbers in the code of forward and backward."""
    if subject.cls is None:
        return ()
    methods = (inspect.unwrap(getattr(subject.cls, name)) for name in ("forward", "backward"))
    codes = (getattr(method, "__code__", None) for method in methods)
    found = (c for code in codes if code is not None for c in code.co_consts)
    return tuple(dict.fromkeys(c for c in found if isinstance(c, (int, float)) and not isinstance(c, bool)))


def _counts(named: Sequence[Named]) -> Iterator[Named]:
    """How many elements there are of each kind: by an index, and of a mask along each of its dimensions."""
    for tensor in named:
        values = tensor.values
        if tensor.role == "output":
            continue
        if (
            values.dtype.kind == "i"
            and values.ndim == 1
            and values.size
            and 0 <= values.min() <= values.max() < LARGEST
        ):
            yield Named(f"torch.bincount({tensor.name})", "count", np.bincount(values))
        if is_mask(values):
            for dim in range(values.ndim) if values.ndim > 1 else ():
                yield Named(f"{tensor.name}.sum({dim})", "count", values.sum(dim).astype(int))


def is_mask(values: Any) -> bool:
    """Whether an array says of each element yes or no."""
    return bool(values.dtype.kind == "b" or (values.size and np.isin(values, (0, 1)).all()))


def scalars(subject: Problem, outputs: Sequence[Tensor]) -> dict[str, float]:
    """Numbers that a constant may be: arguments that are no tensors, numbers and scalar tensors on ctx."""
    found: dict[str, float] = {}
    for i, item in enumerate(subject.inputs):
        if _is_number(item) or _is_scalar(item):
            found[subject.input_names[i]] = float(item)
    node = own_node(subject, outputs)
    for name, value in vars(node).items() if node is not None else ():
        if _is_number(value):
            found[f"ctx.{name}"] = float(value)
    for name, tensor in tensors_on_ctx(subject, node):
        if _is_scalar(tensor):
            found[name] = float(tensor)
    return found


def array(tensor: Tensor) -> Any:
    """The values of a tensor as a numpy array of doubles or integers; complex as a last dimension of 2."""
    plain = tensor.detach().cpu()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    if plain.is_floating_point():
        plain = plain.double()
    return plain.contiguous().numpy().copy()


def _tensors(items: Sequence[Any]) -> Iterator[tuple[int, Tensor]]:
    return ((i, t) for i, t in enumerate(items) if isinstance(t, Tensor) and t.layout is torch.strided)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() == 1 and value.is_floating_point()
