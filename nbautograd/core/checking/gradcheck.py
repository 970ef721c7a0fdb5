"""gradcheck and jacobian: the two calls that compare what backward says with what the function does."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping
from typing import Any

from nbautograd.core import formats
from nbautograd.core.checked import note_check
from nbautograd.core.checking import entry_curve, report_verdict
from nbautograd.core.checking.block import GradcheckReport, JacobianBlock, JacobianReport, Verdict
from nbautograd.core.checking.budget import DEFAULT, Budget, Clock, budgeted, stopped, validated_budget
from nbautograd.core.checking.exactness import settle
from nbautograd.core.checking.functions_inside import CheckedInside, check_functions_inside, with_findings_inside
from nbautograd.core.checking.meant import Meant
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.progress import Tell, watched
from nbautograd.core.checking.repair.search import Mending
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.display import Phrase
from nbautograd.core.findings import Finding, Hints, limit_findings, validated_hints
from nbautograd.core.stumbles import collected, own_errors
from nbautograd.errors import CallError


def gradcheck(
    fn: Any,
    inputs: Any,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    order: int | None = None,
    seed: int = 0,
    hints: str = "fix",
    budget: Budget | float | None = DEFAULT,
    progress: Tell | None = None,
    meant: Mapping[tuple[int, int], Meant] | None = None,
) -> GradcheckReport:
    """Compare the backward of a Function with independent witnesses, and say why where they differ.

    Central differences with Richardson's extrapolation give each doubtful entry an error bar. An entry is wrong when it
    is off by more than ten of them. In low precision, where differences drown in noise, see ``nbautograd.compare``.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        inputs: a tuple of arguments, tensors or not. Those that require grad are differentiated, or all floating ones
            if none does. A single tensor will do. Complex tensors count as pairs of real numbers.
        atol, rtol: an entry that is off by at most ``atol + rtol * |numerical|`` is right.
        eps: first step of the differences, absolute; by default by precision and size of the input.
        order: 2 lets second derivatives count in ``bool(report)`` and ``raise_if_wrong()``; 1 leaves them out. None,
            the default, checks them if the first ones are right, and reports errors as a risk.
        seed: of the random cotangents and probes, and given to all random generators before each call.
        hints: how much the findings give away: ``"none"`` says that a gradient is wrong, ``"what"`` what is wrong with
            it. ``"where"`` adds the line; ``"fix"`` adds what to do and a tried change if there is one.
        budget: seconds and memory that the check may use: a ``Budget``, a number of seconds, or None for no limit. By
            default a verdict takes as many runs as it needs, explaining it takes 60 seconds more at most, and the
            memory is 4 GiB. Given seconds also end a call of the user's code that does not return. A finding of code
            ``"stopped"`` says what was left out.
        progress: called with (steps done, steps in all, what is being done) as a large check goes on. Its method
            ``verdict_known``, if it has one, is called once, with the blocks and the verdict on first derivatives. An
            interrupt (Ctrl-C, the stop button, a KeyboardInterrupt raised here) ends the check with what it has.
        meant: the pairs (output, input) whose gradient is deliberately no derivative; an audit does not judge them.

    Returns:
        The report: ``verdict`` is on first derivatives, ``order2`` on second ones. A wrong gradient never raises.

    Raises:
        CallError: ``fn`` cannot be called, the inputs are no tuple, or there are no such hints, order or budget.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch, nbautograd
        >>> nbautograd.gradcheck(torch.sin, torch.linspace(0, 1, 5, dtype=torch.float64)).verdict
        'right'
    """
    start, given = time.perf_counter(), validated_hints(hints)
    if order not in (None, 1, 2):
        raise CallError("checking.order_unknown", given=repr(order))
    with budgeted(validated_budget(budget)) as clock, watched(progress) as tell:
        run = GradcheckRun(Problem(fn, inputs, seed, assume_grad=True), atol, rtol, eps, tell=tell, meant=meant)
        report = _reported(run, order, given, start, clock)
    entry_curve.remember_problem(report, run.problem)
    if run.problem.cls is not None:
        note_check(run.problem.cls, dict(_told_gradients(run.problem, report)))
    return report


def _told_gradients(problem: Problem, report: GradcheckReport) -> Iterator[tuple[int, Phrase | None]]:
    """Yield the arguments that were checked, each with the sentence for a picture where its gradient is wrong."""
    differs = {i for (_, i), block in report.blocks.items() if block.verdict == "mismatch"}
    wrong = differs if report.verdict == "wrong" else set()
    checked = [(report.input_names[i], problem.inputs[i]) for i in problem.differentiable]
    given = [f"{name} {str(x.dtype).removeprefix('torch.')} {formats.shape(x.shape)}".strip() for name, x in checked]
    for i in problem.differentiable:
        if (argument := problem.arguments.get(i)) is not None:
            said = {"name": report.input_names[i], "function": problem.name, "inputs": ", ".join(given)}
            yield argument, Phrase("graphs.wrong", **said) if i in wrong else None


def _reported(run: GradcheckRun, order: int | None, given: Hints, start: float, clock: Clock) -> GradcheckReport:
    """Find, judge and explain the blocks; findings are cut to the hints given, time counts from the start."""
    with run.problem.session(), collected() as stumbled:
        with own_errors("blocks", decides=True):
            run.find_blocks()
        with own_errors("curves"):
            run.add_curves()

        def known(verdict: Verdict, reason: Phrase | str = "") -> None:
            clock.verdict_known()
            so_far = GradcheckReport(
                run.problem.name, verdict, (), dict(run.blocks), run.problem.input_names, run.problem.output_names,
                run.problem.seed, time.perf_counter() - start, source=run.problem.source, reason=reason, order=order,
                identity=run.problem.identity, notes=run.problem.notes,
            )  # fmt: skip
            run.progress.verdict_known(so_far, Phrase(f"checking.known_{verdict.replace(' ', '_')}"))

        def wrong_inside(second: GradcheckRun, classes: set[type]) -> tuple[Finding, ...]:
            checked = [one for one in _functions_inside(second, given, clock, classes) if one.wrong is not None]
            return with_findings_inside(second, checked, ()) if checked else ()

        inside: tuple[CheckedInside, ...] = ()
        with own_errors("functions inside"):
            inside = _functions_inside(run, given, clock)
        with own_errors("exactness", decides=True):
            if all(one.wrong is None or one.meant for one in inside) and settle(run, Mending()):
                inside = ()
        findings = report_verdict.findings(run, Mending() if given == "fix" else None, known)
        findings = with_findings_inside(run, inside, findings)
        lacking = run.lacking or (stopped(clock, "verdict") if clock.ended else None)
        findings = (*findings, *report_verdict.notes(stumbled))
        verdict, reason = report_verdict.verdict(run, findings, lacking, stumbled)
        if run.complete:
            with run.interruptible():
                known(verdict, reason)
        look = order != 1 and verdict == "right" and run.complete
        second = report_verdict.second_order_report(run, wrong_inside, counts=order == 2) if look else None
        run.report_done()
    findings = report_verdict.joined_findings(findings, second)
    if clock.ended and verdict != "cannot tell":
        lacking = stopped(clock, "causes" if verdict == "wrong" else "second_order")
    if lacking is not None and all(finding.code != lacking.code for finding in findings):
        findings = (*findings, lacking)
    second = None if second is None else dataclasses.replace(second, findings=limit_findings(second.findings, given))
    return GradcheckReport(
        run.problem.name, verdict, limit_findings(findings, given), run.blocks, run.problem.input_names,
        run.problem.output_names, run.problem.seed, time.perf_counter() - start, run.complete, second,
        run.problem.source, reason, order, run.problem.identity, run.problem.notes, given,
    )  # fmt: skip


def _functions_inside(
    run: GradcheckRun, given: Hints, clock: Clock, classes: set[type] | None = None
) -> tuple[CheckedInside, ...]:

    def check(cls: type, arguments: tuple[Any, ...]) -> GradcheckReport:
        alone = GradcheckRun(Problem(cls, arguments, run.problem.seed), run.atol, run.rtol, None)
        return _reported(alone, 1, given, time.perf_counter(), clock)

    return check_functions_inside(run, check, classes)


def jacobian(fn: Any, inputs: Any, *, eps: float | None = None) -> JacobianReport:
    """Return both Jacobians of a Function at one point: what backward says and what finite differences say.

    Args:
        fn: a Function class, its ``apply``, or any callable that returns tensors.
        inputs: a tuple of arguments, tensors or not. Those that require grad are differentiated, or all floating ones
            if none does.
        eps: step of the differences, absolute; by default by precision and size of the input.

    Returns:
        One block per output and input, without verdicts.

    Raises:
        CallError: the call makes no sense: ``fn`` cannot be called, or the inputs are no tuple.
        InputError: nothing in the inputs can be differentiated.

    Example:
        >>> import torch, nbautograd
        >>> a = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> nbautograd.jacobian(lambda a: 3 * a, a).blocks[0, 0].analytical()
        array([[3., 0.],
               [0., 3.]])
    """
    with watched() as tell:
        run = GradcheckRun(Problem(fn, inputs, assume_grad=True), None, None, eps, judge=False, tell=tell)
        with run.problem.session():
            run.find_blocks()
    if run.error is not None:
        raise run.error
    fields = JacobianBlock.__dataclass_fields__
    plain = {k: JacobianBlock(**{name: getattr(b, name) for name in fields}) for k, b in run.blocks.items()}
    report = JacobianReport(run.problem.name, plain, run.complete)
    entry_curve.remember_problem(report, run.problem)
    return report
