"""Hypothesis: a cause that a wrong block may have, and the confirmation without which it is not named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Array, Block
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.constants import EVIDENCE, EVIDENT, SIGNIFICANT, SIGNIFICANT_SINGLE, SMALL


@dataclass(frozen=True)
class Evidence:
    """One block's analytical and numerical Jacobian, thinned out when it is large.

    Dimensions of the same size are thinned out alike, so that exchanging two of them still means something.

    Attributes:
        block: the block that is spoken of.
        A, N: analytical and numerical, rows x columns of the thinned-out block.
        out_shape, in_shape: shapes of the thinned-out output and input.
        rel, tiny: two numbers count as equal when they differ by at most ``rel`` of their size plus ``tiny``.
        blocks: all blocks of the same check, by positions of output and input.
        none: True when backward returned None for the input.
    """

    block: Block
    A: Array
    N: Array
    out_shape: tuple[int, ...]
    in_shape: tuple[int, ...]
    rel: float
    tiny: float
    blocks: Mapping[tuple[int, int], Block] = field(default_factory=dict)
    none: bool = False

    @property
    def scale(self) -> float:
        """Largest size among the entries, 0 for an empty block."""
        return float(max(np.abs(self.N).max(initial=0.0), np.abs(self.A).max(initial=0.0)))

    def equal(self, X: Array, Y: Array) -> Array:
        """Mark the entries where two arrays agree within what is known of the numerical one."""
        size = np.maximum(np.abs(X), np.abs(Y))
        return np.asarray(np.abs(X - Y) <= self.rel * np.maximum(size, SMALL * self.scale) + self.tiny)

    def same(self, X: Array, Y: Array) -> bool:
        """Return True if two arrays agree everywhere."""
        return X.shape == Y.shape and bool(self.equal(X, Y).all())

    @property
    def wrong(self) -> Array:
        """Mark the entries where A and N differ."""
        return ~self.equal(self.A, self.N)

    @property
    def elementwise(self) -> bool:
        """Return True if both Jacobians have nothing off the diagonal of equal shapes."""
        return self.out_shape == self.in_shape and off_diagonal(self.A, self) == off_diagonal(self.N, self) == 0


def off_diagonal(X: Array, e: Evidence) -> int:
    """Count the entries off the diagonal that are not zero."""
    hot = ~e.equal(X, np.zeros_like(X))
    np.fill_diagonal(hot, False)
    return int(hot.sum())


def spread_indices(size: int, most: int, also: Sequence[int]) -> list[int]:
    """Choose the indices of a dimension that stay: at most ``most``, spread evenly, and the named ones."""
    if size <= most:
        return list(range(size))
    spread = {round(k * (size - 1) / (most - 1)) for k in range(most)} if most > 1 else {0}
    return sorted(spread | {i for i in also if i < size})


def indices(block: Block) -> dict[int, list[int]]:
    """Choose the indices that stay, by size of dimension, so that the block has at most ``EVIDENCE`` entries.

    Of a block that is known at a sample alone those of the sample, where its rows and columns are single dimensions.
    """
    shape = (*block.output_shape, *block.input_shape)
    matrices = block.matrices
    if matrices.rows is not None and len(block.output_shape) <= 1 and len(block.input_shape) <= 1:
        known = [*zip(block.output_shape, (matrices.rows,)), *zip(block.input_shape, (matrices.cols,))]  # noqa: B905
        if len(set(shape)) == len(shape):
            return {size: [int(k) for k in ids] for size, ids in known}
    places = () if block.worst is None else (*block.worst.output_index, *block.worst.input_index)
    most = max(shape, default=1)
    while float(np.prod([min(size, most) for size in shape], dtype=float)) > EVIDENCE and most > 2:
        most = max(2, most * 3 // 4)
    return {
        size: spread_indices(size, most, [p for p, s in zip(places, shape, strict=False) if s == size])
        for size in shape
    }


def flat(shape: tuple[int, ...], chosen: dict[int, list[int]]) -> list[int]:
    """Return the row-major positions of the elements that stay; of a size that nothing is known of all do."""
    grid = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    return [int(i) for i in np.ravel(grid[np.ix_(*(chosen.get(size) or range(size) for size in shape))])]


def gather(
    block: Block, single: bool, blocks: Mapping[tuple[int, int], Block] | None = None, none: bool = False
) -> Evidence:
    """Gather the evidence for one block.

    Args:
        single: True when the Function computes in single precision (or lower), where less can be told apart.
        blocks: all blocks of the same check.
        none: True when backward returned None for the block's input.
    """
    chosen = indices(block)
    rows, cols = flat(block.output_shape, chosen), flat(block.input_shape, chosen)
    whole = len(rows) * len(cols) == block.entries
    asked = (None, None) if whole else (rows, cols)
    A, N = np.asarray(block.analytical(*asked)), np.asarray(block.numerical(*asked))
    bar: Any = block.worst.error_bar if block.worst is not None else 0.0
    scale = float(np.abs(N[np.isfinite(N)]).max(initial=0.0))
    tiny = min(EVIDENT * float(bar), SMALL * scale) if np.isfinite(bar) else 0.0
    out_shape = tuple(len(chosen[s]) for s in block.output_shape)
    in_shape = tuple(len(chosen[s]) for s in block.input_shape)
    rel = SIGNIFICANT_SINGLE if single else SIGNIFICANT
    return Evidence(block, A, N, out_shape, in_shape, rel, tiny, blocks or {}, none)


@dataclass(frozen=True)
class Cause:
    """A hypothesis that held.

    Attributes:
        code: the diagnosis.
        message: which sentence says it; the part of the id after ``causes.``.
        params: what the sentence speaks of, beyond the value and the input that every sentence names.
    """

    code: str
    message: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A check at fresh inputs.

    Attributes:
        blocks: with their verdicts.
        single: True where sizes that are equal at the inputs given may differ.
        other_values: makes the check at other values in the same sizes; None where forward takes none.
    """

    blocks: Mapping[tuple[int, int], Block]
    single: bool = False
    other_values: Callable[[], Place | None] = lambda: None


@dataclass(frozen=True)
class WrongBlock:
    """One wrong block, and where a cause of it may be confirmed.

    Attributes:
        problem: what was checked.
        evidence: the block's.
        elsewhere: gives checks at fresh inputs and sizes, made as they are asked for.
    """

    problem: Problem
    evidence: Evidence
    elsewhere: Callable[[], Iterable[Place]] = tuple

    def fresh(self) -> Iterator[tuple[Place, Evidence]]:
        """Yield the places where the same block is wrong as well, with its evidence there."""
        for place in self.elsewhere():
            found = self.at(place)
            if found is not None:
                yield place, found

    def at(self, place: Place | None) -> Evidence | None:
        """Return the evidence of the same block at a place; None where it is not wrong there, or not finite."""
        here = self.evidence
        block = None if place is None else place.blocks.get((here.block.output, here.block.input))
        if place is None or block is None or block.verdict != "mismatch":
            return None
        found = gather(block, here.rel == SIGNIFICANT_SINGLE, place.blocks)
        clear = np.isfinite(found.A).all() and np.isfinite(found.N).all()
        return found if clear else None


Predicate = Callable[[Evidence], "Cause | None"]


# the test that a cause has to pass beyond the entries in which its predicate found it: returns what is borne out, None
# when that is refuted or nothing could be asked
Confirm = Callable[[Predicate, Cause, WrongBlock], "Cause | None"]


def _same(one: Cause, other: Cause | None) -> bool:
    """Compare two causes: the same sentence, and the same factor where it is of one."""
    alike = other is not None and (other.code, other.message) == (one.code, one.message)
    return other is not None and alike and one.params.get("ratio") == other.params.get("ratio")


def at_hand(predicate: Predicate, found: Cause, case: WrongBlock) -> Cause | None:
    """Return the cause, which claims nothing beyond the block's own entries."""
    return found


def fresh_inputs(predicate: Predicate, found: Cause, case: WrongBlock) -> Cause | None:
    """Return the cause where it holds at fresh inputs and sizes as well."""
    asked = 0
    for place, e in case.fresh():
        other = predicate(e)
        if other is None and place.single:
            continue  # two sizes that the hypothesis needs to be equal are not
        if not _same(found, other):
            # a difference across a kink close by is no derivative: what two points refute is refuted
            second = case.at(place.other_values())
            if second is None or not _same(found, predicate(second)):
                return None
        asked += 1
    return found if asked else None
