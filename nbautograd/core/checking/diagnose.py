"""diagnose: from a checked Function to ranked findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nbautograd.core.checking import surroundings
from nbautograd.core.checking.block import Block
from nbautograd.core.checking.causes import causes
from nbautograd.core.checking.linearity import linearity
from nbautograd.core.checking.raw import cotangents, observe
from nbautograd.core.checking.subject import Outputs, Subject
from nbautograd.core.findings import Finding

KINDS = {"bug": 0, "lint": 1, "note": 2}


def diagnose(subject: Subject, blocks: Mapping[tuple[int, int], Block]) -> tuple[Finding, ...]:
    """Say why a backward is wrong, or what is risky about it.

    Args:
        subject: what was checked.
        blocks: with their verdicts.

    Returns:
        Findings, most serious first; none for a Function that is right in all that was tried.
    """
    with subject.session():
        return ranked(_all(subject, blocks))


def _all(subject: Subject, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    outputs = subject.call()
    nonlinear = tuple(linearity(subject, outputs))
    yield from nonlinear
    spoken = {f.where[1] for f in nonlinear if f.where is not None}
    yield from _values(subject, outputs, {w: b for w, b in blocks.items() if w[1] not in spoken})


def _values(subject: Subject, outputs: Outputs, blocks: Mapping[tuple[int, int], Block]) -> Iterator[Finding]:
    if not any(b.verdict == "mismatch" for b in blocks.values()):
        return
    seen = observe(subject, outputs, cotangents(subject, outputs, subject.seed))
    none: frozenset[int] = frozenset()
    if subject.direct and seen.returned is not None:
        none = frozenset(i for i, g in enumerate(seen.returned) if g is None)
    tensors, scalars = surroundings.tensors(subject, outputs), surroundings.scalars(subject, outputs)
    yield from causes(subject, blocks, tensors, scalars, none)


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Bugs before lints before notes; within a kind in the order in which they were found."""
    return tuple(sorted(findings, key=lambda finding: KINDS[finding.kind]))
