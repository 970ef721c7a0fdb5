"""A sample of a Jacobian that is too large to hold: some rows crossed with some columns, and a search for errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from nbautograd.core.checking.jacobian import central_differences
from nbautograd.core.checking.jacobian.forward_values import Forward, Window
from nbautograd.core.checking.jacobian.layout import BlockLayout, Matrices
from nbautograd.core.checking.jacobian.structure import probe
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.compare import agree_in_sum
from nbautograd.core.numerics.constants import FAR_OFF, SUM_ROUNDINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbautograd.core.checking.jacobian.analytical import Rows

SAMPLED = 64  # rows, and columns, of a sample: as many backwards, and twice as many forwards
# disagreement of a random combination, relative to its terms, that is worth a search: in double and in less precision
CLEAR, CLEAR_IN_SINGLE = 1e-7, 1e-3
BlockIndex = tuple[int, int]


def sampled(
    rows: Rows,
    forward: Forward,
    ij: BlockIndex,
    steps: Array,
    random: np.random.Generator,
    keep: Callable[[Matrices], None],
) -> tuple[Matrices, Window, central_differences.Directions]:
    """Return both Jacobians at up to 64 rows and 64 columns: random ones, and a wrong entry when a search finds one.

    Args:
        rows: the vjp of the output.
        ij: numbers of output and input among the differentiable ones.
        steps: steps of the differences per element of the input.
        random: chooses rows and columns.
        keep: given the matrices before their entries are, which are NaN until then; for when it is interrupted.
    """
    i, j = ij
    counts = math.prod(forward.shapes[i]), forward.points[j].size
    chosen = [random.choice(count, min(SAMPLED, count), replace=False) for count in counts]

    def crossed() -> tuple[Matrices, Window, central_differences.Directions]:
        return _crossed(rows, forward, ij, steps, [np.unique(ids) for ids in chosen], keep)

    found = crossed()
    sizes = np.maximum(np.abs(found[0].analytical), np.abs(found[0].numerical))
    # where most of them are wrong there is nothing to search for
    mostly = (np.abs(found[0].stored("difference")) > FAR_OFF * sizes).mean() > 0.5
    suspect = None if mostly else Search(rows, forward, ij, steps, random).entry()
    if suspect is None:
        return found
    chosen = [np.append(ids, one) for ids, one in zip(chosen, suspect, strict=True)]
    return crossed()


def _crossed(
    rows: Rows,
    forward: Forward,
    ij: BlockIndex,
    steps: Array,
    chosen: list[Array],
    keep: Callable[[Matrices], None],
) -> tuple[Matrices, Window, central_differences.Directions]:
    (i, j), (row_ids, col_ids) = ij, chosen
    layout = BlockLayout((len(row_ids),), (len(col_ids),))
    window, directions = Window(forward, ij, row_ids, col_ids), central_differences.single(ij, layout)
    shapes = forward.shapes[i], forward.points[j].shape
    ones = np.ones(shapes[0])
    analytical, numerical = np.full((2, *layout.sizes), np.nan)
    matrices = Matrices(layout, analytical, numerical, rows=row_ids, cols=col_ids, shapes=shapes)
    keep(matrices)
    for number, row in enumerate(row_ids):
        analytical[0, number] = rows.one(_keep(ones, row))[j].reshape(-1)[col_ids]
    central_differences.numerical_jacobian(window, directions, steps.reshape(-1)[col_ids], numerical)
    return matrices, window, directions


class Search:
    """Looks for a wrong entry by halving: w' J u by backward against the same by differences.

    Args: as ``sampled`` takes them.
    """

    def __init__(self, rows: Rows, forward: Forward, ij: BlockIndex, steps: Array, random: np.random.Generator) -> None:
        self.rows, self.forward, self.steps = rows, forward, steps
        self.i, self.j = ij
        self.w = probe(forward.shapes[self.i], random)  # no element so small that its row would not count
        self.u = random.choice([-1.0, 1.0], size=forward.points[self.j].shape)

    def entry(self) -> tuple[int, int] | None:
        """Return row and column of an entry that seems wrong, or None when the combinations agree."""
        gradient = self.rows.one(self.w)[self.j]
        if not self._differs(gradient, self.w, self.u):
            return None
        col = self._halved(self.u.size, lambda chosen: self._differs(gradient, self.w, _keep(self.u, chosen)))
        column = _keep(self.u, np.array([col]))

        def row_differs(chosen: Array) -> bool:
            w = _keep(self.w, chosen)
            return self._differs(self.rows.one(w)[self.j], w, column)

        row = self._halved(self.w.size, row_differs)
        return row, col

    def _differs(self, gradient: Array, w: Array, u: Array) -> bool:
        spacing, changes = central_differences.differences(self.forward, self.j, (u * self.steps)[None])
        value = self.forward.values[self.i]
        noise = SUM_ROUNDINGS * self.forward.eps * float(np.abs(w * value).sum())
        precise = CLEAR if self.rows.output.dtype in (torch.float64, torch.complex128) else CLEAR_IN_SINGLE
        return not agree_in_sum(gradient * spacing[0], w * changes[self.i][0], precise, noise)

    def _halved(self, size: int, differs: Callable[[Array], bool]) -> int:
        chosen = np.arange(size)
        while len(chosen) > 1:
            first, second = np.array_split(chosen, 2)
            chosen = first if differs(first) else second
        return int(chosen[0])


def _keep(array: Array, chosen: Array) -> Array:
    kept = np.zeros(array.size)
    kept[chosen] = array.reshape(-1)[chosen]
    return kept.reshape(array.shape)
