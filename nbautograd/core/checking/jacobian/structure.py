"""Structure of a Jacobian, found by random probes: which dimensions of output and input go together.

When v is scaled slice by slice along one dimension of the output and J'v comes out scaled in the same way along a
dimension of the input, then with probability 1 J is zero wherever the indices along these two dimensions differ: it
falls into blocks, and one backward (or one pair of forwards) can ask all blocks at once. Whatever is found in this
way is a hypothesis until a random combination of the finished Jacobian agrees with one plain backward.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
from torch import Tensor

from nbautograd.core.checking.jacobian.layout import BlockLayout, Matrices
from nbautograd.core.numerics.arrays import Array
from nbautograd.core.numerics.compare import agree_within, largest_finite, symmetric
from nbautograd.core.numerics.constants import AGREED, SIGNIFICANT, SMALL

Pair = tuple[int, int]


def probe(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Draw a cotangent of powers of two from 1/8 to 4, of both signs: to multiply and divide by them is exact."""
    lots = random.integers(0, 12, shape, dtype=np.int8)
    chosen: Array = POWERS[lots]
    return chosen


POWERS = np.concatenate([2.0 ** np.arange(-3, 3), -(2.0 ** np.arange(-3, 3))])


def scales(shape: tuple[int, ...], random: np.random.Generator) -> dict[int, Array]:
    """Return for each dimension longer than 1 random factors in [0.5, 2], shaped to multiply an array of this shape."""
    return {
        d: random.uniform(0.5, 2.0, size).reshape([-1 if e == d else 1 for e in range(len(shape))])
        for d, size in enumerate(shape)
        if size > 1
    }


def candidates(factors: dict[int, Array], plain: Array, scaled: dict[int, Array], tolerance: float) -> set[Pair]:
    """Return pairs (probed dimension, dimension of the answer) for which the answer scales as the probe was scaled.

    Args:
        factors: what the probe was multiplied with, by dimension.
        plain: the answer to the unscaled probe.
        scaled: the answers to the scaled probes, by dimension.
        tolerance: largest difference, relative to the largest entry, that still counts as equal.
    """
    bound = tolerance * largest_finite(plain)
    found = set()
    for a, answer in scaled.items():
        factor = factors[a].reshape(-1)
        for b, size in enumerate(plain.shape):
            if size == len(factor):
                shape = [-1 if d == b else 1 for d in range(plain.ndim)]
                if _agree_where_finite(answer, plain * factor.reshape(shape), bound):
                    found.add((a, b))
    return found


def elementwise(ones: Array, probe: Array, answer: Array, tolerance: float) -> bool:
    """Compare the answer to a random probe with the answer to ones times the probe: equal, J is diagonal.

    Args:
        ones: backward's answer to ones.
        probe: a random cotangent of the same shape.
        answer: backward's answer to it.
        tolerance: largest difference, relative to the largest entry, that still counts as equal.
    """
    with np.errstate(invalid="ignore"):
        return _agree_where_finite(answer, ones * probe, tolerance * largest_finite(answer))


def _agree_where_finite(found: Array, expected: Array, bound: float) -> bool:
    near = agree_within(found, expected, bound)
    if near.all():
        return True
    known = np.isfinite(expected)
    return np.array_equal(known, np.isfinite(found)) and bool(near[known].all())


def agree(analytical: Array, numerical: Array, within: float = AGREED, floor: float = 0.0) -> bool:
    """Compare two stored Jacobians to seven digits, small entries beside the largest of their row.

    Args:
        analytical, numerical: the two.
        within: how large a relative difference may be.
        floor: what an entry may be off by in any case, relative to the largest of all.
    """
    if not analytical.size:
        return True
    size = np.abs(analytical)
    if analytical.shape[2] > 1:
        size = np.maximum(size, SMALL * size.max(axis=2, keepdims=True))
    return bool(agree_within(analytical, numerical, within * size + floor * float(size.max())).all())


def matching(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return as many pairs as greed finds with each dimension used once; equal positions from the end first."""
    chosen: list[Pair] = []
    for a, b in sorted(pairs, key=lambda pair: (pair[0] != pair[1], pair)):
        if all(a != c and b != d for c, d in chosen):
            chosen.append((a, b))
    return tuple(sorted(chosen))


def seeds(layout: BlockLayout, rows: Array) -> Array:
    """Return cotangents that ask for the given rows of all blocks at once, shaped (number of rows, *output_shape)."""
    blocks, per_block, _ = layout.sizes
    unit = np.zeros((len(rows), blocks, per_block))
    unit[np.arange(len(rows)), :, rows] = 1.0
    return layout.output_like(unit)


def pull_back(layout: BlockLayout, data: Array, cotangent: Array) -> Array:
    """Return J'v of a stored Jacobian, shaped like the input."""
    v = layout.rows(cotangent[None])[0]
    answer: Array = layout.input_like(np.einsum("br,brc->bc", v, data)[None])[0]
    return answer


def push_forward(layout: BlockLayout, data: Array, tangent: Array) -> Array:
    """Return J u of a stored Jacobian, shaped like the output."""
    u = layout.cols(tangent[None])[0]
    answer: Array = layout.output_like(np.einsum("brc,bc->br", data, u)[None])[0]
    return answer


def colour_columns(pattern: Array) -> list[Array]:
    """Group columns no two of which share a row, so that one difference gives all columns of a group.

    Greedy colouring of the column intersection graph: Curtis, A. R., Powell, M. J. D., Reid, J. K. (1974), On the
    estimation of sparse Jacobian matrices, IMA Journal of Applied Mathematics 13, 117-119.

    Args:
        pattern: boolean, shaped (rows, columns): where the Jacobian may differ from zero.
    """
    packed = np.packbits(pattern, axis=0).T
    reaches = [int.from_bytes(column.tobytes(), "little") for column in packed]  # the rows of a column as bits
    taken: list[int] = []
    groups: list[list[int]] = []
    for col, reach in enumerate(reaches):
        free = next((n for n, rows in enumerate(taken) if not rows & reach), None)
        if free is None:
            groups.append([col])
            taken.append(reach)
        else:
            groups[free].append(col)
            taken[free] |= reach
    return [np.array(group) for group in groups]


def for_symmetric_changes(x: Tensor, matrices: Matrices) -> Matrices | None:
    """Return both Jacobians with the numerical one spread over both triangles, if the analytical one is just that.

    Args:
        matrices: of the block; None where they are known in part only.

    Returns:
        None where the input is no real symmetric matrix, where forward reads both triangles, or where backward gives
        something else than the derivative for symmetric changes.
    """
    if matrices.rows is not None or x.is_complex() or not symmetric(x):
        return None
    n = x.shape[-1]
    partner = np.arange(x.numel()).reshape(-1, n, n).swapaxes(1, 2).reshape(-1)
    half = np.zeros_like(matrices.numerical)
    for block, (columns, numbers) in enumerate(zip(matrices.layout.col_ids, matrices.numerical, strict=True)):
        order = np.argsort(columns)
        places = np.searchsorted(columns, partner[columns], sorter=order)
        if places.max() >= len(columns) or not np.array_equal(columns[order[places]], partner[columns]):
            return None  # entries on the other side of the diagonal are in another block
        row, column = columns // n % n, columns % n
        if not (_zero(numbers, row < column) or _zero(numbers, row > column)):
            return None
        half[block] = (numbers + numbers[:, order[places]]) / 2
    off = np.abs(matrices.analytical - half)
    if not off.max(initial=0.0) <= SIGNIFICANT * largest_finite(half):
        return None
    return dataclasses.replace(matrices, numerical=half, wrong=np.zeros_like(matrices.wrong))


def _zero(numbers: Array, side: Array) -> bool:
    return bool(side.any()) and not numbers[:, side].any() and bool(numbers[:, ~side].any())
