"""diagnose: from a checked Function to ranked findings."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping

from nbautograd.core.checking import other_points, phrases
from nbautograd.core.checking.backward_call import cotangents, observe
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.diagnosis import candidate_terms
from nbautograd.core.checking.diagnosis.evidence import Terms
from nbautograd.core.checking.diagnosis.table import Blocks, causes
from nbautograd.core.checking.probes.linearity import linearity
from nbautograd.core.checking.probes.mutated_after_save import changed_after_saving
from nbautograd.core.checking.probes.run_probes import after_values, before_values, first_run, quietly
from nbautograd.core.checking.problem import Outputs, Subject
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.contract.rules import RANK
from nbautograd.core.findings import Finding
from nbautograd.core.numerics.compare import agree_bitwise

CONFIRMED = 20_000  # entries up to which causes are tried at fresh inputs: a tenth of a second
LAST = ("fails_batched",)
# what says no more than that the values are wrong
UNEXPLAINED = {"wrong_derivative", "wrong_unclassified", "missing_factor"}
# a backward that answers differently each time cannot be asked about its values
UNSTEADY = {"nondeterministic_backward", "mutates_saved", "shared_state"}


def diagnose(
    subject: Subject, blocks: Mapping[tuple[int, int], Block], between: Callable[[], None] = lambda: None
) -> Iterator[Finding]:
    """Say why a backward is wrong, or what is risky about it, finding by finding.

    Args:
        subject: what was checked; a session of it must be open.
        blocks: with their verdicts; may be empty when no Jacobian could be had.
        between: called between two probes; what it raises ends the search.

    Yields:
        Findings as they come, to be ``ranked``; none for a Function that is right in all that was tried.

    Raises:
        Exception: the user's own, from ``forward``.
    """
    outputs, found = first_run(subject)
    yield from found
    if outputs is not None:
        yield from _all(subject, outputs, blocks, between)


def _all(
    subject: Subject, outputs: Outputs, blocks: Mapping[tuple[int, int], Block], between: Callable[[], None]
) -> Iterator[Finding]:
    if not _repeats(subject, outputs):
        # what changes from call to call cannot be compared; the verdict says so
        yield phrases.about(subject, "nondeterministic_forward", phrases.forward_line(subject))
        return
    between()
    first = tuple(before_values(subject, outputs))
    yield from first
    between()
    if not any(f.code in UNSTEADY and f.kind == "bug" for f in first):
        nonlinear = tuple(quietly(lambda: linearity(subject, outputs)))
        yield from nonlinear
        spoken = {f.where[1] for f in nonlinear if f.where is not None}
        between()
        yield from _values(subject, outputs, {w: b for w, b in blocks.items() if w[1] not in spoken})
    steady = not any(f.code in (*UNSTEADY, "mutates_grad_output") and f.kind == "bug" for f in first)
    # what changes its own data fails most other probes too; one cause is enough
    yield from after_values(subject, outputs, blocks, between) if steady else ()


def _repeats(subject: Subject, outputs: Outputs) -> bool:
    again = subject.call()
    pairs = zip(outputs, again, strict=True)
    return all(agree_bitwise(a, b) for a, b in pairs)


def _values(subject: Subject, outputs: Outputs, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    flat = [b for b in blocks.values() if b.verdict == "flat"]
    for block in flat:
        where = (block.output, block.input)
        yield Finding("surrogate", "lint", "causes.surrogate", {"input": block.input_name}, where)
    if not any(b.verdict == "mismatch" for b in blocks.values()):
        return
    seen = observe(subject, outputs, cotangents(subject, outputs, subject.seed))
    none: frozenset[int] = frozenset()
    if subject.direct and seen.returned is not None:
        none = frozenset(i for i, g in enumerate(seen.returned) if g is None)
    changed, terms = changed_after_saving(subject), candidate_terms.terms(subject, outputs)
    elsewhere = functools.lru_cache(lambda: tuple(_elsewhere(subject, blocks)))
    for finding in causes(subject, blocks, terms, elsewhere, none):
        yield _explained(finding, changed)


def _elsewhere(subject: Subject, blocks: Mapping[tuple[int, int], Block]) -> Iterator[tuple[Blocks, Terms]]:
    """The blocks, and what may explain them, of checks near the inputs and at values of both signs."""
    if sum(b.entries for b in blocks.values()) > CONFIRMED:
        return
    _, near, signed = other_points.points(subject, subject.seed + 71)
    for inputs in (near, signed):
        with contextlib.suppress(Exception):  # outside the domain of forward nothing is borne out or refuted
            other = Subject(subject.fn, inputs, subject.seed)
            run = GradcheckRun(other, None, None, None)
            with other.session():
                run.find_blocks()
                if not run.complete:
                    raise KeyboardInterrupt  # half a check bears nothing out
                if run.outputs is not None:
                    yield run.blocks, candidate_terms.terms(other, run.outputs)


def _explained(finding: Finding, changed: str) -> Finding:
    """Values that are wrong without a pattern are explained where backward reads a tensor that forward changed."""
    if not changed or finding.code not in UNEXPLAINED:
        return finding
    params = {**finding.params, "name": changed}
    return dataclasses.replace(finding, code="wrong_derivative", message_id="causes.saved_then_changed", params=params)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Bugs before lints before notes; within a kind in the order in which they were found.

    What only matters once the rest is right is left out beside a bug, and comes last otherwise.
    """
    found = tuple(findings)
    wrong = any(f.kind == "bug" for f in found)
    kept = (f for f in found if not (wrong and f.code in LAST))
    return tuple(sorted(kept, key=lambda finding: (RANK[finding.kind], finding.code in LAST)))
