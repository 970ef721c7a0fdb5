"""RedactedReport: a report without the user's values, to be copied into an issue or shown to a colleague."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from nbautograd.core.checking.block import Block, GradcheckReport, Verdict
from nbautograd.core.display import Displayable, Phrase, UserValue, plural
from nbautograd.core.explaining.cause import SourceLine
from nbautograd.core.findings import Finding, limit_findings
from nbautograd.inspection.audit_report import AuditedFunction, AuditedInput, AuditReport
from nbautograd.inspection.comparison import Comparison
from nbautograd.inspection.explanation import Explanation
from nbautograd.inspection.report import FunctionReport
from nbautograd.version import __version__


class LeftOut(str):
    """Stands where a number was left out, also where a sentence says how to write that number."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return str(self)


LEFT_OUT = LeftOut("…")
# Parameters of sentences that name something of the program: its variables, its code and lines, shapes, dtypes,
# versions and counts. All others may hold a value of the user's: those of a new sentence are left out until they
# stand here.
OF_THE_PROGRAM = {
    "argument", "attribute", "caller", "forward", "call", "function", "functions", "input", "inputs", "method",
    "module", "name", "names", "node", "op", "operation", "option", "other", "output", "outputs", "quantity",
    "reference", "root", "source", "type", "expression", "statement", "text", "at", "cell", "cells", "index",
    "line", "n", "position", "positions", "device", "dim", "dims", "dtype", "in_dims", "layout", "shape",
    "shapes", "takes", "tried", "torch", "backends", "way",
    "count", "elements", "element", "entries", "expected", "first",
    "got", "last", "limit", "now", "saved", "second", "version", "versions", "wrong",
}  # fmt: skip
ERROR = "error"  # parameter of sentences that quote an exception: the type, then its words, which may hold anything


@dataclass(frozen=True)
class RedactedBlock:
    """A block's names, shapes and verdict, without its numbers; see ``Block``."""

    output_name: str
    input_name: str
    output_shape: tuple[int, ...]
    input_shape: tuple[int, ...]
    structure: str
    verdict: str
    reason: str
    wrong: int
    entries: int


@dataclass(frozen=True, repr=False)
class RedactedReport(Displayable):
    """Report without a number of the user's: shapes, verdicts, codes, sentences, lines of code.

    Attributes:
        function: name of the Function.
        verdict: on first derivatives.
        order2: the verdict on second derivatives, or None.
        findings: with what is wrong, where, and the fix; numbers in their sentences are left out.
        blocks: of the Jacobian.
        complete: False when the check was interrupted.
        versions: of nbautograd, torch and Python.
    """

    function: str
    verdict: Verdict
    order2: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    blocks: tuple[RedactedBlock, ...] = ()
    complete: bool = True
    versions: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        found = plural(len(self.findings), "finding")
        return f"<RedactedReport {self.function}: {self.verdict}, {found}>"


def redacted(
    report: FunctionReport | GradcheckReport | AuditReport | Comparison | Explanation,
) -> RedactedReport | AuditReport | Comparison | Explanation:
    """Return a report without the user's values: what ``report.redact()`` calls."""
    if isinstance(report, Explanation):
        return _explanation(report)
    if isinstance(report, Comparison):
        return _comparison(report)
    if isinstance(report, AuditReport):
        return dataclasses.replace(
            report,
            functions=tuple(map(_audited, report.functions)),
            notes=tuple(_parameter("", note) for note in report.notes),
        )
    check = report.gradcheck if isinstance(report, FunctionReport) else report
    return RedactedReport(
        function=report.function,
        verdict=report.verdict,
        order2=None if check.order2 is None else check.order2.verdict,
        findings=tuple(map(_finding, report.findings)),
        blocks=tuple(map(_block, check.blocks.values())),
        complete=check.complete,
        versions={
            "nbautograd": __version__,
            "torch": torch.__version__,
            "Python": platform.python_version(),
        },
    )


def _explanation(explanation: Explanation) -> Explanation:
    """Return an explanation without its graph, whose nodes may hold numbers; the text of a line is code and stays."""
    return dataclasses.replace(
        explanation,
        findings=tuple(dataclasses.replace(one, params=_parameters(one.params)) for one in explanation.findings),
        graph=None,
        params=_parameters(explanation.params),
        made=_place(explanation.made),
        did=_place(explanation.did),
        raised=_place(explanation.raised),
        saved=_place(explanation.saved),
    )


def _place(place: SourceLine | None) -> SourceLine | None:
    return None if place is None else dataclasses.replace(place, file=_file(place.file) or "")


def _file(path: str | None) -> str | None:
    """Return the name of a file without its folders, which may name a person."""
    return path if path is None else Path(path).name


def _comparison(report: Comparison) -> Comparison:
    """Return a comparison with its errors, which are relative, but without values and graphs."""

    def reasonless(rows: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(dataclasses.replace(row, reason=_parameter("", row.reason)) for row in rows)

    return dataclasses.replace(
        report,
        reason=_parameter("", report.reason),
        findings=tuple(map(_finding, report.findings)),
        quantities=tuple(
            dataclasses.replace(one, values=None, difference=None, largest=0.0) for one in report.quantities
        ),
        graphs=None,
        cases=reasonless(report.cases),
        compiled=reasonless(report.compiled),
        inputs=tuple(map(_input, report.inputs)),
        notes=tuple(_parameter("", note) for note in report.notes),
        file=_file(report.file),
        trace="",  # ends with the words of an exception
    )


def _input(argument: AuditedInput) -> AuditedInput:
    """Return an argument; of what is no tensor the name alone."""
    return dataclasses.replace(argument, kind=LEFT_OUT) if isinstance(argument.kind, UserValue) else argument


def _audited(function: AuditedFunction) -> AuditedFunction:
    situations = tuple(
        dataclasses.replace(
            one,
            inputs=tuple(map(_input, one.inputs)),
            reason=_parameter("", one.reason),
            report=_checked(one.report),
            tests=(),  # the name of a parametrised test holds its values
        )
        for one in function.situations
    )
    findings = tuple(map(_finding, function.findings))
    return dataclasses.replace(function, situations=situations, findings=findings, file=_file(function.file))


def _checked(report: GradcheckReport | None) -> GradcheckReport | None:
    if report is None:
        return None
    findings, reason = tuple(map(_finding, report.findings)), _parameter("", report.reason)
    return dataclasses.replace(report, findings=findings, blocks={}, reason=reason, order2=_checked(report.order2))


def _finding(finding: Finding) -> Finding:
    """Return a finding with what is wrong and where; the example, and advice that may name a number, are left out."""
    hints = "where" if finding.hints == "fix" else finding.hints
    [shorter] = limit_findings((finding,), hints) or (finding,)
    params = _parameters(shorter.params)
    return dataclasses.replace(shorter, code=finding.code, params=params, line=finding.line, fix=finding.fix)


def _parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _parameter(name, value) for name, value in params.items()}


def _parameter(name: str, value: Any) -> Any:
    """Return a parameter of a sentence as it is, or what stands in place of a value of the user's."""
    if isinstance(value, Phrase):
        return Phrase(value.message_id, **_parameters(value.params))
    if value is None or value == "" or isinstance(value, bool):
        return value
    if name == ERROR and isinstance(value, str):
        return value.partition(":")[0]
    return value if name in OF_THE_PROGRAM and not isinstance(value, (UserValue, float)) else LEFT_OUT


def _block(block: Block) -> RedactedBlock:
    return RedactedBlock(**{f.name: getattr(block, f.name) for f in dataclasses.fields(RedactedBlock)})
