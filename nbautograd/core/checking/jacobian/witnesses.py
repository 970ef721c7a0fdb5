"""Two more witnesses beside backward and differences: autograd of the forward, and the Function's own jvp."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.core.checking.jacobian.assembly import Assembly
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.checking.problem import own_method
from nbautograd.core.numerics import draws
from nbautograd.core.numerics.arrays import Array, from_array, to_array
from nbautograd.core.numerics.compare import agree_in_sum, agree_within
from nbautograd.core.numerics.constants import SIGNIFICANT, SMALL_IN_ROW, SUM_ROUNDINGS
from nbautograd.core.stumbles import hands_over, users_errors

ROWS = 256  # rows of a block that autograd of the forward is asked for at most, one backward each
SAME = 1e-9  # relative to the largest entry: two analytical gradients this close differ by rounding
SINGLE = 2.4e-3  # relative difference of two backwards in single precision that says nothing: 100 times 200 spacings
TRUSTED = 1e-5  # how well a witness must agree with differences along a random direction, relative to the terms


@dataclasses.dataclass
class Testimony:
    """Answer of a witness on one block for a random cotangent, or the reason why there is none.

    Attributes:
        apart: largest difference from backward, relative to the largest entry; None when it was not asked.
        absent: why it was not asked, the end of a message id; empty when it was.
        largest: largest absolute difference from backward.
    """

    apart: float | None = None
    absent: str = ""
    largest: float = 0.0


class ForwardWitness:
    """Autograd of the class's own forward, run with a stand-in ctx in grad mode: exact, without a step.

    It is no witness where the forward leaves torch, gives other values than ``apply``, changes its inputs, or does not
    agree with differences along a random direction (a surrogate, a detached part).

    Attributes:
        absent: why it cannot be asked, the end of a message id; empty when it can.
    """

    def __init__(self, assembly: Assembly) -> None:
        self.assembly, self.problem = assembly, assembly.problem
        self.rows, self.absent = assembly.rows_of_forward

    def testimony(self, i: int, j: int) -> Testimony:
        """Compare J' v of one block by autograd of the forward with backward's, for the probe v."""
        rows = None if self.absent else self.rows[i]
        if rows is None:
            return Testimony(absent=self.absent or "leaves_torch")
        probe, answers = self.assembly.probes[i]
        with users_errors() as guard:
            found = rows.one(probe)[j]
        if guard.failed:
            return Testimony(absent="raised")
        with np.errstate(invalid="ignore"):
            largest = float(np.abs(answers[j] - found).max(initial=0.0))
        size = float(np.fmax(np.abs(answers[j]), np.abs(found)).max(initial=0.0))
        testimony = Testimony(largest / size if size else 0.0, "", largest)
        if testimony.apart is not None and testimony.apart < SAME and (i, j) in self.assembly.agreed:
            return testimony  # the numbers of backward, which differences agree with everywhere
        return testimony if self._trusted(i, j, probe, found) else Testimony(absent="not_smooth")

    def entries(self, i: int, j: int, rows: Array) -> Array | None:
        """Return full rows (number of rows, columns) of one block as autograd of the forward has them."""
        witness = None if self.absent else self.rows[i]
        if witness is None or self.testimony(i, j).absent:
            return None
        unit = np.zeros((len(rows), int(np.prod(self.assembly.forward.shapes[i]))))
        unit[np.arange(len(rows)), rows] = 1.0
        return witness.many(unit.reshape(len(rows), *self.assembly.forward.shapes[i]))[j].reshape(len(rows), -1)

    def _trusted(self, i: int, j: int, probe: Array, gradient: Array) -> bool:
        forward = self.assembly.forward
        direction, seen = self.assembly.numerical_response(i, j, probe)
        noise = (
            SUM_ROUNDINGS
            * forward.eps
            * float(np.abs(probe * forward.values[i]).sum())
            * math.sqrt(max(1, gradient.size))
        )
        precise = max(TRUSTED, 10 * self.assembly.tolerance)
        return agree_in_sum(gradient * direction, seen, precise, noise)


class JvpWitness:
    """The Function's own ``jvp``, asked along a random direction by forward-mode differentiation."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly, self.problem = assembly, assembly.problem
        self.absent = "" if own_method(self.problem.cls, "jvp") else "no_jvp"

    def testimony(self, i: int, j: int) -> Testimony:
        """Compare v' J u of one block by the jvp with backward's (J' v)' u."""
        if self.absent:
            return Testimony(absent=self.absent)
        probe, answers = self.assembly.probes[i]
        direction: Array = np.asarray(draws.array_generator(self.problem.seed, "jvp").normal(size=answers[j].shape))
        with users_errors() as guard:
            tangent = self._tangent(self.assembly.wanted[i], j, direction)
        if guard.failed:
            return Testimony(absent="raised")
        if tangent is None:
            tangent = np.zeros(probe.shape)
        terms = float(np.abs(probe * tangent).sum() + np.abs(answers[j] * direction).sum())
        apart = abs(float((probe * tangent).sum() - (answers[j] * direction).sum()))
        return Testimony(apart / terms if terms else 0.0, "", apart)

    @hands_over
    def _tangent(self, output: int, j: int, direction: Array) -> Array | None:
        given: list[Any] = list(self.problem.fresh())
        position = self.problem.differentiable[j]
        with torch.autograd.forward_ad.dual_level():
            leaf: Tensor = given[position].detach()
            given[position] = torch.autograd.forward_ad.make_dual(leaf, from_array(direction, leaf))
            found = self.problem.evaluate(tuple(given))[output]
            tangent = torch.autograd.forward_ad.unpack_dual(found).tangent
            return None if tangent is None else to_array(tangent)


def forward_confirms(witness: ForwardWitness, ij: tuple[int, int], matrices: Matrices, unsure: Array) -> bool:
    """Return True where autograd of the forward confirms backward in all unsure entries (block, row, column)."""
    if matrices.rows is not None or not len(unsure):
        return False
    rows = matrices.layout.row_ids[unsure[:, 0], unsure[:, 1]]
    chosen, back = np.unique(rows, return_inverse=True)
    found = witness.entries(*ij, chosen) if len(chosen) <= ROWS else None
    if found is None:
        return False
    gradient = found[back, matrices.layout.col_ids[unsure[:, 0], unsure[:, 2]]]
    analytical = matrices.analytical[tuple(unsure.T)]
    scale = np.maximum(np.abs(gradient), SMALL_IN_ROW * np.abs(found).max(axis=1)[back])
    return bool(agree_within(gradient, analytical, confirmation_bound(witness) * scale).all())


def confirmation_bound(witness: ForwardWitness) -> float:
    """Return the relative difference up to which autograd of the forward confirms an entry."""
    rounding = witness.assembly.tolerance  # in half precision a hundred times that would let anything pass
    return max(SIGNIFICANT, min(100 * rounding, max(SINGLE, 4 * rounding)))
