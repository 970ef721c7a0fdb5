"""Redacted reports: without the user's values, to be copied into an issue or shown to a colleague."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nbautograd.core.checking.block import GradcheckReport, SecondOrderReport
from nbautograd.core.display import Phrase, UserValue
from nbautograd.core.explaining.cause import SourceLine
from nbautograd.core.findings import Finding, limit_findings
from nbautograd.inspection.audit_report import AuditedFunction, AuditedInput, AuditReport
from nbautograd.inspection.comparison import Comparison
from nbautograd.inspection.explanation import Explanation
from nbautograd.inspection.report import FunctionReport


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


def redacted(
    report: FunctionReport | GradcheckReport | AuditReport | Comparison | Explanation,
) -> GradcheckReport | AuditReport | Comparison | Explanation:
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
    if isinstance(report, FunctionReport):
        return _checked(dataclasses.replace(report.gradcheck, verdict=report.verdict, findings=report.findings))
    return _checked(report)


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
            report=None if one.report is None else _checked(one.report),
            tests=(),  # the name of a parametrised test holds its values
        )
        for one in function.situations
    )
    findings = tuple(map(_finding, function.findings))
    return dataclasses.replace(function, situations=situations, findings=findings, file=_file(function.file))


def _checked(report: GradcheckReport) -> GradcheckReport:
    # whose reason, beside no blocks, would say that nothing was checked
    sampled = isinstance(report, SecondOrderReport) and report.blocks
    return dataclasses.replace(
        report,
        findings=tuple(map(_finding, report.findings)),
        blocks={},
        reason="" if sampled else _parameter("", report.reason),
        notes=tuple(_parameter("", note) for note in report.notes),
        order2=None if report.order2 is None else _checked(report.order2),
        seconds=0.0,
        source=None,  # whose file may name a person
    )


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
