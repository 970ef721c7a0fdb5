"""Layouts: the same values as they lie in memory elsewhere, for inputs and for grad_outputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.checking.other_points import expanded, stacked, strided
from nbautograd.core.checking.point import Point
from nbautograd.core.checking.problem import Problem
from nbautograd.core.kernel.golden import copied, readable
from nbautograd.core.kernel.sweep import Case, partitions
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import users_errors
from nbautograd.errors import CallError

ALIKE = 0.05  # relative: slices that are the same but for rounding in the lowest precision
OFFSET = 3  # elements before the first: no kernel's vector of four begins there


def transposed(v: Tensor) -> Tensor:
    """Return the same values with the last two dimensions exchanged in memory."""
    return v.transpose(-1, -2).contiguous().transpose(-1, -2) if v.dim() > 1 else strided(v)


def offset(v: Tensor) -> Tensor:
    """Return the same values behind others in one storage, as the later rows of a batch."""
    memory = torch.ones(OFFSET + v.numel(), dtype=v.dtype, device=v.device)
    return memory[OFFSET:].view(v.shape).copy_(v)


def channels_last(v: Tensor) -> Tensor:
    """Return the same values with the second dimension innermost in memory, as images have their channels."""
    return v.movedim(1, -1).contiguous().movedim(-1, 1) if v.dim() > 2 else v


def expanded_rows(v: Tensor) -> Tensor:
    """Return the first slice of a tensor seen at all indices of its first dimension."""
    return v[:1].expand(v.shape) if v.dim() > 1 and v.shape[0] else v


def beside_others(v: Tensor) -> Tensor:
    """Return the same values as a slice of a tensor twice as wide."""
    return torch.cat((v, v), -1)[..., : v.shape[-1]] if v.dim() else v


def fused(reference: Problem) -> tuple[Any, ...]:
    """Return the inputs as slices of one tensor, as one linear layer returns queries, keys and values.

    What has no other of its kind is a slice beside something else, so that its rows have gaps.
    """
    inputs = list(reference.fresh())
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for k in reference.differentiable:
        x = inputs[k]
        if x.dim() > 1 and x.numel():
            kinds.setdefault((x.dtype, x.device, x.shape[:-1]), []).append(k)
    for several in kinds.values():
        parts = [inputs[k].detach() for k in several]
        whole = torch.cat(parts if len(parts) > 1 else parts * 2, -1)
        slices = whole.split([x.shape[-1] for x in parts] + [parts[0].shape[-1]] * (len(parts) == 1), -1)
        for k, one in zip(several, slices, strict=False):
            inputs[k] = one.detach().requires_grad_()
    return tuple(inputs)


# Of one tensor each, but slices of one fused tensor, which are of all inputs at once. A grad_output is one number
# everywhere where a sum follows, and a slice where its output was concatenated.
INPUTS: dict[str, Callable[[Tensor], Tensor] | None] = {
    "strided": strided,
    "transposed": transposed,
    "alternating": transposed,
    "expanded": expanded_rows,
    "fused": None,
    "offset": offset,
    "channels_last": channels_last,
}
GRADS: dict[str, Callable[[Tensor], Tensor]] = {
    "grad_expanded": expanded,
    "grad_strided": strided,
    "grad_transposed": transposed,
    "grad_fused": beside_others,
    "grad_offset": offset,
    "grad_channels_last": channels_last,
}
# What the sweep tries where nobody says which. "all" is all, and each of the inputs with each of the grad_outputs.
USUAL = (
    "strided",
    "transposed",
    "alternating",
    "expanded",
    "fused",
    "stacked",
    "grad_expanded",
    "grad_strided",
    "grad_transposed",
)
STACKED = "stacked"  # one more dimension in front


def layout_cases(reference: Problem, layouts: str | Sequence[str] | None = None) -> Iterator[Case]:
    """Yield the inputs, the grad_outputs, and with "all" both at once, in other memory layouts.

    Raises:
        CallError: there is no such layout, or one that was named is none for these tensors.
    """
    every, asked = layouts == "all", layouts is not None
    named = USUAL if layouts is None else [layouts] if isinstance(layouts, str) else layouts
    names = (*INPUTS, STACKED, *GRADS) if every else named
    unknown = [name for name in names if name not in INPUTS and name not in GRADS and name != STACKED]
    if unknown:
        known = ", ".join((*INPUTS, STACKED, *GRADS))
        raise CallError("compare.layout_unknown", given=", ".join(unknown), known=known)
    laid = {name: laid_out(reference, name) for name in INPUTS if name in names}
    changed = {name: inputs for name, inputs in laid.items() if _otherwise(inputs, reference.inputs)}
    plain = [torch.empty(y.shape, dtype=y.dtype) for y in reference.call() if y.requires_grad]
    grads = [name for name in GRADS if name in names and _otherwise([GRADS[name](g) for g in plain], plain)]
    deeper = one_more_dimension(reference) if STACKED in names else None
    absent = {*names} - {*changed, *grads} - ({STACKED} if deeper else set())
    if absent and asked and not every:
        raise CallError("compare.layout_unfit", given=", ".join(sorted(absent)))
    for name, inputs in changed.items():
        yield Case(inputs, name, layouts=(name,), asked=asked)
    if deeper is not None:
        yield Case(deeper, STACKED, asked=asked)
    for name in grads:
        yield Case(reference.inputs, name, layouts=(name,), arrange=GRADS[name], asked=asked)
    for (name, inputs), grad in itertools.product(changed.items() if every else (), grads):
        yield Case(inputs, f"{name} {grad}", layouts=(name, grad), arrange=GRADS[grad], asked=asked)


def laid_out(reference: Problem, layout: str) -> tuple[Any, ...]:
    """Return the inputs in a memory layout."""
    change = INPUTS[layout]
    if change is None:
        return fused(reference)
    # one in order beside one that is not: a kernel may take the strides of the first for those of all
    which = reference.differentiable[1::2] if layout == "alternating" else reference.differentiable
    return reference.changed_inputs(change, which)


def _otherwise(inputs: Sequence[Any], before: Sequence[Any]) -> bool:
    pairs = [(a, b) for a, b in zip(inputs, before, strict=True) if readable(a)]
    return any(_place(a) != _place(b) for a, b in pairs)


def _place(v: Tensor) -> tuple[object, ...]:
    """Return where entries lie in memory; along a dimension of one entry there is no stride to speak of."""
    return v.storage_offset(), *(step for step, size in zip(v.stride(), v.shape, strict=True) if size > 1)


def one_more_dimension(reference: Problem) -> tuple[Any, ...] | None:
    """Return the inputs with one more dimension in front, as many of them as the reference takes; None for none.

    Each slice of the outputs is to be what the reference gives of the slices: where it broadcasts what was left as it
    was, or sums over another dimension then, it is a batch of nothing. What is cut into pieces along its first
    dimension has another first one then.
    """
    if partitions(reference.inputs):
        return None
    given = reference.fresh()
    ranks = {k: x.dim() for k, x in enumerate(given) if isinstance(x, Tensor)}
    highest = tuple(k for k in reference.differentiable if ranks[k] == max(ranks[i] for i in reference.differentiable))
    rows = given[highest[0]].shape[:1] if highest else ()
    of_rows = tuple(k for k in ranks if given[k].shape[:1] == rows)
    for which in dict.fromkeys((of_rows, highest, tuple(ranks), highest[:1])):
        inputs = tuple(stacked(x, 2) if k in which else x for k, x in enumerate(reference.fresh()))
        if Point(reference, inputs).works and _a_batch(reference, inputs, which):
            return inputs
    return None


def _a_batch(reference: Problem, inputs: tuple[Any, ...], which: Sequence[int]) -> bool:
    same = []
    with users_errors() as guard:  # a reference may refuse a slice that it takes in a batch
        both = reference.call(copied(inputs))
        for k in range(2):
            alone = reference.call(copied([x[k] if i in which else x for i, x in enumerate(inputs)]))
            same.append([y.shape for y in both] == [(2, *y.shape) for y in alone])
            same += [
                agree_relative(y[k].detach(), z.detach(), ALIKE) for y, z in zip(both, alone, strict=True) if same[-1]
            ]
    return not guard.failed and all(same)
