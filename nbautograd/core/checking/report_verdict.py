"""The Function's verdict: from blocks and findings to right, wrong or cannot tell."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nbautograd.core import formats, stumbles
from nbautograd.core.checking import budget, phrases
from nbautograd.core.checking.block import Block, GradcheckReport, Verdict
from nbautograd.core.checking.diagnose import UNSTEADY, Mend, diagnose, ranked
from nbautograd.core.checking.exactness import exact_to
from nbautograd.core.checking.exceptions import explain
from nbautograd.core.checking.probes.determinism import UNCONFIRMED
from nbautograd.core.checking.probes.usage import inputs_outside
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun
from nbautograd.core.checking.second_order import Inside, second_order, stopped_report
from nbautograd.core.display import UserValue
from nbautograd.core.findings import Finding, Phrase, of_stumble
from nbautograd.core.stumbles import Stumble, collected, own_errors
from nbautograd.core.torch_private.casts import spacing

AT_AN_ENTRY = ("checking.because_domain_edge", "checking.because_jump")  # sentences that say at which element
JVP_WRONG = 1e-4  # relative to the terms along a direction: far above what single precision leaves inside a jvp
NOTES = 3  # of stumbles in one report
PROBES = 11  # that the search for causes consists of
Known = Callable[[Verdict], None]


def findings(run: GradcheckRun, mend: Mend | None = None, known: Known = lambda verdict: None) -> tuple[Finding, ...]:
    """Find causes, most serious first; every block that disagrees has at least one finding of its own.

    Args:
        run: with its blocks.
        mend: adds fixes to findings; None spends no time on looking for one.
        known: called with a verdict of "wrong" as soon as nothing can change it any more.
    """
    if run.error is not None:
        return _findings_on_error(run, mend, known)
    causes: list[Finding] = []
    found: tuple[Finding, ...] = ()
    differs = any(b.verdict == "mismatch" for b in run.blocks.values())

    def between() -> None:
        if differs:  # and two calls gave the same values, which is what comes before the first probe
            known("wrong")
        run.progress.tick()

    try:
        if run.complete:
            run.start_diagnosis(PROBES)
            with run.problem.session():
                with own_errors("diagnosis", decides=True):
                    causes.extend(diagnose(run.problem, run.blocks, between, mend))  # what came stays
                if any(f.kind == "bug" for f in causes):
                    known("wrong")
                found = ranked(causes)
                if mend is not None and all(f.code != "stopped" for f in causes):
                    found = mend(run.problem, found, None)
    except KeyboardInterrupt:
        run.interrupted()
        found = ranked(causes)
    if any(f.code == "nondeterministic_forward" or (f.code in UNSTEADY and f.kind == "bug") for f in found):
        return found  # what changes from call to call proves nothing
    inputs = {f.where[1] for f in found if f.kind == "bug" and f.where is not None}
    plain = [_unclassified(b) for w, b in run.blocks.items() if b.verdict == "mismatch" and w[1] not in inputs]
    names = ((where, {"input": run.problem.input_names[where[1]]}) for where in run.symmetric)
    even = (Finding("right_for_symmetric", "note", "checking.symmetric", params, where) for where, params in names)
    return ranked((*found, *plain, *_jvp_findings(run), *_inside_findings(run), *even))


def _findings_on_error(run: GradcheckRun, mend: Mend | None, known: Known) -> tuple[Finding, ...]:
    assert run.error is not None
    if run.problem.read_outside:
        return tuple(inputs_outside(run.problem))  # the copies that the check handed on may be what it raised for
    explained = (explain(run.error, run.problem),)
    try:
        known("wrong")
        return explained if mend is None else mend(run.problem, explained, None)
    except KeyboardInterrupt:
        run.interrupted()
        return explained


def _inside_findings(run: GradcheckRun) -> Iterator[Finding]:
    for where, inside in run.inside.items():
        params = {
            "input": run.problem.input_names[where[1]],
            "raised": phrases.short(run.raised, 120),
            "kind": Phrase(f"checking.inside_{inside.kind}"),
            "slope": f"{inside.slope:.6g}",
            "said": f"{inside.by_backward:.6g}",
        }
        if inside.agrees:
            yield Finding("checked_inside_domain", "note", "checking.inside_agrees", params, where)
        else:
            yield Finding("wrong_inside_domain", "bug", "checking.inside_differs", params, where)


def _jvp_findings(run: GradcheckRun) -> Iterator[Finding]:
    for where, block in run.blocks.items():
        for statement in block.witnesses:
            if (
                statement.witness == "jvp"
                and statement.took_part
                and block.verdict == "match"
                and statement.apart > JVP_WRONG
            ):
                params = {"input": block.input_name, "apart": f"{100 * min(statement.apart, 1.0):.2g} %"}
                line = phrases.method_line(run.problem, "jvp")
                yield Finding("jvp_wrong", "bug", "checking.jvp_wrong", params, where, line)


def second_order_report(run: GradcheckRun, inside: Inside, counts: bool) -> GradcheckReport | None:
    """Return the report on second derivatives; None where they were not looked at, or not to the end of the budget."""
    try:
        found = None
        with collected() as stumbled, own_errors("second order", decides=True):
            found = second_order(run.problem, inside, counts)
        if stumbled:
            return _stumbled_second(run.problem, found, stumbled)
        if not budget.ended():
            return found
    except KeyboardInterrupt:
        run.interrupted()
    return stopped_report(run.problem) if budget.ended() and counts else None


def notes(stumbled: Sequence[Stumble]) -> tuple[Finding, ...]:
    """Return what to send us of parts of the check that failed by themselves, those first that decide."""
    told = {(one.part, one.what, one.where): one for one in sorted(stumbled, key=lambda one: not one.decides)}
    return tuple(map(of_stumble, list(told.values())[:NOTES]))


def _stumbled_second(problem: Problem, report: GradcheckReport | None, stumbled: Sequence[Stumble]) -> GradcheckReport:
    """Return the report on second derivatives, of which nothing is right where a part of its check failed by itself."""
    found = stopped_report(problem) if report is None else report
    told = notes(stumbled)
    if found.verdict == "wrong" or not told:
        return dataclasses.replace(found, findings=(*found.findings, *told))
    reason = told[0].phrase("what") or ""
    return dataclasses.replace(found, verdict="cannot tell", findings=(*found.findings, *told), reason=reason)


def joined_findings(found: tuple[Finding, ...], order2: GradcheckReport | None) -> tuple[Finding, ...]:
    """Return the findings on first derivatives with those on second ones, which are no more than a risk here."""
    more = () if order2 is None else order2.findings
    risks = (
        dataclasses.replace(f, code="not_twice_differentiable", kind="lint") if f.kind == "bug" else f for f in more
    )
    return ranked((*found, *risks))


def verdict(
    run: GradcheckRun, found: tuple[Finding, ...], lacking: Finding | None = None, stumbled: Sequence[Stumble] = ()
) -> tuple[Verdict, Phrase | str]:
    """Return the verdict on first derivatives and the reason in one sentence; of others what could have been seen.

    Args:
        lacking: what the budget did not allow, if anything.
        stumbled: parts of the check that failed by themselves.
    """
    if any(f.kind == "bug" for f in found):
        return "wrong", _resolution(run)
    for note in notes([one for one in stumbled if one.decides]):
        return "cannot tell", note.phrase("what") or ""
    if not run.complete and lacking is not None:
        return "cannot tell", lacking.phrase("what") or ""
    if not run.complete:
        cut = [block for block in run.blocks.values() if block.reason == "interrupted"]
        said = Phrase("views.evidence.incomplete" if run.blocks else "checking.interrupted_early")
        return "cannot tell", reason(run, cut[0]) if cut else said
    if run.error is not None:
        return "cannot tell", Phrase(
            "checking.raised_outside", error=type(run.error).__name__, said=stumbles.said(run.error)
        )
    if not run.blocks:
        return "cannot tell", Phrase("checking.no_blocks")
    for where, block in run.blocks.items():
        if where in run.meant:
            continue  # it is not judged
        if block.verdict in ("undecided", "flat") and where not in run.inside:
            return "cannot tell", reason(run, block)
        if block.verdict == "mismatch":  # and no bug was found: forward itself changes from call to call
            return "cannot tell", Phrase("checking.because_unsteady", output=block.output_name)
    for finding in found:
        # where the blocks agree, by chance, or speak of one gradient and not of another
        if finding.code == "nondeterministic_forward" or finding.message_id == UNCONFIRMED:
            return "cannot tell", finding.phrase("what") or ""
        if finding.code == "checked_inside_domain":
            return "right", finding.phrase("what") or ""
    size = exact_to(run.blocks.values())
    if size:
        return "right", Phrase("checking.exact_to", size=formats.error(size))
    return "right", _resolution(run)


def _resolution(run: GradcheckRun) -> Phrase | str:
    """Return which errors could not have been seen where the precision is low; empty where it is not."""
    if not run.resolution:
        return ""
    unseen = 100 * min(run.resolution, 1.0)
    percent = f"{unseen:.0f}" if unseen >= 1 else f"{unseen:.1g}"
    return Phrase("checking.resolution", dtype=_coarsest(run), percent=percent)


def _coarsest(run: GradcheckRun) -> str:
    ends = [run.problem.inputs[i] for i in run.problem.differentiable]
    outputs = run.outputs or ()
    ends += [outputs[i] for i in run.problem.differentiable_outputs(outputs)]
    return str(max(*(t.dtype for t in ends), run.problem.casts.dtype, key=spacing)).removeprefix("torch.")


def reason(run: GradcheckRun, block: Block) -> Phrase:
    """Return the sentence that says why a block could not be decided, and at which element if it is about single ones.

    Args:
        run: the check.
        block: the undecided one; its worst entry is one of those that its reason is about.
    """
    dtype = _coarsest(run)
    message = f"checking.because_{block.reason.replace(' ', '_')}"
    if block.reason == "float32" and dtype.endswith("float16"):
        message = "checking.because_half"  # in double precision a mistake of its own would be gone
    params: dict[str, Any] = {"output": block.output_name, "input": block.input_name, "dtype": dtype}
    if block.reason == "interrupted":
        counts = {"wrong": formats.count(block.wrong), "known": formats.count(block.matrices.known)}
        said, largest = Phrase(message, **params, **counts), block.largest_difference()
        return Phrase("checking.example", differ=said, largest=largest) if largest else said
    if message in AT_AN_ENTRY and block.worst is not None:
        at, value = run.values_at(block)
        params["output"] += formats.index(block.worst.output_index, block.output_complex)
        element = block.input_name + formats.index(block.worst.input_index, block.input_complex)
        params["input"] = Phrase("checking.element_at", element=element, number=formats.number(at))
        if not math.isfinite(at):
            return Phrase("checking.because_input_not_finite", input=element, value=formats.number(at))
        if not math.isfinite(value):  # whichever input that comes from
            return Phrase("checking.because_not_finite", output=params["output"], value=formats.number(value))
        if np.isnan(block.worst.analytical):
            return Phrase("checking.because_nan", **params)
    if block.reason == "approximate":
        params["size"] = formats.error(block.deviation)
        if run.more_steps:
            message = "checking.because_more_steps"
            argument, count = run.more_steps
            params |= {"argument": argument, "count": UserValue(count)}
    return Phrase(message, **params, raised=phrases.short(run.raised, 120))


def _unclassified(block: Block) -> Finding:
    params = {
        "output": block.output_name,
        "input": block.input_name,
        "wrong": formats.count(block.wrong),
        "entries": formats.count(block.entries),
        "example": block.largest_difference(),
    }
    return Finding("wrong_unclassified", "bug", "checking.wrong_unclassified", params, (block.output, block.input))
