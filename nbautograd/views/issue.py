"""A report as Markdown, to paste into an issue: versions, the source with its marked lines, the text."""

from __future__ import annotations

import platform

import torch

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.inspection.report import FunctionReport
from nbautograd.version import __version__
from nbautograd.views.answer import answer
from nbautograd.views.bundle import text
from nbautograd.views.phrases import line_of, say

FENCE = "`" * 4  # longer than any that a docstring is likely to hold


def for_issue(report: FunctionReport | GradcheckReport) -> str:
    """Return all that somebody else needs who has neither the notebook nor the report.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.views.issue import for_issue
        >>> x = torch.ones(2, dtype=torch.float64)
        >>> "torch" in for_issue(nbautograd.gradcheck(torch.sin, (x,))).splitlines()[0]
        True
    """
    versions = f"nbautograd {__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    parts = [versions]
    if report.source is not None and report.source.text:
        kinds = {line_of(finding): say("kind", finding.kind) for finding in answer(report).findings}
        rows = enumerate(report.source.text.rstrip("\n").split("\n"), report.source.first_line)
        marked = (f"{row}  # <-- {kinds[line]}" if line in kinds else row for line, row in rows)
        parts.append("\n".join((f"{FENCE}python", *marked, FENCE)))
    parts.append(f"{FENCE}\n{text(report)}\n{FENCE}")
    return "\n\n".join(parts) + "\n"
