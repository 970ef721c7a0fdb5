"""Hypothesis: a cause that a wrong block may have, and the confirmation without which it is not named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Array, Block
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.constants import EVIDENCE, EVIDENT, SIGNIFICANT, SIGNIFICANT_SINGLE, SMALL


@dataclass(frozen=True)
class Evidence:
    """One block's analytical and numerical Jacobian, thinned out when it is large.

    Dimensions of the same size are thinned out alike, so that a diagonal stays one.

    Attributes:
        block: the block that is spoken of.
        A, N: analytical and numerical, rows x columns of the thinned-out block.
        rel, tiny: two numbers count as equal when they differ by at most ``rel`` of their size plus ``tiny``.
        blocks: all blocks of the same check, by positions of output and input.
        none: True when backward returned None for the input.
    """

    block: Block
    A: Array
    N: Array
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

    @property
    def wrong(self) -> Array:
        """Mark the entries where A and N differ."""
        return ~self.equal(self.A, self.N)

    @property
    def elementwise(self) -> bool:
        """Return True if both Jacobians have nothing off the diagonal of equal shapes."""
        if self.block.output_shape != self.block.input_shape or self.block.matrices.rows is not None:
            return False
        hot = ~self.equal(self.A, np.zeros_like(self.A)) | ~self.equal(self.N, np.zeros_like(self.N))
        return not np.any(hot & ~np.eye(len(hot), dtype=bool))


def indices(block: Block) -> dict[int, list[int]]:
    """Choose the indices that stay, by size of dimension, so that the block has at most ``EVIDENCE`` entries."""
    shape = (*block.output_shape, *block.input_shape)
    places = () if block.worst is None else (*block.worst.output_index, *block.worst.input_index)
    most = max(shape, default=1)
    while float(np.prod([min(size, most) for size in shape], dtype=float)) > EVIDENCE and most > 2:
        most = max(2, most * 3 // 4)
    even = {size: np.linspace(0, size - 1, min(size, most)).round().astype(int).tolist() for size in shape}
    return {n: sorted({*even[n], *(p for p, size in zip(places, shape, strict=False) if size == n)}) for n in even}


def flat(shape: tuple[int, ...], chosen: dict[int, list[int]]) -> list[int]:
    """Return the row-major positions of the elements that stay."""
    grid = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    return [int(i) for i in np.ravel(grid[np.ix_(*(chosen[size] for size in shape))])]


def gather(
    block: Block, single: bool, blocks: Mapping[tuple[int, int], Block] | None = None, none: bool = False
) -> Evidence:
    """Gather the evidence for one block.

    Args:
        single: True when the Function computes in single precision (or lower), where less can be told apart.
        blocks: all blocks of the same check.
        none: True when backward returned None for the block's input.
    """
    asked: tuple[Any, Any] = (block.matrices.rows, block.matrices.cols)  # of a block that is known at a sample alone
    if asked[0] is None and block.entries > EVIDENCE:
        chosen = indices(block)
        asked = flat(block.output_shape, chosen), flat(block.input_shape, chosen)
    A, N = np.asarray(block.analytical(*asked)), np.asarray(block.numerical(*asked))
    bar: Any = block.worst.error_bar if block.worst is not None else 0.0
    scale = float(np.abs(N[np.isfinite(N)]).max(initial=0.0))
    tiny = min(EVIDENT * float(bar), SMALL * scale) if np.isfinite(bar) else 0.0
    rel = SIGNIFICANT_SINGLE if single else SIGNIFICANT
    return Evidence(block, A, N, rel, tiny, blocks or {}, none)


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
class FreshCheck:
    """A check at fresh inputs.

    Attributes:
        blocks: with their verdicts.
        other_values: makes the check at other values in the same sizes; None where forward takes none.
    """

    blocks: Mapping[tuple[int, int], Block]
    other_values: Callable[[], FreshCheck | None] = lambda: None


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
    elsewhere: Callable[[], Iterable[FreshCheck]] = tuple

    def fresh(self) -> Iterator[tuple[FreshCheck, Evidence]]:
        """Yield the places where the same block is wrong as well, with its evidence there."""
        for place in self.elsewhere():
            found = self.at(place)
            if found is not None:
                yield place, found

    def at(self, place: FreshCheck | None) -> Evidence | None:
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
        if not _same(found, predicate(e)):
            # a difference across a kink close by is no derivative: what two points refute is refuted
            second = case.at(place.other_values())
            if second is None or not _same(found, predicate(second)):
                return None
        asked += 1
    return found if asked else None
