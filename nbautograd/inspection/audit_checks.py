"""The checks of an audit: first all situations briefly, then the worst in full, and a report of plain data."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.core import formats, stumbles
from nbautograd.core.checking.block import GradcheckReport, Verdict
from nbautograd.core.checking.budget import NOT_INTERRUPTED, Budget, OutOfBudgetError, budgeted
from nbautograd.core.checking.gradcheck import gradcheck
from nbautograd.core.checking.meant import Meant, joined, meant_pairs
from nbautograd.core.checking.other_points import shrunk
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.progress import Tell
from nbautograd.core.checking.quiet import quiet
from nbautograd.core.display import Phrase
from nbautograd.core.explaining.program import cell_number
from nbautograd.core.findings import Finding, of_stumble
from nbautograd.core.kernel.compiled import WAYS, compiled
from nbautograd.core.recording.argument_copies import copied, tensors_inside
from nbautograd.core.recording.watching import (
    CopiedCall,
    FunctionWatch,
    WatchedFunction,
    compiled_meanwhile,
)
from nbautograd.core.stumbles import RAISED, any_errors, hands_over, record, users_errors
from nbautograd.core.torch_private import library
from nbautograd.core.torch_private.collectives import without_collectives
from nbautograd.core.user_source import read_source
from nbautograd.errors import CallError, NbautogradError
from nbautograd.inspection.audit_report import (
    OTHER_GRADS,
    AuditedFunction,
    AuditedSituation,
    AuditReport,
    AuditVerdict,
    How,
)
from nbautograd.inspection.audited_apart import Judgement, Note, checked_apart
from nbautograd.inspection.audited_calls import (
    ALONG,
    Pair,
    audited_input,
    defaults,
    double,
    dtype_of,
    elements,
    manageable,
    package_of,
    read_elsewhere,
    reading,
    same_function,
    target_of,
)
from nbautograd.inspection.compared_compiled import row as compiled_row
from nbautograd.inspection.compared_compiled import told
from nbautograd.inspection.comparison import FUNC_GRAD
from nbautograd.inspection.evidence import (
    AVERAGED,
    along_directions,
    delivered_elsewhere,
    made_up_inputs,
    off_by_a_step,
    right_on_average,
    second_witness,
    wrong_for_asymmetric_changes_alone,
)

QUICK = 1_000  # elements of inputs that are looked at one by one in less time than directions take to be sure
EVALUATIONS = 4  # forwards for each element of a whole check: a central difference, and another to look again
SMALL = 600  # elements that a large wrong one is cut down to, to be explained
LEAST = 2.0  # seconds that are given to one made-up input
EXCUSE = 10.0  # seconds at least for what may excuse a wrong gradient, a third of the grace past a budget
SAID = 200  # letters of an error that are told
# what the engine refuses after backward has returned, so that the program's own cannot have ended well
REFUSED = {
    f"causes.exception_{error}"
    for error in ("number_of_gradients", "gradient_for_no_tensor", "shape", "returned_no_tensor", "complex")
}
# findings on what a gradient is rather than on how backward goes about it: one that is clipped is not linear
OF_VALUES = {"ignores_grad_output", "affine_in_grad_output", "nonlinear_in_grad_output", "nondeterministic_backward"}


@dataclass(frozen=True)
class Kept:
    """Material of a script that shows a wrong gradient.

    Attributes:
        cls: the Function, or the one that torch made for an operation.
        call: the arguments as the program gave them.
        inputs: those at which the check called it wrong.
    """

    cls: type
    call: CopiedCall
    inputs: tuple[Any, ...]


_kept: dict[int, tuple[AuditReport, dict[tuple[int, int], Kept]]] = {}
MOST_REPORTS = 2  # whose arguments are remembered, each at most 256 MiB


def copied_calls(report: AuditReport) -> dict[tuple[int, int], Kept]:
    """Return what is remembered of a report's wrong situations, by positions of Function and situation.

    Raises:
        CallError: for a report that was not made in this session, or long ago.
    """
    known, kept = _kept.get(id(report), (None, {}))
    if known is not report:
        raise CallError("audit.not_kept")
    return kept


class Checks:
    """Checks what a watch has kept.

    Args:
        watch: what was seen.
        ended: why the program did not reach its end, None where it did.
        name: under which its report is found.
        backends: of torch.compile, to compare with.
        budget, per_function: seconds.
        tell: told how far it is.
    """

    def __init__(
        self,
        watch: FunctionWatch,
        ended: Phrase | None,
        name: str,
        backends: tuple[Any, ...],
        budget: float,
        per_function: float,
        tell: Tell | None,
    ) -> None:
        self.watch, self.ended, self.name, self.backends = watch, ended, name, backends
        self.per_function, self.tell = per_function, tell
        self.begin = time.perf_counter()
        self.end = self.begin + budget
        self.budget = budget
        self.complete = True
        self.steps = self.directions = 0  # the latter of the last comparison along directions
        self.cases = [case for found in self.watch.functions.values() for case in _cases(found)]

    def run(self) -> AuditReport:
        """Look at all situations briefly, then at those in full that are worst, and make the report."""
        try:
            with without_collectives():
                checked_apart(self.cases, self._look, self.end, self.tell)
        except KeyboardInterrupt:
            self.complete = False
        return self._report()

    def _look(self, cases: Sequence[Judgement], note: Note, tell: Tell | None) -> None:
        """Check one call of each situation before the others of any, and all of them before causes are looked for."""
        self.tell = tell
        for case in cases:
            self._step(case)
            with self._time_of(case) as seconds:
                self._first_look(case, case.situation.copies[:1], seconds)
            note(case)
        for case in cases:
            with self._time_of(case) as seconds:
                self._first_look(case, case.situation.copies[1:], seconds)
            note(case)
        for case in sorted(cases, key=lambda case: case.rank):
            self._step(case)
            with self._time_of(case) as seconds:
                self._second_look(case, seconds)
                self._registration(case, seconds)
                self._compile(case)
            note(case)

    def _step(self, case: Judgement) -> None:
        if self.tell is not None:
            name = library.name_of(case.watched.cls)
            self.tell(100 * self.steps, 200 * len(self.cases), str(Phrase("audit.checking", function=name)))
        self.steps += 1

    @contextlib.contextmanager
    def _time_of(self, case: Judgement) -> Iterator[float]:
        """Give the seconds that are left for a case; what it takes is counted to its Function.

        One that is still unchecked shares them with those that are unchecked as well.
        """
        cls, start = case.watched.cls, time.perf_counter()
        spent = sum(one.spent for one in self.cases if one.watched.cls is cls)
        left, in_all = self.per_function - spent, self.end - start
        if case.outcome.verdict == "unchecked":
            waiting = [one.watched.cls for one in self.cases if one.outcome.verdict == "unchecked"]
            left, in_all = left / waiting.count(cls), in_all / len(set(waiting))
        try:
            yield min(left, in_all)
        finally:
            case.spent += time.perf_counter() - start

    def _first_look(self, case: Judgement, calls: Sequence[CopiedCall], seconds: float) -> None:
        """Check first derivatives at these calls, until one is wrong or time is up."""
        if not case.situation.copies:
            case.outcome = dataclasses.replace(case.outcome, reason=case.situation.lacking or "")
            return
        end = time.perf_counter() + seconds
        for call in calls:
            left = end - time.perf_counter()
            if left <= 0 or case.outcome.verdict == "wrong":
                break
            outcome, inputs = self._checked(case, call, left)
            self._take(case, call, outcome, inputs)
        if case.outcome.verdict == "unchecked":
            case.outcome = dataclasses.replace(case.outcome, reason=self._out_of_time(case))

    def _out_of_time(self, case: Judgement) -> Phrase:
        """Return the sentence on a check that did not end, and at which size it would have."""
        seconds = self.budget if self.end - time.perf_counter() <= 0 else self.per_function
        most = max(1, int(self.per_function / (EVALUATIONS * case.each))) if case.each else 0
        if not 0 < most < case.situation.copies[0].elements:  # or forwards take longer at other points than at this one
            return Phrase("audit.out_of_time", seconds=f"{seconds:g}")
        return Phrase("audit.out_of_time_size", seconds=f"{seconds:g}", each=f"{case.each:.2g}", count=most)

    def _take(self, case: Judgement, call: CopiedCall, outcome: AuditedSituation, inputs: tuple[Any, ...]) -> None:
        """Keep the worse of two outcomes; one that cannot be told says less than one that can."""
        before = case.outcome
        checked = before.checked + (outcome.verdict in ("right", "meant", "wrong"))
        worse = outcome.verdict == "wrong" or (outcome.verdict, before.verdict) == ("meant", "right")
        if worse or before.verdict in ("unchecked", "cannot tell"):
            case.outcome, case.call, case.inputs = outcome, call, inputs
        case.outcome = dataclasses.replace(case.outcome, checked=checked)

    def _second_look(self, case: Judgement, seconds: float) -> None:
        """Find cause and fix of what is wrong, and look at the second derivatives of what is right."""
        outcome = case.outcome
        if case.call is None or outcome.how not in ("entries", "slice") or outcome.verdict not in ("wrong", "right"):
            return
        arguments = (*case.call.arguments, *case.call.keywords.values())
        if seconds <= 0 or tensors_inside(arguments):  # copies made for one check alone
            return
        target, _ = reading(case.target, arguments, [one.name for one in outcome.inputs])
        with defaults(case.call, case.inputs):
            report = self._gradcheck(target, case.inputs, None, "fix", seconds, case.meant)
        if report.verdict == outcome.verdict:
            reason = "" if outcome.reason == Phrase("audit.wrong_with_objects") else outcome.reason
            case.outcome = dataclasses.replace(outcome, report=report, reason=reason)

    def _registration(self, case: Judgement, seconds: float) -> None:
        """Have torch look at how an operation was registered, once for each operation."""
        op = library.operation_of(case.watched.cls)
        if op is None or not case.situation.copies or seconds <= 0:
            return
        if all(one.registered is None for one in self.cases if one.watched.cls is case.watched.cls):
            case.registered = _opchecked(op, case.situation.copies[0])

    def _compile(self, case: Judgement) -> None:
        """Compare what is right with itself under torch.compile, once for each Function."""
        if not self.backends or case.call is None or case.outcome.verdict not in ("right", "meant"):
            return
        arguments = (*case.call.arguments, *case.call.keywords.values())
        known = any(one.compiled is not None for one in self.cases if one.watched.cls is case.watched.cls)
        if known or tensors_inside(arguments) or time.perf_counter() > self.end:
            return
        found = compiled(case.target, case.target, arguments, self.backends, ways=[w for w in WAYS if w != FUNC_GRAD])
        case.compiled = tuple(map(compiled_row, found))

    def _gradcheck(
        self,
        target: Any,
        inputs: tuple[Any, ...],
        order: int | None,
        hints: str,
        seconds: float,
        meant: Mapping[Pair, Meant],
    ) -> GradcheckReport:
        budget = Budget(seconds=max(0.05, seconds))
        report = gradcheck(target, inputs, order=order, hints=hints, budget=budget, progress=self._part(), meant=meant)
        return _not_interrupted(report)

    def _verdict(
        self, target: Any, inputs: tuple[Any, ...], seconds: float, meant: Mapping[Pair, Meant]
    ) -> GradcheckReport:
        """Return a report as soon as it is known that a gradient is wrong: why is asked in the second look."""
        first = _FirstVerdict(self._part())
        budget = Budget(seconds=max(0.05, seconds))
        report = gradcheck(target, inputs, order=1, hints="what", budget=budget, progress=first, meant=meant)
        if first.wrong is not None:
            return first.wrong
        return _not_interrupted(report)

    def _part(self) -> Tell | None:
        if self.tell is None:
            return None
        tell, begin, total = self.tell, 100 * (self.steps - 1), 200 * len(self.cases)
        return lambda done, of, what: tell(begin + min(99, 100 * done // max(1, of)), total, what)

    def _checked(self, case: Judgement, call: CopiedCall, seconds: float) -> tuple[AuditedSituation, tuple[Any, ...]]:
        """Check one call: in double precision where forward computes the same in it, else as it was called."""
        arguments = (*call.arguments, *call.keywords.values())
        end, outcome = time.perf_counter() + seconds, case.outcome
        try:
            with budgeted(Budget(seconds=max(0.05, seconds))):
                names = [one.name for one in outcome.inputs]
                target, inputs = reading(case.target, arguments, names)
                twin, doubled = reading(case.target, copied(arguments, double), names)
                if same_function((target, inputs), (twin, doubled)):
                    target, inputs = twin, doubled
                with defaults(call, inputs):
                    start = time.perf_counter()
                    part, how = manageable(target, inputs)
                    case.each = time.perf_counter() - start
        except OutOfBudgetError:
            return outcome, arguments
        except KeyboardInterrupt:
            raise
        except RAISED as error:
            return dataclasses.replace(outcome, verdict="cannot tell", reason=_reason_of(error)), arguments
        with defaults(call, inputs):
            return self._judged(case, call, (target, inputs), (part, how), end)

    def _judged(
        self,
        case: Judgement,
        call: CopiedCall,
        whole: tuple[Any, tuple[Any, ...]],
        looked_at: tuple[Any, How],
        end: float,
    ) -> tuple[AuditedSituation, tuple[Any, ...]]:
        """Check one call with these inputs, or a part of them, until a moment, and weigh what the check says."""
        outcome, (target, inputs) = case.outcome, whole
        meant, decided = dict[Pair, Meant](), False
        half = Budget(seconds=max(0.05, (end - time.perf_counter()) / 2))  # the rest is for random directions at least
        # what the user's code raises the check says
        with contextlib.suppress(OutOfBudgetError), budgeted(half), users_errors() as raised:
            meant, decided = meant_pairs(Problem(target, inputs)), True
        decided = decided or raised.failed
        case.meant = {**case.meant, **meant}
        try:
            quick = EVALUATIONS * elements(looked_at[0]) * case.each < (end - time.perf_counter()) / 2
            report, inputs, how = self._first_verdict(target, inputs, *looked_at, end, meant, quick)
        except RAISED as error:
            return dataclasses.replace(outcome, verdict="cannot tell", reason=_reason_of(error)), inputs
        if report is None:
            return outcome, inputs
        dtype = dtype_of(inputs)
        verdict: AuditVerdict = report.verdict
        inexact = any(block.reason == "approximate" for block in report.blocks.values())
        reason: Phrase | str = report.reason if verdict == "cannot tell" or inexact else ""
        tied = next((f for f in report.findings if f.code == "right_for_symmetric"), None)
        if verdict == "right" and tied is not None:
            verdict, reason = "cannot tell", Phrase("audit.symmetric", input=tied.params["input"])
        if verdict == "wrong" and {f.code for f in report.findings if f.kind == "bug"} == {OTHER_GRADS}:
            verdict = "right"
        if report.complete is False and report.verdict != "wrong":
            verdict = "cannot tell"
            reason = self._out_of_time(case) if any(f.code == "stopped" for f in report.findings) else reason
        if meant and verdict == "wrong" and _of_values(report, meant):
            verdict = "right"
        if meant and verdict == "right":
            verdict, reason = "meant", joined(meant)
            report = dataclasses.replace(report, verdict="cannot tell", reason=reason)
        if verdict == "cannot tell":
            reason = _holding_nan(outcome, (*call.arguments, *call.keywords.values())) or reason
        if verdict == "wrong" and not decided and not any(f.kind == "bug" and f.code != ALONG for f in report.findings):
            verdict, reason = "cannot tell", self._out_of_time(case)
        elif verdict == "wrong":
            verdict, reason = self._reconsidered(case, call, (target, inputs), report, end - time.perf_counter())
        done = dataclasses.replace(
            outcome, verdict=verdict, reason=reason, how=how, dtype=dtype, report=report,
            directions=self.directions if how == "directions" else 0,
        )  # fmt: skip
        return done, inputs

    def _first_verdict(
        self,
        target: Any,
        inputs: tuple[Any, ...],
        part: tuple[Any, ...],
        how: How,
        end: float,
        meant: Mapping[Pair, Meant],
        quick: bool,
    ) -> tuple[GradcheckReport | None, tuple[Any, ...], How]:
        """Compare along random directions first, unless all is quick; then entry by entry as long as there is time."""
        if how != "directions" and elements(part) <= QUICK and quick:
            return self._verdict(target, part, end - time.perf_counter(), meant), part, how
        along, small, by = self._along_directions(target, inputs, end - time.perf_counter(), meant)
        if how == "directions" or along is None or along.verdict == "wrong":
            return along, small, by
        report = self._verdict(target, part, end - time.perf_counter(), meant)
        if along.verdict == "right" and not report.complete and report.verdict == "cannot tell":
            return along, inputs, "directions"
        return report, part, how

    def _reconsidered(
        self,
        case: Judgement,
        call: CopiedCall,
        whole: tuple[Any, tuple[Any, ...]],
        report: GradcheckReport,
        seconds: float,
    ) -> tuple[Verdict, Phrase | str]:
        """Return verdict and reason of a gradient that a check calls wrong, by what an audit knows besides."""
        target, inputs = whole
        along = any(finding.code == ALONG for finding in report.findings)
        mismatched = along or any(block.verdict == "mismatch" for block in report.blocks.values())
        if {finding.code for finding in report.findings if finding.kind == "bug"} == {"wrong_elsewhere"}:
            tied = wrong_for_asymmetric_changes_alone(target, inputs)
            return ("cannot tell", Phrase("audit.symmetric", input=tied)) if tied else ("wrong", "")
        raised = next((finding for finding in report.findings if finding.code == "exception"), None)
        if raised is not None and raised.message_id not in REFUSED and self._only_when_run_again(case, target):
            return "cannot tell", Phrase("audit.only_run_again", said=raised.phrase("what"))
        if mismatched:
            left = Budget(seconds=max(EXCUSE, seconds))
            try:
                with budgeted(left), any_errors("evidence", decides=True):
                    excuse = self._excuse(case, whole, report)
                    if excuse is not None:
                        return excuse
            except OutOfBudgetError:
                return "cannot tell", Phrase("audit.one_witness")
        return "wrong", "" if target is case.target else Phrase("audit.wrong_with_objects")

    def _excuse(
        self, case: Judgement, whole: tuple[Any, tuple[Any, ...]], report: GradcheckReport
    ) -> tuple[Verdict, Phrase] | None:
        """Return the verdict on a gradient that differs, and why it is not wrong; None where it is."""
        target, inputs = whole
        elsewhere = "" if target is case.target else read_elsewhere(target, inputs)
        if elsewhere:
            return "cannot tell", Phrase("audit.read_elsewhere", input=elsewhere)
        tied = wrong_for_asymmetric_changes_alone(target, inputs)
        if tied:
            return "cannot tell", Phrase("audit.symmetric", input=tied)
        stopped, off = off_by_a_step(target, inputs)
        if stopped:
            return "cannot tell", Phrase("checking.because_approximate", input=stopped, size=formats.error(off))
        missing, counted = delivered_elsewhere(target, inputs)
        if missing:
            return ("right", Phrase("audit.counted", input=missing)) if counted else (
                "cannot tell", Phrase("audit.delivered", input=missing)
            )  # fmt: skip

        def wrong_too(drawn: tuple[Any, ...]) -> bool:
            return self._verdict(target, drawn, LEAST, case.meant).verdict == "wrong"

        if not second_witness(target, inputs, report, lambda: made_up_inputs(inputs, wrong_too, 1) is not None):
            return "cannot tell", Phrase("audit.one_witness")
        with contextlib.suppress(OutOfBudgetError):  # then nothing excuses it
            averaged = right_on_average(target, inputs, case.meant)
            return ("cannot tell", Phrase("audit.on_average", input=averaged, count=AVERAGED)) if averaged else None
        return None

    def _only_when_run_again(self, case: Judgement, target: Any) -> bool:
        """Return True where the backward that raises on copies of a call's arguments did not raise in the program.

        Copies cut what connects an argument with another, such as a closure over what was computed from it. Where
        objects are among the arguments a backward that the program never ran is no evidence either.
        """
        if case.situation.raised:
            return False
        return case.situation.backwards > 0 or target is not case.target

    def _along_directions(
        self, target: Any, inputs: tuple[Any, ...], seconds: float, meant: Mapping[Pair, Meant]
    ) -> tuple[GradcheckReport | None, tuple[Any, ...], How]:
        """Compare the gradient with differences along random directions; None where time is up.

        A wrong one is checked entry by entry at a smaller size, whose report tells more where it is wrong as well.
        """
        try:
            with budgeted(Budget(seconds=max(0.05, seconds))):
                along, self.directions = along_directions(target, inputs, meant)
                whole = Problem(target, inputs)
                small = shrunk(whole, SMALL, 6, 0) if along.verdict == "wrong" else None
        except OutOfBudgetError:
            return None, inputs, "directions"
        if small is not None:
            with any_errors("audit at a smaller size"):
                report = self._gradcheck(target, small.inputs, 1, "fix", seconds, meant)
                if report.verdict == "wrong":
                    return report, small.inputs, "entries" if small is whole else "smaller"
        return along, inputs, "directions"

    def _report(self) -> AuditReport:
        functions: list[AuditedFunction] = []
        compiled_notes: list[Phrase] = []
        kept: dict[tuple[int, int], Kept] = {}
        by_class: dict[type, list[Judgement]] = {cls: [] for cls in self.watch.functions}
        for case in self.cases:
            by_class[case.watched.cls].append(case)
        ordered = sorted(by_class.items(), key=lambda item: min((case.rank for case in item[1]), default=(9,)))
        for cls, cases in ordered:
            cases.sort(key=lambda case: case.rank)
            for k, case in enumerate(cases):
                if case.outcome.verdict == "wrong" and case.call is not None:
                    kept[len(functions), k] = Kept(cls, case.call, case.inputs)
            registered = next((case.registered for case in cases if case.registered is not None), ())
            changed, said = told([row for case in cases for row in case.compiled or ()])
            functions.append(_audited(self.watch.functions[cls], cases, (*registered, *changed)))
            name = functions[-1].name
            compiled_notes += [Phrase("views.audit.reason", function=name, reason=one) for one in said]
        seconds = time.perf_counter() - self.begin
        notes = (*_notes(self.watch, functions, self.complete), *compiled_notes)
        if self.ended is not None:
            notes = (self.ended, *notes)
        complete = self.complete and self.ended is None
        torch_version = str(torch.__version__)
        report = AuditReport(tuple(functions), notes, seconds, complete, torch_version, name=self.name)
        _kept[id(report)] = report, kept
        while len(_kept) > MOST_REPORTS:
            del _kept[next(iter(_kept))]
        return report


def _of_values(report: GradcheckReport, meant: Mapping[Pair, Meant]) -> bool:
    """Return True where all that is wrong is a gradient that is no derivative, and meant to be none."""
    inputs = {position for _, position in meant}
    bugs = [finding for finding in report.findings if finding.kind == "bug"]
    if any(block.verdict == "mismatch" for block in report.blocks.values()):
        return False
    return all(f.code in OF_VALUES and (f.where is None or f.where[1] in inputs) for f in bugs)


def _not_interrupted(report: GradcheckReport) -> GradcheckReport:
    """Return a report that came to its end, or to that of its budget; an interrupt ends the audit as well."""
    if not report.complete and not any(finding.code in NOT_INTERRUPTED for finding in report.findings):
        raise KeyboardInterrupt
    return report


class _FirstVerdict:
    """Told how far a check is; ends it once the gradient is known to be wrong.

    Args:
        tell: who is told besides.

    Attributes:
        wrong: the report of that moment, None where there was none.
    """

    def __init__(self, tell: Tell | None) -> None:
        self._tell = tell
        self.wrong: GradcheckReport | None = None

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._tell is not None:
            self._tell(done, total, what)

    def verdict_known(self, report: GradcheckReport) -> None:
        """End the check of a gradient that differs; what else may be wrong is known by its findings alone."""
        if report.verdict == "wrong" and any(block.verdict == "mismatch" for block in report.blocks.values()):
            self.wrong = report
            raise KeyboardInterrupt


def _cases(watched: WatchedFunction) -> Iterator[Judgement]:
    """Yield the situations of a Function, the inputs described by the names that its source gives them."""
    target, names, source = target_of(watched.cls)
    for key, situation in watched.situations.items():
        call = situation.copies[0] if situation.copies else None
        given = None if call is None else (*call.arguments, *call.keywords.values())
        inputs = tuple(audited_input(names, k, key, given) for k in range(len(key)))
        outcome = AuditedSituation(inputs, situation.calls, tests=tuple(situation.callers))
        yield Judgement(watched, situation, target, source, outcome)


def _holding_nan(outcome: AuditedSituation, arguments: tuple[Any, ...]) -> Phrase | None:
    """Return which input was NaN already when the program passed it, None where none was."""
    for given, item in zip(outcome.inputs, arguments, strict=False):
        count = int(item.isnan().sum()) if isinstance(item, Tensor) and item.is_floating_point() else 0
        if count:
            return Phrase("audit.input_nan", input=given.name, count=count, total=item.numel())
    return None


def _reason_of(error: BaseException) -> Phrase:
    if isinstance(error, NbautogradError):
        return Phrase(error.message_id, **error.params)
    stumble = record(error, "audit", decides=True)
    if stumble is not None:
        return Phrase("checking.stumbled.what", **of_stumble(stumble).params)
    words = _short(error)
    return Phrase("audit.raised", error=f"{type(error).__name__}: {words}" if words else type(error).__name__)


@hands_over
def _run_opcheck(*args: Any, **options: Any) -> Any:
    return torch.library.opcheck(*args, **options)


def _opchecked(op: library.Operation, call: CopiedCall) -> tuple[Finding, ...]:
    """Return what ``torch.library.opcheck`` says against the registration of an operation."""
    results: dict[str, Any]
    with quiet():
        try:
            results = _run_opcheck(op.overload, call.arguments, call.keywords, raise_exception=False)
        except Exception as error:
            record(error, "opcheck")
            results = {"opcheck": error}
    failed = {test: said for test, said in results.items() if isinstance(said, BaseException)}
    return tuple(
        Finding(f"opcheck_{test.removeprefix('test_')}", "lint", "audit.opcheck", {"test": test, "said": _short(said)})
        for test, said in failed.items()
    )


def _short(error: BaseException) -> str:
    words = " ".join(stumbles.said(error).split())
    return words if len(words) <= SAID else f"{words[:SAID]}..."


def _audited(watched: WatchedFunction, cases: Sequence[Judgement], findings: tuple[Finding, ...]) -> AuditedFunction:
    op = library.operation_of(watched.cls)
    source = cases[0].source if cases else read_source(watched.cls)
    backward = None if op is None else getattr(op.backward, "__code__", None)
    file, line = (None, None) if source is None else (source.file, source.first_line)
    if backward is not None:
        file, line = backward.co_filename, backward.co_firstlineno
    kept = sum(len(situation.copies) for situation in watched.situations.values())
    return AuditedFunction(
        name=watched.cls.__qualname__.rpartition("<locals>.")[2] if op is None else op.name,
        module=watched.cls.__module__ if op is None else str(getattr(op.backward, "__module__", "")),
        file=file,
        line=line,
        situations=tuple(case.outcome for case in cases),
        calls=watched.calls,
        left_out=watched.calls - kept,
        without_gradient=watched.without_gradient,
        findings=findings,
        cell=None if file is None else cell_number(file, vars(sys.modules["__main__"])),
        package=package_of(watched.cls.__module__ if op is None else str(getattr(op.backward, "__module__", ""))),
    )


def _notes(watch: FunctionWatch, functions: Sequence[AuditedFunction], complete: bool) -> Iterator[Phrase]:
    """Yield what was not seen, and what was not checked."""
    unseen = watch.unseen
    if not functions:
        yield Phrase("audit.no_functions")
    if not complete:
        situations = [situation for function in functions for situation in function.situations]
        checked = sum(situation.verdict != "unchecked" for situation in situations)
        yield Phrase("audit.interrupted", checked=checked, count=len(situations))
    if unseen.compiled or compiled_meanwhile():
        yield Phrase("audit.compiled")
    for name, count in unseen.batched.items():
        yield Phrase("audit.batched", function=name, count=count)
    if unseen.traced:
        yield Phrase("audit.traced", count=unseen.traced)
    if unseen.processes:
        yield Phrase("audit.processes", count=unseen.processes)
    for found in watch.functions.values():
        if found.others:
            yield Phrase(
                "audit.others", function=library.name_of(found.cls), count=found.others, most=len(found.situations)
            )
    for error, count in watch.errors.items():
        yield Phrase("audit.error", error=error, count=count)
