"""torch.compile in a report: one row for each way and backend, and the risk that each way is."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nbautograd.core.checking.block import Verdict
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.compiled import Compiled
from nbautograd.inspection.comparison import FUNC_GRAD, ComparedCompiled


def row(one: Compiled) -> ComparedCompiled:
    """Return a way and a backend as plain data."""
    verdict: Verdict = "wrong" if one.finding is not None else "right" if one.track is not None else "cannot tell"
    reason = one.error if one.finding is None else one.finding.phrase("what") or ""
    if one.track is None:
        return ComparedCompiled(one.backend, one.way, verdict, reason=reason)
    name, error, ratio = one.track.quantity.name, one.track.error, one.track.ratio
    return ComparedCompiled(one.backend, one.way, verdict, name, error, ratio, reason)


def told(rows: Sequence[ComparedCompiled]) -> tuple[list[Finding], list[Phrase]]:
    """Return what rows show, once for each cause in the first way that it shows, and what else is to be said."""
    changed = [one for one in rows if one.verdict == "wrong"]
    causes = {str(one.reason): one.way for one in reversed(changed)}
    alike = [[one for one in changed if (str(one.reason), one.way) == cause] for cause in reversed(causes.items())]
    findings = [_finding(several) for several in alike]
    failed = {(one.way, str(one.reason)): one for one in rows if one.verdict == "cannot tell"}.values()
    notes = [Phrase("compare.compile_failed", way=_way(one.way), error=str(one.reason)) for one in failed]
    same = list(dict.fromkeys(one.backend for one in rows if one.verdict == "right"))
    if same and not findings:
        notes.append(Phrase("compare.compile_agrees", backends=", ".join(same)))
    return findings, notes


def _way(way: str) -> Phrase:
    return Phrase(f"compare.compile_{way}")


def _finding(rows: Sequence[ComparedCompiled]) -> Finding:
    params = {
        "way": _way(rows[0].way),
        "backends": ", ".join(row.backend for row in rows),
        "torch": torch.__version__,
        "cause": rows[0].reason,
    }
    if rows[0].way == FUNC_GRAD:
        return Finding("compare_compile", "lint", "compare.compile", params)
    return Finding("compare_compile", "bug", "compare.compile", params)
