"""Rows of the analytical Jacobian: many cotangents through backward at once where that works, else one by one."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from torch import Tensor

from nbautograd.core.checking.backward_call import on_a_graph
from nbautograd.core.checking.budget import allowed_elements
from nbautograd.core.checking.jacobian.forward_values import forward_without_autograd
from nbautograd.core.checking.problem import Outputs, Problem, functions_of
from nbautograd.core.checking.progress import Progress
from nbautograd.core.numerics.arrays import (
    Array,
    as_array,
    from_array,
    real_shape,
    real_size,
    to_array,
    to_real,
)
from nbautograd.core.numerics.compare import agree_within_rounding
from nbautograd.core.stumbles import RAISED, is_ours, users_errors
from nbautograd.core.torch_private.tensors import gradients, vmap

LOOPED_COTANGENTS = 4  # up to so many cotangents a loop is faster than a batch
SAME_VALUES = 1e-6  # relative, by element: what an output of forward may differ by from that of apply
BATCH_ELEMENTS = 2_000_000  # elements that one batch of cotangents and gradients may hold


class Rows:
    """The vjp of one output with respect to several leaves, asked for many cotangents.

    Args:
        outputs: of the call that the output is of, which is made anew for a backward that runs once for each.

    Attributes:
        batched: False once backward turned out not to work for many cotangents at once.
        error: what a plain backward raised, or None.
    """

    def __init__(
        self,
        problem: Problem,
        output: Tensor,
        leaves: Sequence[Tensor],
        progress: Progress | None = None,
        outputs: Outputs | None = None,
    ) -> None:
        self.problem, self.outputs = problem, outputs
        self.progress, self.meter = progress or Progress(), problem.meter
        self._drawing = functools.partial(problem.numbers.run, problem.seed, "backward")
        self.output, self.leaves = output, list(leaves)
        self.batched = True
        self.error: BaseException | None = None

    def one(self, cotangent: Array, watch: AbstractContextManager[None] | None = None) -> list[Array]:
        """Return the vjps (float64, shaped ``real_shape``) of all leaves for one cotangent, by one plain backward."""
        self.meter.count()
        v = from_array(cotangent, self.output)
        try:
            with watch or contextlib.nullcontext():
                vjps = self._run(v)
        except RAISED as error:
            self.error = None if is_ours(error) else error
            raise
        return [np.zeros(real_shape(x)) if g is None else to_array(g) for g, x in zip(vjps, self.leaves, strict=True)]

    def _run(self, v: Tensor) -> Sequence[Tensor | None]:
        def run(output: Tensor, leaves: Sequence[Tensor]) -> Sequence[Tensor | None]:
            return self._drawing(lambda: gradients([output], leaves, [v]))

        if self.outputs is None:
            return run(self.output, self.leaves)
        which = [y is self.output for y in self.outputs].index(True)
        inputs = self.problem.differentiable
        return on_a_graph(self.problem, self.outputs, lambda y: run(y[which], [y.inputs[i] for i in inputs]))

    def many(self, cotangents: Array) -> list[Array]:
        """Return the vjps of all leaves, each shaped (number of cotangents, *real_shape)."""
        each = real_size(self.output) + sum(map(real_size, self.leaves))
        step = max(1, allowed_elements(BATCH_ELEMENTS) // max(1, each))
        batches: list[list[Array]] = []
        for start in range(0, len(cotangents), step):
            batch = cotangents[start : start + step]
            if self.batched and len(batch) > LOOPED_COTANGENTS:
                with users_errors():
                    batches.append(self._vmapped(batch))
                    self.progress.tick(len(batch))
                    continue
                self.batched = False  # no batching rule, random numbers, numpy, writes into plain buffers, ...
            for cotangent in batch:
                batches.append([vjp[None] for vjp in self.one(cotangent)])
                self.progress.tick()
        return [np.concatenate(column) for column in zip(*batches, strict=True)]

    def _vmapped(self, cotangents: Array) -> list[Array]:
        used: list[bool] = []

        def backward(cotangent: Tensor) -> tuple[Tensor, ...]:
            vjps = gradients([self.output], self.leaves, [cotangent])
            used[:] = [g is not None for g in vjps]
            return tuple(g for g in vjps if g is not None)

        self.meter.count()
        tensors = from_array(cotangents, self.output).reshape(-1, *self.output.shape)
        try:
            results = iter(self._drawing(functools.partial(vmap, backward, 0, tensors)))
        finally:  # what backward wrote into a ``.grad`` cannot be read any more
            self.problem.shared.put_back_gradients()
        count = len(cotangents)
        return [
            as_array(to_real(next(results))) if there else np.zeros((count, *real_shape(leaf)))
            for leaf, there in zip(self.leaves, used, strict=True)
        ]


def rows_of_forward(problem: Problem, outputs: Outputs, wanted: Sequence[int]) -> tuple[list[Rows | None], str]:
    """Return the vjps of outputs by autograd of the forward itself, or the reason why there are none.

    Args:
        problem: what is checked; a session of it must be open.
        wanted: positions of the outputs.

    Returns:
        For each output wanted its rows, None where autograd loses track of it; and the end of a message id, which is
        empty where there are rows.
    """
    raw = forward_without_autograd(problem) if problem.cls is not None else None
    if raw is None:
        return [], "no_own_forward" if problem.cls is None else "not_entered"
    given = problem.fresh()
    problem.numbers.seed(problem.seed)
    with users_errors() as guard:
        found = raw(*given)
    if guard.failed:
        return [], "raised"
    if functions_of([t for t in found if isinstance(t, Tensor)]):
        return [], "not_entered"
    if len(found) != len(outputs) or not all(_same_output(found[i], outputs[i]) for i in wanted):
        return [], "other_values"
    leaves = [given[i] for i in problem.differentiable]
    rows = [Rows(problem, found[i], leaves) if found[i].requires_grad else None for i in wanted]
    return rows, "" if any(rows) else "leaves_torch"


def _same_output(own: Any, applied: Tensor) -> bool:
    if not isinstance(own, Tensor) or real_shape(own) != real_shape(applied):
        return False
    return agree_within_rounding(as_array(to_real(applied)), as_array(to_real(own)), SAME_VALUES, floor=0.0)
