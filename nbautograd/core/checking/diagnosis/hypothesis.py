"""Hypothesis: a cause that a wrong block may have, and the confirmation without which it is not named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Block
from nbautograd.core.checking.diagnosis.evidence import Evidence, gather
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.constants import SIGNIFICANT_SINGLE


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


@dataclass(frozen=True)
class Confirmation:
    """The test that a cause has to pass beyond the entries in which it was found.

    Attributes:
        confirmed: returns what is borne out; None when that is refuted or nothing could be asked.
        claims: False when the sentences it lets through claim nothing beyond the block's own entries.
    """

    confirmed: Callable[[Hypothesis, Cause, WrongBlock], Cause | None]
    claims: bool = True


# sentences that say what the block's entries are, and name no cause
PLAIN = frozenset(
    (
        "wrong_unclassified", "wrong_unclassified_part", "wrong_derivative", "wrong_derivative_part", "nonfinite",
        "none_gradient", "zero_gradient",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Hypothesis:
    """One row of the table of hypotheses.

    Attributes:
        code: the diagnosis it leads to first.
        predicate: looks at the evidence of one block; returns the cause where the hypothesis holds.
        messages: the sentences that it may say.
        parameters: what has to be the same at fresh inputs for it to be the same cause.
        confirmation: the test without which none of its sentences is said.

    Raises:
        TypeError: there is no confirmation, or one that lets a cause be named by the entries it was found in.
    """

    code: str
    predicate: Predicate
    messages: tuple[str, ...]
    parameters: tuple[str, ...]
    confirmation: Confirmation

    def __post_init__(self) -> None:
        if not isinstance(self.confirmation, Confirmation):
            raise TypeError(f"{self.code}: a hypothesis needs a confirmation")
        if not self.confirmation.claims and not PLAIN.issuperset(self.messages):
            raise TypeError(f"{self.code}: a named cause needs a confirmation at fresh inputs")

    def cause(self, case: WrongBlock) -> Cause | None:
        """Return the cause of this case's block, confirmed; None where the hypothesis does not hold."""
        found = self.predicate(case.evidence)
        if found is None:
            return None
        confirmed = self.confirmation.confirmed(self, found, case)
        if confirmed is not None and confirmed.message not in self.messages:
            raise LookupError(f"{self.code}: no sentence {confirmed.message} is registered")
        return confirmed

    def same(self, one: Cause, other: Cause | None) -> bool:
        """Compare two causes: the same sentence with the same parameters, numbers that may vary aside."""
        alike = other is not None and (other.code, other.message) == (one.code, one.message)
        return other is not None and alike and all(one.params.get(k) == other.params.get(k) for k in self.parameters)


def _part_at_other_values(hypothesis: Hypothesis, found: Cause, case: WrongBlock) -> Cause | None:
    """Return the cause; without its part where another part is wrong at other values in these sizes."""
    if "part" not in found.params:
        return found
    for _, e in case.fresh():
        if e.tensor_shape != case.evidence.tensor_shape:
            break
        other = hypothesis.predicate(e)
        if other is not None and other.params.get("part") != found.params["part"]:
            return Cause(found.code, found.message.removesuffix("_part"))
    return found


def _at_fresh_inputs(hypothesis: Hypothesis, found: Cause, case: WrongBlock) -> Cause | None:
    asked = 0
    for place, e in case.fresh():
        other = hypothesis.predicate(e)
        if other is None and place.single:
            continue  # two sizes that the hypothesis needs to be equal are not
        if not hypothesis.same(found, other):
            # a difference across a kink close by is no derivative: what two points refute is refuted
            second = case.at(place.other_values())
            if second is None or not hypothesis.same(found, hypothesis.predicate(second)):
                return None
        asked += 1
    return found if asked else None


AT_HAND = Confirmation(lambda hypothesis, found, case: found, claims=False)
SAME_PART = Confirmation(_part_at_other_values, claims=False)
FRESH_INPUTS = Confirmation(_at_fresh_inputs)
