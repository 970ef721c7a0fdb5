"""The answer that every report begins with: one headline, then the evidence in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nbautograd import messages
from nbautograd.core import formats
from nbautograd.core.checking.block import Block, GradcheckReport, Verdict
from nbautograd.core.checking.jacobian.layout import Matrices
from nbautograd.core.findings import Finding, Phrase
from nbautograd.inspection.report import FunctionReport
from nbautograd.views.phrases import code, few, listed, once, say

TOLD = 3  # findings told in the answer, those of several inputs as one; the rest follow below
MANY = 10**6  # entries; from there on those that are zero by structure are counted apart
JVP = {"jvp_wrong", "jvp_batched_wrong"}  # what is wrong is forward mode alone


@dataclass(frozen=True)
class Answer:
    """First lines of a report.

    Attributes:
        tone: the verdict; "wrong" also where second derivatives that were asked for are.
        headline: one sentence.
        aside: what is right beside what is wrong; may be empty.
        findings: the causes, told in full; beside what is right the risk of its second derivatives.
        evidence: sentences with the numbers.
        others: findings that did not fit, and those that are not bugs.
        checked: how long the check took, and its seed; may be empty.
        notes: which inputs were checked.
        first_only: why second derivatives were not checked, where nobody asked for them; else empty.
    """

    tone: Verdict
    headline: str
    aside: str = ""
    findings: tuple[Finding, ...] = ()
    evidence: tuple[str, ...] = ()
    others: tuple[Finding, ...] = ()
    checked: str = ""
    notes: tuple[str, ...] = ()
    first_only: str = ""


@once
def answer(report: FunctionReport | GradcheckReport) -> Answer:
    """Compose the first lines of a report."""
    check = report.gradcheck if isinstance(report, FunctionReport) else report
    findings = _unique((*report.findings, *check.findings))
    findings = _together(findings)
    told = _shown_findings(findings, check.verdict)
    reasons = _reasons(check)
    others = tuple(f for f in findings if f not in (*told, *reasons))
    headline, aside = _headline(check, told)
    tone: Verdict = "wrong" if check.wrong else check.verdict
    notes = tuple(map(str, check.notes))
    first_only = str(check.order2.reason) if check.order2 is not None and _left_out(check.order2) else ""
    return Answer(tone, headline, aside, told, _evidence(check), others, _checked(check), notes, first_only)


def _checked(check: GradcheckReport) -> str:
    if not check.seconds:  # a report that was put together by hand
        return ""
    which = "checked" if check.complete else "stopped"
    return messages.text(f"views.evidence.{which}", time=formats.time(check.seconds), seed=check.seed)


def second_answer(check: GradcheckReport) -> Answer:
    """Return what to say first about the second derivatives of a report."""
    second = check.order2
    assert second is not None
    told = _shown_findings(second.findings, second.verdict)
    others = tuple(f for f in second.findings if f not in told)
    headline = messages.text(f"views.evidence.order2.{second.verdict.replace(' ', '_')}")
    return Answer(second.verdict, headline, "", told, _numbers(second), others)


def _reasons(check: GradcheckReport) -> list[Finding]:
    """Return the findings whose first sentence is the reason for the verdict."""
    return [f for f in check.findings if check.reason and f.phrase("what") == check.reason]


def _reason(check: GradcheckReport) -> str:
    """Return the reason for the verdict, with the advice of the finding that it comes from."""
    return next((f.message for f in _reasons(check)), str(check.reason))


def _unique(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    seen: dict[tuple[object, ...], Finding] = {}
    for f in findings:
        seen.setdefault((f.code, f.where, f.line, f.message), f)
    return tuple(seen.values())


def _together(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings that differ by the input alone as one of all these inputs."""
    groups: dict[str, list[Finding]] = {}
    for f in findings:
        alike = _of_input(f, "") if "input" in f.params else f
        said = alike.paragraph("what", "place", "advice")
        groups.setdefault(f"{f.code} {f.kind} {f.line} {said} {f.fix}", []).append(f)
    joined = (tuple(dict.fromkeys(str(f.params.get("input")) for f in group)) for group in groups.values())
    return tuple(
        _of_input(group[0], listed([code(n) for n in names])[1:-1]) if len(names) > 1 else group[0]
        for group, names in zip(groups.values(), joined, strict=True)
    )


def _of_input(finding: Finding, name: str) -> Finding:
    """Return a finding as it is about an input of another name."""

    def renamed(params: Mapping[str, Any]) -> dict[str, Any]:
        phrases = {k: Phrase(v.message_id, **renamed(v.params)) for k, v in params.items() if isinstance(v, Phrase)}
        return {**params, **phrases, **({"input": name} if "input" in params else {})}

    return replace(finding, params=renamed(finding.params))


def _shown_findings(findings: Sequence[Finding], verdict: str) -> tuple[Finding, ...]:
    """Return the bugs, of several on the line where backward raised only what it raised; of what is right its risk."""
    if verdict != "wrong":
        return tuple(f for f in findings if f.code == "not_twice_differentiable" and verdict == "right")[:1]
    bugs = [f for f in findings if f.kind == "bug"]
    raised = {f.line for f in bugs if f.code == "exception" and f.line is not None}
    return tuple(f for f in bugs if f.code == "exception" or f.line not in raised)[:TOLD]


def _headline(check: GradcheckReport, told: Sequence[Finding]) -> tuple[str, str]:
    name = check.function
    if check.wrong and check.verdict != "wrong":  # as `raise_if_wrong` has it, whose message begins with this line
        return messages.text("views.headline.second_wrong", function=name), ""
    if check.verdict != "wrong":
        stopped = check.verdict == "cannot tell" and not check.complete and check.blocks
        by_then = "agrees" if {block.verdict for block in check.blocks.values()} == {"match"} else "open"
        how = f"stopped_{by_then}" if stopped else check.verdict.replace(" ", "_")
        return messages.text(f"views.headline.{how}", function=name), ""
    wrong, right = _inputs(check)
    if told and not wrong and all(f.code in JVP for f in told):
        return messages.text("views.headline.jvp", function=name), ""
    if told and told[0].code == "exception" and not wrong:
        return messages.text("views.headline.raises", function=name), ""
    if not wrong:
        return messages.text("views.headline.wrong", function=name), ""
    headline = messages.text("views.headline.wrong_for", function=name, inputs=listed([code(n) for n in wrong]))
    if not right or check.reason:  # which says that small errors could not have been seen
        return headline, ""
    number = "one" if len(right) == 1 else "many"
    return headline, messages.text(f"views.aside.right.{number}", inputs=few([code(n) for n in right]))


def _inputs(check: GradcheckReport) -> tuple[list[str], list[str]]:
    """Return names of the inputs with a wrong block, and of those whose blocks all agree."""
    verdicts: dict[str, set[str]] = {}
    for block in check.blocks.values():
        verdicts.setdefault(block.input_name, set()).add(block.verdict)
    wrong = [name for name, v in verdicts.items() if "mismatch" in v]
    return wrong, [name for name, v in verdicts.items() if v == {"match"}]


def _evidence(check: GradcheckReport) -> tuple[str, ...]:
    lines = list(_numbers(check))
    if check.verdict != "cannot tell" and check.reason:
        lines.append(_reason(check))
    second = check.order2
    if second is not None and second.verdict != "wrong" and not _left_out(second):  # else in the headline, or a risk
        which = second.verdict.replace(" ", "_") if second.blocks or not second.reason else "unchecked"
        said = messages.text(f"views.evidence.order2.{which}")
        lines.append(messages.paragraph((said, str(second.reason))))
    if not check.complete and (check.verdict == "wrong" or not check.reason):  # which says it already
        lines.append(messages.text("views.evidence.incomplete"))
    return tuple(lines)


def _left_out(second: GradcheckReport) -> bool:
    """Return True where second derivatives were not checked because nobody asked for them."""
    reason = second.reason
    return isinstance(reason, Phrase) and reason.message_id == "checking.order2_left_out"


def _numbers(check: GradcheckReport) -> tuple[str, ...]:
    """Return the evidence for a verdict: the entry that is worst, how far all agree, or why nobody can tell."""
    if check.verdict == "wrong":
        lines = _wrong(check)
    else:
        lines = _cannot_tell(check) if check.verdict == "cannot tell" else _right(check)
    return tuple(line for line in lines if line)


def _wrong(check: GradcheckReport) -> list[str]:
    """Return the entry that differs most."""
    blocks = [b for b in check.blocks.values() if b.verdict == "mismatch"]
    worst = [b for b in blocks if b.worst is not None]
    if not worst:
        return []
    block = max(worst, key=_size_of_worst)
    refined = sum(b.wrong - b.not_refined for b in blocks)
    sampled = [messages.text("views.evidence.not_refined", refined=formats.count(refined))]
    sampled = sampled if any(b.not_refined for b in blocks) else []
    entries, stored = (sum(map(count, blocks)) for count in (lambda b: b.entries, _stored))
    counts = []  # the table of blocks has them, but not how many are zero by structure
    if entries >= MANY and entries > stored:
        wrong = formats.count(sum(b.wrong for b in blocks))
        sizes = {"entries": formats.count(entries), "stored": formats.count(stored)}
        counts = [messages.text("views.evidence.wrong_stored", wrong=wrong, **sizes)]
    others = sum(map(_finite_beside, blocks))
    finite = [messages.text("views.evidence.finite", count=formats.count(others))] if others else []
    return [messages.paragraph((*counts, str(block.largest_difference()))), *finite, *sampled]


def _finite_beside(block: Block) -> int:
    """Return how many entries of a block differ and are finite, where others are not: their cause tells no more."""
    matrices = block.matrices
    if not isinstance(matrices, Matrices) or matrices.wrong is None:
        return 0
    finite = matrices.wrong & np.isfinite(matrices.analytical)
    return int(finite.sum()) * bool(finite.sum() < matrices.wrong.sum())


def _stored(block: Block) -> int:
    """Return how many entries of a block can be other than zero, as far as its structure says."""
    matrices = block.matrices
    return int(matrices.analytical.size) if isinstance(matrices, Matrices) else block.entries


def _size_of_worst(block: Block) -> float:
    assert block.worst is not None
    size = abs(block.worst.analytical - block.worst.numerical)
    return size if size == size else float("inf")


def _right(check: GradcheckReport) -> list[str]:
    blocks, lines = list(check.blocks.values()), list[str]()
    entries, smooth = sum(b.entries for b in blocks), [b for b in blocks if b.verdict == "match"]
    if smooth:  # else only directions agree, which the reason tells, or the slopes at a kink
        counts = {"agree": formats.count(sum(b.entries for b in smooth)), "entries": formats.count(entries)}
        error = formats.error(max(b.largest_error for b in smooth))
        lines = [messages.text("views.evidence.right", **counts, error=error, witnesses=witnesses(smooth))]
    if entries and all(b.structure == "zero" for b in blocks):
        lines.append(messages.text("views.evidence.zeros"))
    kinks = dict.fromkeys(b.input_name for b in blocks if b.verdict == "subgradient")
    if kinks:
        lines.append(messages.text("views.evidence.subgradient", inputs=listed([code(n) for n in kinks])))
    return lines


def witnesses(blocks: Sequence[Block]) -> str:
    """Name the witnesses besides backward that took part."""
    took_part = [s.witness for b in blocks for s in b.witnesses if s.took_part and s.witness != "backward"]
    return listed([say("witness", w) for w in dict.fromkeys(took_part)])


def _cannot_tell(check: GradcheckReport) -> list[str]:
    """Name the reason, and what agrees nevertheless."""
    agreed = [b for b in check.blocks.values() if b.verdict == "match"]
    so_far = ""
    if agreed:
        agree = formats.count(sum(b.entries for b in agreed))
        entries = formats.count(sum(b.entries for b in check.blocks.values()))
        so_far = messages.text("views.evidence.so_far", agree=agree, entries=entries)
    return [_reason(check), so_far]
