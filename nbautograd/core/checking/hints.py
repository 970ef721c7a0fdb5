"""Hint levels of a report: that something is wrong, what, where, or also how to mend it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import get_args

from nbautograd.core.findings import PARTS, Finding, Hints
from nbautograd.errors import CallError


def validated_hints(hints: str) -> Hints:
    """The same, if it is one of the four.

    Raises:
        CallError: when it is not.
    """
    if hints not in get_args(Hints):
        raise CallError("checking.hints_unknown", given=repr(hints))
    return hints  # type: ignore[return-value]


def limit_findings(findings: Iterable[Finding], hints: Hints) -> tuple[Finding, ...]:
    """The findings with no more in them than these hints allow.

    Args:
        findings: in full.
        hints: ``"fix"`` for all there is; ``"where"`` without a fix or advice, ``"what"`` without the place as well;
            ``"none"`` for no more than which gradient is wrong.

    Returns:
        The findings in the same order; with ``"none"`` only bugs, told once per place.

    Example:
        >>> from nbautograd.core.checking.hints import limit_findings
        >>> from nbautograd.core.findings import Finding
        >>> [found] = limit_findings([Finding("sign", "bug", "causes.sign", {"input": "b"}, (0, 1), 7)], "none")
        >>> found.code, found.line
        ('wrong_unclassified', None)
    """
    if hints == "fix":
        return tuple(findings)
    if hints == "none":
        bare = [_bare(f) for f in findings if f.kind == "bug"]
        return tuple({(f.where, f.message_id): f for f in bare}.values())
    return tuple(_only(f, hints) for f in findings)


def _bare(finding: Finding) -> Finding:
    if finding.where is None or "input" not in finding.params:
        return Finding("wrong_unclassified", "bug", "causes.hint_none_function", hints="none")
    params = {"input": finding.params["input"]}
    return Finding("wrong_unclassified", "bug", "causes.hint_none", params, finding.where, hints="none")


def _only(finding: Finding, hints: Hints) -> Finding:
    """The finding with the parameters and the line that these hints show, and nothing else."""
    shorter = dataclasses.replace(finding, hints=hints, fix=None)
    phrases = [phrase for part in PARTS[hints] if (phrase := shorter.phrase(part)) is not None]
    params = {name: value for phrase in phrases for name, value in phrase.params.items()}
    return dataclasses.replace(shorter, params=params, line=finding.line if hints == "where" else None)
