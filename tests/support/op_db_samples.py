"""torch's own samples of its operators, as functions of the tensors to differentiate alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch

INPUTS, OUTPUTS = 600, 1800  # elements; larger samples are left out


def samples(per_op: int) -> Iterator[tuple[str, Callable[..., Any], tuple[torch.Tensor, ...]]]:
    """Name, function and inputs of the first few float64 samples of every differentiable operator."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if torch.float64 not in op.supported_backward_dtypes("cpu") or op.name.startswith("as_strided"):
            continue
        torch.manual_seed(0)
        try:
            found = list(itertools.islice(op.sample_inputs("cpu", torch.float64, requires_grad=True), 4 * per_op))
        except Exception:  # an operator whose samples need what is not installed
            continue
        fitting = (_sample(op, sample) for sample in found)
        for fn, inputs in itertools.islice((s for s in fitting if s is not None), per_op):
            yield f"{op.name} {op.variant_test_name}".strip(), fn, inputs


def _sample(op: Any, sample: Any) -> tuple[Callable[..., Any], tuple[torch.Tensor, ...]] | None:
    leaves: list[torch.Tensor] = []
    arguments = [_filled(a, leaves) for a in (sample.input, *sample.args)]
    named = {name: _filled(a, leaves) for name, a in sample.kwargs.items()}

    def fn(*tensors):
        result = op(*(a(tensors) for a in arguments), **{name: a(tensors) for name, a in named.items()})
        return sample.output_process_fn_grad(result)

    return (fn, tuple(leaves)) if _fits(fn, leaves) else None


def _filled(value: Any, leaves: list[torch.Tensor]) -> Callable[[Any], Any]:
    """A function that gives the value with its differentiable tensors taken from the given ones."""
    if isinstance(value, torch.Tensor) and value.requires_grad and value.is_floating_point():
        leaves.append(value)
        number = len(leaves) - 1
        return lambda tensors: tensors[number]
    if type(value) in (list, tuple):
        parts = [_filled(item, leaves) for item in value]
        return lambda tensors: type(value)(part(tensors) for part in parts)
    return lambda tensors: value


def _fits(fn: Callable[..., Any], leaves: list[torch.Tensor]) -> bool:
    if not leaves or sum(t.numel() for t in leaves) > INPUTS or any(t.layout is not torch.strided for t in leaves):
        return False
    try:
        result = fn(*leaves)
    except Exception:  # a sample that needs another machine
        return False
    outputs = [t for t in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(t, torch.Tensor)]
    if any(t.dtype is torch.complex32 for t in outputs):  # refused with a sentence
        return False
    return all(t.layout is torch.strided for t in outputs) and sum(t.numel() for t in outputs) <= OUTPUTS
