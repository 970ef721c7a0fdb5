"""Changes that torch.compile makes to a Function that agrees with its reference, each with a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nbautograd.core.checking.block import Verdict
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding
from nbautograd.core.kernel.compiled import BACKENDS, Compiled, compiled
from nbautograd.inspection.kernel_report import KernelCompiled, KernelReport
from nbautograd.inspection.repro import compile_script


def witnessed(
    report: KernelReport, fn: Any, reference: Any, inputs: tuple[Any, ...], backends: bool | Sequence[Any]
) -> KernelReport:
    """Return a report with what torch.compile makes of the same call.

    Args:
        report: of the check without compiling.
        fn, reference, inputs: as the check was given them.
        backends: True for torch's own.
    """
    if report.verdict != "right":
        return replace(report, notes=(*report.notes, Phrase("kernel.compile_not_tried")))
    asked = BACKENDS if backends is True else tuple(backends or ())
    rows: list[KernelCompiled] = []
    for one in compiled(fn, reference, inputs, asked, seed=report.seed):
        script = ""
        if one.finding is not None and not any(row.script for row in rows if row.way == one.way):
            script = compile_script(fn, inputs, one.way, one.backend, one.track.error if one.track else 1.0)
        rows.append(_row(one, script))
    changed = [row for row in rows if row.verdict == "wrong"]
    ways = dict.fromkeys(row.way for row in changed)
    findings = [_finding(report, [row for row in changed if row.way == way]) for way in ways]
    failed = {(row.way, str(row.reason)): row for row in rows if row.verdict == "cannot tell"}.values()
    notes = [Phrase("kernel.compile_failed", way=_way(row.way), error=str(row.reason)) for row in failed]
    same = list(dict.fromkeys(row.backend for row in rows if row.verdict == "right"))
    if same and not findings:
        notes.append(Phrase("kernel.compile_agrees", backends=", ".join(same)))
    return replace(report, compiled=tuple(rows), findings=(*report.findings, *findings), notes=(*report.notes, *notes))


def _row(one: Compiled, script: str) -> KernelCompiled:
    verdict: Verdict = "wrong" if one.finding is not None else "right" if one.track is not None else "cannot tell"
    reason = one.error if one.finding is None else one.finding.phrase("what") or ""
    if one.track is None:
        return KernelCompiled(one.backend, one.way, verdict, reason=reason)
    track = one.track
    return KernelCompiled(one.backend, one.way, verdict, track.quantity.name, track.error, track.ratio, reason, script)


def _way(way: str) -> Phrase:
    return Phrase(f"kernel.compile_{way}")


def _finding(report: KernelReport, rows: Sequence[KernelCompiled]) -> Finding:
    """Return the risk that one way of compiling is."""
    params = {
        "way": _way(rows[0].way),
        "backends": ", ".join(row.backend for row in rows),
        "torch": report.torch,
        "cause": rows[0].reason,
    }
    message = "kernel.compile_func" if rows[0].way == "func_grad" else "kernel.compile"
    return Finding("kernel_compile", "lint", message, params)
