"""diagnose: from a checked Function to ranked findings."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from torch import Tensor

from nbautograd.core.checking import other_points, phrases
from nbautograd.core.checking.backward_call import cotangents, gradient_tolerance, observe
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.budget import bytes_lacking
from nbautograd.core.checking.diagnosis import table
from nbautograd.core.checking.diagnosis.hypothesis import FreshCheck
from nbautograd.core.checking.diagnosis.predicates import Clues
from nbautograd.core.checking.diagnosis.table import Blocks
from nbautograd.core.checking.diagnosis.wrong_line import rounded_line
from nbautograd.core.checking.meant import handed_on
from nbautograd.core.checking.point import Once, Point
from nbautograd.core.checking.points import points
from nbautograd.core.checking.prepared_inputs import copy, in_double
from nbautograd.core.checking.probes.determinism import unsteady_forward
from nbautograd.core.checking.probes.run_probes import after_values, before_values, first_run, probed
from nbautograd.core.checking.problem import Outputs, Problem
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.contract.rules import RANK
from nbautograd.core.findings import Finding, Phrase
from nbautograd.core.numerics.arrays import real_size
from nbautograd.core.numerics.compare import agree_relative
from nbautograd.core.stumbles import any_errors, users_errors

CONFIRMED = 20_000  # entries up to which causes are confirmed at the sizes given: a tenth of a second
# of more entries they are confirmed where inputs have at most so many elements, along dimensions of at most this size:
# each is a full check
SMALL_INPUTS, SMALL_SIZE = 200, 8
# where a cause has to hold as well, and at how many points of each kind: a full check each
ASKED = (("near", 1), ("signed", 1), ("argument", None), ("data", None), ("together", 3), ("single", 2))
LAST = ("fails_batched", "ignores_needs_input_grad")
Mend = Callable[[Problem, tuple[Finding, ...], Clues | None], tuple[Finding, ...]]
SURROGATES = ("staircase", "scale of stairs")  # reasons of blocks
# what a value that was rounded may be behind
BY_ROUNDING = ("wrong_derivative", "wrong_unclassified")
# a backward that answers differently each time cannot be asked about its values
UNSTEADY = {"nondeterministic_backward", "mutates_saved", "shared_state"}
# what a backward computes after it changed what it computes from is wrong for that reason, wherever it stands
CHANGING = {*UNSTEADY, "mutates_grad_output"}
# nor one that takes None for something else than zeros, when asked through one output at a time
UNASKED = {*CHANGING, "undefined_grad"}


def diagnose(
    problem: Problem,
    blocks: Mapping[tuple[int, int], Block],
    between: Callable[[], None] = lambda: None,
    mend: Mend | None = None,
) -> Iterator[Finding]:
    """Say why a backward is wrong, or what is risky about it, finding by finding.

    Args:
        problem: what was checked; a session of it must be open.
        blocks: with their verdicts; may be empty when no Jacobian could be had.
        between: called between two probes; what it raises ends the search.
        mend: looks for fixes; None where none are wanted.

    Yields:
        Findings as they come, to be ``ranked``; none for a Function that is right in all that was tried.

    Raises:
        Exception: the user's own, from ``forward``.
    """
    outputs, found = first_run(problem)
    yield from found
    if outputs is None:
        return
    unwritten = probed("never_written", problem)
    yield from unwritten
    if unwritten:
        return  # all else depends on what lay there
    near = gradient_tolerance(outputs, problem.inputs)  # a solver's last digits depend on where its memory lies
    again = points(problem).first("given")
    if again is None or not all(map(agree_relative, outputs, again.outputs or problem.call(), [near] * len(outputs))):
        yield unsteady_forward(problem)
        return
    between()
    meant = _surrogates(problem, outputs, blocks)
    yield from meant  # no change is to spoil these, whatever else is found
    stairs = frozenset(where for where, block in blocks.items() if block.reason in SURROGATES)
    first = tuple(before_values(problem, outputs, noisy=0 < len(stairs) == len(blocks)))
    yield from first
    between()
    if not any(f.code in UNASKED and f.kind == "bug" for f in first):
        nonlinear = probed("linearity", problem, outputs, _flat(blocks), stairs)
        yield from nonlinear
        spoken = {f.where[1] for f in nonlinear if f.where is not None}
        between()
        with any_errors("causes"):
            asked = {w: b for w, b in blocks.items() if w[1] not in spoken}
            yield from _values(problem, outputs, asked, meant, mend)
    steady = not any(f.code in CHANGING and f.kind == "bug" for f in first)
    # what changes its own data fails most other probes too; one cause is enough
    yield from after_values(problem, outputs, blocks, between) if steady else ()


def _flat(blocks: Mapping[tuple[int, int], Block]) -> frozenset[int]:
    depended = {i for (_, i), b in blocks.items() if b.verdict != "match" or b.structure != "zero"}
    return frozenset(i for _, i in blocks) - depended


def _surrogates(problem: Problem, outputs: Outputs, blocks: Blocks) -> tuple[Finding, ...]:
    off = [where for where, block in blocks.items() if block.verdict == "mismatch"]
    flat = [where for where, block in blocks.items() if block.reason in SURROGATES]
    handed = handed_on(problem, outputs) if off and problem.direct else {}
    named = [(where, where[1], "") for where in flat]
    named += [(where, handed[where], "_handed_on") for where in off if where in handed]
    return tuple(
        Finding("surrogate", "lint", f"causes.surrogate{message}", {"input": problem.input_names[i]}, where)
        for where, i, message in named
    )


def _values(
    problem: Problem, outputs: Outputs, blocks: Blocks, meant: tuple[Finding, ...], mend: Mend | None
) -> Iterator[Finding]:
    """Yield findings on wrong values: the fix says what is wrong, and a cause is sought only where there is none."""
    if not any(b.verdict == "mismatch" for b in blocks.values()):
        return
    lacking = bytes_lacking(sum(map(real_size, outputs)), problem.kept, for_causes=True)
    if lacking is not None:
        yield lacking
        return
    seen = observe(problem, outputs, cotangents(problem, outputs, problem.seed))
    none: frozenset[int] = frozenset()
    if problem.direct and seen.returned is not None:
        none = frozenset(i for i, g in enumerate(seen.returned) if g is None)
    known = table.evidence(problem, blocks, none)
    if mend is not None:
        found, clues = table.entries(problem, known, outputs)
        found = mend(problem, (*meant, *found), clues)[len(meant) :]
        if any(f.fix is not None for f in found):
            yield from found
            return
    elsewhere, double = Once(_elsewhere(problem, blocks)), _in_double(problem, blocks)
    for finding in table.causes(problem, blocks, known, elsewhere.__iter__):
        yield _rounded(problem, finding, double)


def _elsewhere(problem: Problem, blocks: Blocks) -> Iterator[FreshCheck]:
    many = sum(b.entries for b in blocks.values()) > CONFIRMED
    small = other_points.shrunk(problem, SMALL_INPUTS, SMALL_SIZE, problem.seed) if many else problem
    stream = points(small)
    for kind, most in ASKED:
        for number, point in enumerate(itertools.islice(stream.of(kind), most)):
            place = _place(point, functools.partial(stream.again.first, kind, number))
            if place is not None:
                yield place


def _place(point: Point | None, again: Callable[[], Point | None]) -> FreshCheck | None:
    """Check at a point; None outside the domain of forward, where nothing is borne out or refuted."""
    if point is None:
        return None
    with users_errors():
        other = Problem(point.problem.fn, tuple(map(copy, point.inputs)), point.problem.seed)
        run = GradcheckRun(other, None, None, None, by_forward=True)
        with other.session():
            run.find_all_blocks()
            if run.outputs is not None:
                second = functools.cache(lambda: _place(again(), lambda: None))
                return FreshCheck(run.blocks, second)
    return None


def _in_double(problem: Problem, blocks: Blocks) -> FreshCheck | None:
    """Check the same inputs in double precision, others when asked; None where they are of that already, or large."""
    given = tuple(map(in_double, problem.inputs))
    wider = any(isinstance(a, Tensor) and a.dtype != b.dtype for a, b in zip(problem.inputs, given, strict=True))
    small = sum(b.entries for b in blocks.values()) <= CONFIRMED
    if not (wider and small):
        return None
    near = functools.partial(points(problem).first, "near")

    def again() -> Point | None:
        at = near()
        return None if at is None else Point(problem, tuple(map(in_double, at.inputs)))

    return _place(Point(problem, given), again)


def _rounded(problem: Problem, finding: Finding, double: FreshCheck | None) -> Finding:
    """Replace the cause by "wrong in low precision only" where the gradient is right in double precision."""
    if finding.where is None or finding.code == "nonfinite" or "value" not in finding.params:
        return finding
    if not _matches(double, finding.where) or double is None or not _matches(double.other_values(), finding.where):
        return finding
    other = Problem(problem.fn, tuple(map(in_double, problem.inputs)), problem.seed)
    at = rounded_line(problem, other)
    first: Phrase | str = ""
    if at is not None:
        first = Phrase("causes.first_rounded", name=at.name, at=at.line, statement=phrases.short(at.text))
    params = {**finding.params, "first": first}
    line = finding.line if at is None else at.line
    return dataclasses.replace(finding, message_id="causes.right_in_double", params=params, line=line)


def _matches(place: FreshCheck | None, where: tuple[int, int]) -> bool:
    block = None if place is None else place.blocks.get(where)
    return block is not None and block.verdict == "match"


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Put bugs before lints before notes; within a kind in the order in which they were found.

    What only matters once the rest is right is left out beside a bug, and comes last otherwise.
    """
    found = tuple(findings)
    if any(f.code == "backward_loses_precision" and f.kind == "bug" for f in found):
        found = tuple(f for f in found if f.code not in BY_ROUNDING)  # the formula may well be right
    wrong = any(f.kind == "bug" for f in found)
    kept = (f for f in found if not (wrong and f.code in LAST))
    return tuple(sorted(kept, key=lambda finding: (RANK[finding.kind], finding.code in LAST)))
