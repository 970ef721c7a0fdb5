"""History of a Function since its last check in this kernel: fixed, new, still wrong."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.views.words import block_name
from nbautograd.widgets.states import Since

MOST = 200  # Functions that are remembered


@dataclass
class _Run:
    """Record of a shown check: which it is, what was wrong in it, and the same of the one before."""

    report: weakref.ref[Any]
    wrong: dict[str, str]
    source: str
    before: dict[str, str] | None


_runs: dict[str, _Run] = {}


def since_last(report: GradcheckReport | None) -> Since | None:
    """Compare with the last check of a Function of this name: ``fixed``, ``new`` and ``still`` wrong.

    Returns:
        Sentences of the findings and names of the blocks; None when there was no check before, when its source is as
        it was then, or when nothing was wrong then or is now.
    """
    if report is None:
        return None
    last = _runs.get(report.function)
    if last is None or last.report() is not report:
        text = "" if report.source is None else report.source.text
        edited = last is not None and last.source != text
        last = _Run(weakref.ref(report), _wrong(report), text, last.wrong if edited and last is not None else None)
        _runs[report.function] = last
        while len(_runs) > MOST:
            del _runs[next(iter(_runs))]
    if last.before is None or not (last.before or last.wrong):
        return None
    now, before = last.wrong, last.before
    return Since(
        fixed=[words for key, words in before.items() if key not in now],
        new=[words for key, words in now.items() if key not in before],
        still=[words for key, words in now.items() if key in before],
    )


def _wrong(report: GradcheckReport) -> dict[str, str]:
    """Wrong blocks, and the bugs that are in none of them, each by a key that survives an edit of the source."""
    blocks = {block_name(b): f"`{block_name(b)}`" for b in report.blocks.values() if b.verdict == "mismatch"}
    bugs = [f for f in report.findings if f.kind == "bug" and (f.where is None or f.where not in report.blocks)]
    return blocks | {f"{f.code} {f.where}": f.message for f in bugs}
