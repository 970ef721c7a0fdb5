"""What GitHub shows of a check: annotations at a file and a line, and a table in the summary of the job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from nbautograd.core import formats
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.inspection.comparison import ComparedCase, Comparison
from nbautograd.messages import text

LEVELS = {"bug": "error", "lint": "warning", "note": "notice"}
ROWS = 20  # of the sweep that the summary shows
# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands: the runner decodes these
MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})

Report = Comparison | GradcheckReport


def commands(report: Report, file: str | None, line: int | None) -> Iterator[str]:
    """Yield a workflow command for each finding, and one where the check cannot tell.

    Args:
        report: of the check.
        file: of the Function's source.
        line: where its backward begins, for findings that have no line of their own.
    """
    for finding in report.findings:
        yield _command(LEVELS[finding.kind], report, f"{finding.message} [{finding.code}]", file, finding.line or line)
    if report.verdict == "cannot tell":
        yield _command("error", report, str(report.reason), file, line)


def could_not_run(reason: str) -> str:
    """Return a workflow command for a check that could not be run."""
    return f"::error title=nbautograd::{reason.translate(MESSAGE)}"


def _command(level: str, report: Report, sentence: str, file: str | None, line: int | None) -> str:
    path = _relative(file)
    properties = {"file": path, "line": str((path and line) or ""), "title": f"nbautograd: {report.function}"}
    given = ",".join(f"{name}={value.translate(PROPERTY)}" for name, value in properties.items() if value)
    return f"::{level} {given}::{sentence.translate(MESSAGE)}"


def _relative(file: str | None) -> str:
    """Return a path as GitHub knows it, from the root of the repository; empty for one outside of it."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    path = Path(file).resolve() if file else None
    return path.relative_to(root).as_posix() if path is not None and path.is_relative_to(root) else ""


def summary(report: Report, status: int) -> str:
    """Return a Markdown table of the check, with the rows of the sweep that do not agree."""
    verdict = text(f"views.verdict.{('right', 'wrong', 'cannot_tell')[status]}")
    lines = [f"### nbautograd: `{report.function}`", "", _row(text("command.github.columns").split("|"))]
    lines.append(_row(["---"] * 5))
    sweep = report if isinstance(report, Comparison) else None
    seen = formats.error(sweep.resolution) if sweep is not None and not sweep.wrong else ""
    cases = () if sweep is None else sweep.cases
    others = [case for case in cases if case.verdict != "right"]
    codes = ", ".join(f"`{finding.code}`" for finding in report.findings)
    lines.append(_row([verdict, codes, f"{len(cases) - len(others)}/{len(cases)}", seen, str(status)]))
    if others:
        lines += ["", _row(text("command.github.rows").split("|")), _row(["---"] * 4), *map(_case, others[:ROWS])]
    return "\n".join(lines) + "\n\n"


def _case(case: ComparedCase) -> str:
    shapes = ", ".join(map(formats.shape, case.shapes))
    return _row([case.name or case.change, f"{shapes} {case.dtype}", case.verdict, str(case.reason)])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"


def write(report: Report, file: str | None, line: int | None, status: int) -> None:
    """Print the annotations, and add the table to the summary of the job, where this runs in one."""
    for command in commands(report, file, line):
        print(command)
    page = os.environ.get("GITHUB_STEP_SUMMARY")
    if page:
        with Path(page).open("a", encoding="utf-8") as out:
            out.write(summary(report, status))
