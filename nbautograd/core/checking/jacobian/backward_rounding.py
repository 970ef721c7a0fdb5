"""The rounding of backward itself, which a disagreement may be no more than: an ill-conditioned solve loses digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.jacobian.assembly import Assembly
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.checking.jacobian.structure import pull_back
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.arrays import Array, from_array, to_array

LARGEST_RIGHT = 1e-9  # a smaller difference, beside the largest entry or 1, is right where it is rounding
ROUNDINGS = 8  # last bits of the largest entry that one beside it may be off by, where its terms cancel
LARGEST_ROUNDING = 0.02  # a larger one is no rounding; one between them cannot be told from it
MOVED = 20  # times what a few last bits of the inputs move: an error no larger than this may be rounding
ULPS = (1.0, -2.0, 3.0, -5.0)  # last bits by which inputs move: to both sides, near and a little farther


def only_rounding(assembly: Assembly, ij: tuple[int, int], matrices: Matrices) -> bool | None:
    """Compare backward's error with how far it moves when the inputs move by a few last bits.

    Returns:
        True where the error is nothing else, None where it may be something else as large, False where it is more.
    """
    assert matrices.wrong is not None
    off = np.where(matrices.wrong, np.abs(matrices.analytical - matrices.numerical), 0.0)
    largest = float(off.max(initial=0.0))
    size = float(np.abs(matrices.analytical).max())
    if matrices.rows is not None or not largest <= max(LARGEST_RIGHT, LARGEST_ROUNDING * size):
        return False
    i, j = ij
    probe, _ = assembly.probes[i]
    # beside each other, not beside the answer here: a target of exactly 1 may mean something that 1 - eps does not
    moved = np.stack([_answer(assembly, i, j, probe, ulps) for ulps in ULPS])
    noise = np.abs(moved - moved.mean(axis=0)).max(axis=0)
    if not (pull_back(matrices.layout, off, np.abs(probe)) <= MOVED * noise).all():
        return False
    small = max(LARGEST_RIGHT * max(1.0, size), ROUNDINGS * assembly.spacing * size)
    return True if largest <= small else None


def _answer(assembly: Assembly, i: int, j: int, probe: Array, ulps: float) -> Array:
    problem = assembly.problem
    outputs = problem.call(nudged(problem, ulps))
    v = [from_array(probe, y) if k == assembly.wanted[i] else None for k, y in enumerate(outputs)]
    found = problem.vjp(outputs, v)[j]
    return np.zeros_like(assembly.forward.points[j]) if found is None else to_array(found)


def nudged(problem: Problem, ulps: float, inputs: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """Return the inputs (the problem's by default) with those to differentiate moved by a few last bits.

    Each element up or down by chance: a matrix that is scaled as a whole stays as well or ill conditioned as it is.
    """
    generator = torch.Generator().manual_seed(round(abs(ulps)))

    def moved(x: Tensor) -> Tensor:
        sign = (2 * torch.randint(2, x.shape, generator=generator) - 1).to(x.device, x.dtype)
        return x * (1 + sign * (ulps * torch.finfo(x.dtype).eps))

    return problem.changed_inputs(moved, inputs=inputs)
