"""AuditReport: every custom gradient that a program used, and what a check says of it; plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nbautograd.core.checking.block import GradcheckReport, Verdict
from nbautograd.core.display import Displayable, Phrase, Redactable, plural, render
from nbautograd.core.findings import Finding
from nbautograd.errors import GradcheckError
from nbautograd.version import __version__

AuditVerdict = Literal["right", "wrong", "cannot tell", "meant", "unchecked"]
How = Literal["", "entries", "slice", "directions", "smaller"]

# a finding about calls where other inputs require grad than in the situation: the gradient is right where it was used
OTHER_GRADS = "needs_input_grad_wrong"
RANK: dict[AuditVerdict, int] = {"wrong": 0, "cannot tell": 1, "unchecked": 2, "meant": 4, "right": 5}


@dataclass(frozen=True)
class AuditedInput:
    """One argument as a situation knows it: a kind, not a value of the user's, but for numbers and words.

    Attributes:
        name: as forward calls it.
        kind: ``"float32 (8, 16)"`` of the smallest tensor that was kept, else the argument itself in short.
        requires_grad: True for a tensor that is differentiated.
        notes: such as ``"not contiguous"`` or a device other than the CPU.
    """

    name: str
    kind: str
    requires_grad: bool = False
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {', '.join((self.kind, *self.notes))}"


@dataclass(frozen=True, repr=False)
class AuditedSituation(Displayable):
    """Calls of a Function with arguments of the same kinds, and what a check says of them.

    Attributes:
        inputs: the arguments.
        calls: how many calls there were.
        checked: at how many of them, of those that were kept, the gradient was checked.
        verdict: the worst of these checks; ``"meant"`` where the gradient is meant to be no derivative, ``"unchecked"``
            where there was no check.
        reason: why it cannot be told, is meant so, or was not checked; ``str`` of it.
        how: ``"entries"`` (a whole check), ``"slice"`` (a few rows of the batch), ``"directions"`` (random ones),
            ``"smaller"`` (wrong along directions, and then at smaller inputs entry by entry).
        directions: along how many of them each input moved.
        tests: those that made the calls, under ``pytest --autograd-audit``.
        dtype: what the check computed in.
        report: the ordinary report on one call, or None.
    """

    inputs: tuple[AuditedInput, ...]
    calls: int
    checked: int = 0
    verdict: AuditVerdict = "unchecked"
    reason: Phrase | str = ""
    how: How = ""
    directions: int = 0
    tests: tuple[str, ...] = ()
    dtype: str = ""
    report: GradcheckReport | None = field(default=None, repr=False)

    @property
    def order2(self) -> Verdict | None:
        """The verdict on second derivatives; None where they were not looked at."""
        return None if self.report is None or self.report.order2 is None else self.report.order2.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of the check, most serious first."""
        return () if self.report is None else self.report.findings

    @property
    def cause(self) -> Finding | None:
        """The finding that says why it is wrong, or what its risk is; None where it is meant so."""
        kinds = {"wrong": ("bug", "lint"), "meant": ()}.get(self.verdict, ("lint",))  # else a bug was not confirmed
        return next((f for f in self.findings if f.kind in kinds), None)

    @property
    def message(self) -> str:
        """Say why it is wrong or cannot be told, in the language of the moment; empty where it is right."""
        if self.cause is not None:
            return self.cause.message
        return str(Phrase("audit.unexplained") if self.verdict == "wrong" and not self.reason else self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` writes it."""
        fix = next((f.fix for f in self.findings if f.fix is not None), None)
        return {
            "inputs": [str(one) for one in self.inputs],
            "verdict": _in_words(self.verdict),
            "order2": self.order2,
            "codes": [f.code for f in self.findings],
            "message": self.message,
            "fix": None if fix is None else {"line": fix.line, "before": fix.before, "source": fix.source},
            "calls": self.calls,
            "checked": self.checked,
            "how": self.how,
            "dtype": self.dtype,
            "tests": list(self.tests),
        }

    def __repr__(self) -> str:
        return f"<AuditedSituation {'; '.join(map(str, self.inputs))}: {self.verdict}>"


@dataclass(frozen=True, repr=False)
class AuditedFunction(Displayable):
    """A Function, or an operation of ``torch.library``, that a program called.

    Attributes:
        name: such as ``"LayerNorm"`` or ``"mylib::swish"``.
        module: where it was defined.
        file, line: of its first line; None where there is no source.
        cell: number of the notebook's cell that it was written in, or None.
        package: the installed package that it comes with, and its version: ``"zuko 1.6.0"``; else empty.
        situations: worst first.
        calls: how many calls there were with a gradient to follow.
        left_out: how many of them were not kept, and so not checked.
        without_gradient: further calls that nothing can be differentiated through.
        findings: what ``torch.library.opcheck`` says against the registration of an operation.
    """

    name: str
    module: str
    file: str | None
    line: int | None
    situations: tuple[AuditedSituation, ...] = ()
    calls: int = 0
    left_out: int = 0
    without_gradient: int = 0
    findings: tuple[Finding, ...] = ()
    cell: int | None = None
    package: str = ""

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that made the calls whose verdict is the function's."""
        worst = (test for one in self.situations if one.verdict == self.verdict for test in one.tests)
        return tuple(dict.fromkeys(worst))

    @property
    def verdict(self) -> AuditVerdict:
        """The verdict of the worst situation."""
        return min((s.verdict for s in self.situations), key=RANK.__getitem__, default="unchecked")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` writes it."""
        names = ("name", "module", "package", "file", "line", "calls", "left_out", "without_gradient")
        facts = {name: getattr(self, name) for name in names}
        findings = [{"code": finding.code, "message": finding.message} for finding in self.findings]
        return {**facts, "situations": [situation.to_dict() for situation in self.situations], "findings": findings}

    def __repr__(self) -> str:
        return f"<AuditedFunction {self.name}: {self.verdict}, {plural(len(self.situations), 'situation')}>"


@dataclass(frozen=True, repr=False)
class AuditReport(Redactable["AuditReport"]):
    """Every custom gradient that a program used, checked where it was used.

    Attributes:
        functions: worst first.
        notes: what could not be seen or checked, and why, one sentence each (``str`` of it).
        seconds: wall time of the checks.
        complete: False when the checks were interrupted, or the program did not reach its end.
        torch, nbautograd: versions.
        name: under which its text says that it is found.
    """

    functions: tuple[AuditedFunction, ...] = ()
    notes: tuple[Phrase, ...] = ()
    seconds: float = 0.0
    complete: bool = True
    torch: str = ""
    nbautograd: str = __version__
    name: str = field(default="report", compare=False)

    @property
    def verdict(self) -> AuditVerdict:
        """The verdict of the worst Function."""
        return min((f.verdict for f in self.functions), key=RANK.__getitem__, default="unchecked")

    @property
    def wrong(self) -> tuple[AuditedFunction, ...]:
        """The Functions that are wrong in some situation."""
        return tuple(f for f in self.functions if f.verdict == "wrong")

    def raise_if_wrong(self) -> AuditReport:
        """Return the report itself, or raise GradcheckError with its text when a gradient in it is wrong."""
        if self.wrong:
            raise GradcheckError("report.as_text", text=render("text", self))
        return self

    def without_blocks(self) -> AuditReport:
        """Return the report without the numbers of its Jacobians, small enough to be sent to another process."""
        return replace(self, functions=tuple(_without_blocks(function) for function in self.functions))

    def save_repro(self, folder: Any, *, include_data: bool = False) -> Any:
        """Write a script for each wrong Function that shows it with torch alone, ready for its author.

        Args:
            folder: where to write; it is made where it does not exist.
            include_data: True to write the inputs that the program really used. Otherwise inputs of the same kinds are
                made up, and tried: the gradient is wrong at them as well.

        Returns:
            One ``Reproduction`` for each wrong Function: its ``script`` and ``data``, or why there is none.

        Raises:
            CallError: for a report that was not made in this session.
        """
        return render("reproduction", self, folder, include_data=include_data)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as ``nbautograd audit --json`` writes it."""
        return {
            "verdict": _in_words(self.verdict),
            "functions": [function.to_dict() for function in self.functions],
            "notes": [str(note) for note in self.notes],
            "complete": self.complete,
            "torch": self.torch,
            "nbautograd": self.nbautograd,
        }

    def __repr__(self) -> str:
        return f"<AuditReport {self.verdict}: {len(self.wrong)} of {len(self.functions)} Functions wrong>"


def _in_words(verdict: AuditVerdict) -> str:
    return verdict if verdict != "unchecked" else "not checked"


def joined(reports: Sequence[AuditReport]) -> AuditReport:
    """Return one report of several, such as those of the processes of a test run.

    A Function that was met in several of them is one; of situations that look alike the worst stays.
    """
    same: dict[tuple[Any, ...], list[AuditedFunction]] = {}
    for function in (function for report in reports for function in report.functions):
        same.setdefault((function.module, function.name, function.file, function.line), []).append(function)
    functions = sorted(map(_joined, same.values()), key=lambda function: RANK[function.verdict])
    notes = list({str(note): note for report in reports for note in report.notes}.values())
    if functions:
        notes = [note for note in notes if note.message_id != "audit.no_functions"]
    return AuditReport(
        functions=tuple(functions),
        notes=tuple(notes),
        seconds=sum(report.seconds for report in reports),
        complete=all(report.complete for report in reports),
        torch=next((report.torch for report in reports), ""),
    )


def _joined(functions: Sequence[AuditedFunction]) -> AuditedFunction:
    alike: dict[tuple[AuditedInput, ...], AuditedSituation] = {}
    for situation in (situation for function in functions for situation in function.situations):
        known = alike.get(situation.inputs, situation)
        worst = min(known, situation, key=lambda one: RANK[one.verdict])
        more = known is not situation
        calls, checked = (getattr(known, name) + more * getattr(situation, name) for name in ("calls", "checked"))
        tests = tuple(dict.fromkeys((*known.tests, *situation.tests)))
        alike[situation.inputs] = replace(worst, calls=calls, checked=checked, tests=tests)
    counts = {name: sum(getattr(f, name) for f in functions) for name in ("calls", "left_out", "without_gradient")}
    ordered = sorted(alike.values(), key=lambda situation: RANK[situation.verdict])
    return replace(functions[0], situations=tuple(ordered), **counts)


def _without_blocks(function: AuditedFunction) -> AuditedFunction:
    situations = tuple(
        one if one.report is None else replace(one, report=_bare(one.report)) for one in function.situations
    )
    return replace(function, situations=situations)


def _bare(report: GradcheckReport) -> GradcheckReport:
    second = None if report.order2 is None else replace(report.order2, blocks={})
    return replace(report, blocks={}, order2=second)
