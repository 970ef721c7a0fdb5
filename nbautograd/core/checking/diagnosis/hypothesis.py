"""Hypothesis: a cause that a wrong block may have, and the confirmation without which it is not named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbautograd.core.checking.block import Block
from nbautograd.core.checking.diagnosis.evidence import Evidence, gather
from nbautograd.core.checking.point import Other
from nbautograd.core.checking.problem import Problem
from nbautograd.core.numerics.constants import SIGNIFICANT_SINGLE


@dataclass(frozen=True)
class Cause:
    """A hypothesis that held.

    Attributes:
        code: the diagnosis.
        message: which sentence says it; the part of the id after ``causes.``.
        params: what the sentence speaks of, beyond the value and the input that every sentence names.
        alternatives: what holds at the same entries as well, and says less.
    """

    code: str
    message: str
    params: Mapping[str, Any] = field(default_factory=dict)
    alternatives: tuple[Cause, ...] = ()


@dataclass(frozen=True)
class Place:
    """A check at fresh inputs.

    Attributes:
        blocks: with their verdicts.
        other: what is another there besides the values.
        other_values: makes the check at other values in the same sizes; None where forward takes none.
    """

    blocks: Mapping[tuple[int, int], Block]
    other: Other = "nothing"
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
        name: such as ``"fresh inputs"``.
        confirmed: returns what is borne out, the cause or one of its alternatives; None when all are refuted or
            nothing could be asked.
        claims: False when the sentences it lets through claim nothing beyond the block's own entries.
    """

    name: str
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
        also = () if other is None else (other, *other.alternatives)
        alike = (o for o in also if (o.code, o.message) == (one.code, one.message))
        return any(all(one.params.get(key) == o.params.get(key) for key in self.parameters) for o in alike)


def _part_at_other_values(hypothesis: Hypothesis, found: Cause, case: WrongBlock) -> Cause | None:
    """Return the cause; without its part where another part is wrong at other values in these sizes."""
    if "part" not in found.params:
        return found
    for _, e in case.fresh():
        if e.tensor_shape != case.evidence.tensor_shape:
            break
        if _another_part(found, hypothesis.predicate(e)):
            return Cause(found.code, found.message.removesuffix("_part"))
    return found


def _at_fresh_inputs(hypothesis: Hypothesis, found: Cause, case: WrongBlock) -> Cause | None:
    """Return what all fresh inputs bear out: the cause or one of its alternatives."""
    for one in (found, *found.alternatives):
        if _borne_out(hypothesis, one, case):  # a comprehension is one more frame above the user's backward
            return one
    return None


def _borne_out(hypothesis: Hypothesis, found: Cause, case: WrongBlock) -> bool:
    asked, here = 0, case.evidence
    for place, e in case.fresh():
        other = hypothesis.predicate(e)
        if other is None and place.other == "size":
            continue  # two sizes that the hypothesis needs to be equal are not
        same_sizes = place.other not in ("size", "argument") and e.tensor_shape == here.tensor_shape
        if same_sizes and _another_part(found, other):
            return False  # which part it is depends on the values
        if not hypothesis.same(found, other):
            # a difference across a kink close by is no derivative: what two points refute is refuted
            second = case.at(place.other_values())
            if second is None or not hypothesis.same(found, hypothesis.predicate(second)):
                return False
        asked += 1
    return asked > 0


def _another_part(found: Cause, other: Cause | None) -> bool:
    return bool(found.params.get("part")) and other is not None and other.params.get("part") != found.params["part"]


AT_HAND = Confirmation("its own entries", lambda hypothesis, found, case: found, claims=False)
SAME_PART = Confirmation("its own entries, its part at other values", _part_at_other_values, claims=False)
FRESH_INPUTS = Confirmation("fresh inputs and sizes", _at_fresh_inputs)
