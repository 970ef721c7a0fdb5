"""A report as Markdown, to paste into an issue: versions, the source with its marked lines, a repro, the text."""

from __future__ import annotations

import platform

import torch

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.core.checking.entry_curve import problem_of
from nbautograd.core.findings import Finding
from nbautograd.errors import InputError
from nbautograd.inspection.audit_report import AuditReport
from nbautograd.inspection.comparison import Comparison
from nbautograd.inspection.redacted import redacted
from nbautograd.inspection.report import FunctionReport
from nbautograd.inspection.repro import NoScript, as_code
from nbautograd.version import __version__
from nbautograd.views.answer import answer
from nbautograd.views.bundle import text
from nbautograd.views.phrases import line_of, say

FENCE = "`" * 4  # longer than any that a docstring is likely to hold


def for_issue(report: FunctionReport | GradcheckReport | AuditReport | Comparison, redact: bool = False) -> str:
    """Return all that somebody else needs who has neither the notebook nor the report.

    Args:
        report: the report.
        redact: whether the numbers of the data are left out.

    Example:
        >>> import torch, nbautograd
        >>> from nbautograd.views.issue import for_issue
        >>> x = torch.ones(2, dtype=torch.float64)
        >>> "torch" in for_issue(nbautograd.gradcheck(torch.sin, (x,))).splitlines()[0]
        True
    """
    versions = f"nbautograd {__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    told = f"{FENCE}\n{text(redacted(report) if redact else report)}\n{FENCE}"
    checked = [] if isinstance(report, AuditReport) else _checked(report, redact)
    return "\n\n".join((versions, *checked, told)) + "\n"


def _checked(report: FunctionReport | GradcheckReport | Comparison, redact: bool) -> list[str]:
    """Return the class with its marked lines, and a few lines that check it again."""
    parts = []
    if report.source is not None and report.source.text:
        kinds = {line_of(finding): say("kind", finding.kind) for finding in _told(report)}
        rows = enumerate(report.source.text.rstrip("\n").split("\n"), report.source.first_line)
        marked = (f"{row}  # <-- {kinds[line]}" if line in kinds else row for line, row in rows)
        parts.append("\n".join((f"{FENCE}python", *marked, FENCE)))
    if repro := "" if isinstance(report, Comparison) else _repro(report, redact):
        parts += [messages.text("views.issue.repro"), f"{FENCE}python\n{repro}\n{FENCE}"]
    return parts


def _told(report: FunctionReport | GradcheckReport | Comparison) -> tuple[Finding, ...]:
    return report.findings if isinstance(report, Comparison) else answer(report).findings


def _repro(report: FunctionReport | GradcheckReport, redact: bool) -> str:
    """Return a few lines that check the class again at the same inputs; empty where it was not called by itself."""
    check = report.gradcheck if isinstance(report, FunctionReport) else report
    try:
        problem = problem_of(check)
        if not problem.direct:
            return ""
        names = {block.input: block.input_name for block in check.blocks.values()}
        names = {k: name if name.isidentifier() else f"input_{k}" for k, name in names.items()}
        lines, arguments, other = [], [], f"  # {messages.text('views.issue.other_values')}"
        for k, item in enumerate(problem.inputs):
            exact, code = as_code(item, redact)
            if isinstance(item, (torch.Tensor, list, tuple)):
                arguments.append(names.get(k, f"input_{k}"))
                lines.append(f"{arguments[-1]} = {code}{'' if exact else other}")
            else:
                arguments.append(code)
    except (InputError, NoScript):  # of an earlier kernel, or with an argument that no code can be written of
        return ""
    call = f"print(nbautograd.gradcheck({report.function}, ({', '.join(arguments)},), seed={check.seed}))"
    return "\n".join(("import torch", "import nbautograd", "", *lines, call))
