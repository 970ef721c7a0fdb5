"""``nbautograd audit``: runs a script or module and checks every custom gradient that it used."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from nbautograd.command.page import require_ours
from nbautograd.command.program import COULD_NOT_RUN, FOUND, as_main, run, write_report
from nbautograd.inspection.audit import Audit
from nbautograd.messages import text
from nbautograd.views.builders.audit import audit_document
from nbautograd.views.to_text import to_text


def audit(
    target: str,
    arguments: Sequence[str],
    *,
    module: bool = False,
    json_file: Path | None = None,
    html_file: Path | None = None,
    repro: Path | None = None,
    budget: float | None = None,
    compile: bool = False,
) -> int:
    """Run a program as ``python`` would, then check and report the custom gradients that it used.

    Args:
        target: path of a script, or name of a module.
        arguments: those of the program.
        module: True where ``target`` is a module's name.
        json_file, html_file: where the report is written besides.
        repro: folder for scripts that show what is wrong with torch alone.
        budget: seconds of all checks; None takes the default.
        compile: True compares what is right with itself under torch.compile.

    Returns:
        1 when a gradient is wrong, or torch.compile changes one, else 2 when the program raised or the checks were
        interrupted, else 0.

    Raises:
        CommandError: when there is no such script or module.
        CommandError: when a file cannot be written.
    """
    if html_file is not None:
        require_ours(html_file)
    audited = Audit(compile=compile) if budget is None else Audit(budget=budget, compile=compile)
    with as_main(target, arguments, module) as program:
        ended = run(program, audited, text("command.audit.then"))
        print(text("command.audit.checking"), file=sys.stderr, flush=True)
        line = _Line() if sys.stderr.isatty() else None
        report = audited.report(progress=line)
        if line is not None:
            line.clear()
        document = audit_document(report, in_python=False)
        print(to_text(document))
        write_report(report, document, "nbautograd audit", json_file, html_file)
        if repro is not None and report.wrong:
            for one in report.save_repro(repro):
                print(text("views.audit.reason", function=one.function, reason=one.script or one.reason))
    changed = any(finding.code == "compare_compile" for function in report.functions for finding in function.findings)
    if report.wrong or changed:
        return FOUND
    return COULD_NOT_RUN if ended is not None or not report.complete else 0


class _Line:
    """One line on a terminal that says what is being checked."""

    def __call__(self, done: int, total: int, what: str) -> None:
        words = text("command.audit.progress", percent=100 * done // max(1, total), what=what)
        sys.stderr.write(f"\r\x1b[K{words}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        sys.stderr.write("\r\x1b[K")
