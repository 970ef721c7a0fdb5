"""A Function's own ``vmap``: batches along any dimension must come out as the items do one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import pytrees
from nbautograd.core.checking import phrases
from nbautograd.core.checking.backward_call import gradient_tolerance
from nbautograd.core.checking.other_points import nearby_inputs
from nbautograd.core.checking.problem import Outputs, Problem, own_method
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import hands_over, is_ours

SIZE = 3  # items of a batch; not 2, so that an item taken for a pair of something is seen
SEEDS = range(71, 71 + SIZE)  # of the values of the items

Dims = tuple[int | None, ...]


def vmap_rule(problem: Problem, outputs: Outputs) -> Iterator[Finding]:
    """Yield a finding where ``torch.vmap`` of the Function is not the stack of its items, or raises.

    All inputs that require grad are batched together, then each alone; along the first dimension, then the last.
    """
    if not problem.direct or not own_method(problem.cls, "vmap"):
        return
    line = phrases.method_line(problem, "vmap")
    points = [nearby_inputs(problem, problem.seed + seed) for seed in SEEDS]
    for dims in _in_dims(problem):
        items = [_chosen(problem, dims, point) for point in points]
        with torch.no_grad():
            expected = [torch.stack(each) for each in zip(*(problem.evaluate(item) for item in items), strict=True)]
            try:
                found = _batched(problem, dims, items)
            except Exception as error:
                if is_ours(error):
                    raise
                said = phrases.short(str(error), 120)
                yield phrases.about(problem, "vmap_raises", line, said=said, in_dims=str(dims))
                return
        rel = gradient_tolerance(outputs, problem.inputs)
        pairs = zip(found, expected, strict=True)
        if len(found) != len(expected) or not all(a.shape == b.shape and agree_relative(a, b, rel) for a, b in pairs):
            yield phrases.about(problem, "vmap_wrong", line, in_dims=str(dims))
            return


def _in_dims(problem: Problem) -> Iterator[Dims]:
    """Yield which inputs are batched, and along which dimension."""
    moved = problem.differentiable
    groups = [moved, *([(i,) for i in moved] if len(moved) > 1 else [])]
    for group in groups:
        for last in (False, True):
            yield tuple(
                None if i not in group else problem.inputs[i].dim() if last else 0 for i in range(len(problem.inputs))
            )


def _chosen(problem: Problem, dims: Dims, point: Sequence[Any]) -> tuple[Any, ...]:
    """Return the inputs, those that are batched at this point, the others as they are."""
    here = problem.fresh()
    taken = (p if dim is not None else x for p, x, dim in zip(point, here, dims, strict=True))
    return tuple(x.detach() if isinstance(x, Tensor) else x for x in taken)


@hands_over
def _batched(problem: Problem, dims: Dims, items: Sequence[tuple[Any, ...]]) -> tuple[Tensor, ...]:
    """Return the outputs of one call for all items, these stacked along the dimensions given."""
    columns = zip(zip(*items, strict=True), dims, strict=True)
    given = [column[0] if dim is None else torch.stack(column, dim) for column, dim in columns]
    return tuple(torch.vmap(lambda *args: tuple(pytrees.tensors(problem.fn(*args))), in_dims=dims)(*given))
