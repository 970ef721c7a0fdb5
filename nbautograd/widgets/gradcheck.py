"""The Gradcheck view: verdict, table of blocks, witnesses, error against step, findings."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass
from typing import Any

from nbautograd import messages
from nbautograd.core.checking.block import GradcheckReport
from nbautograd.settings import setting
from nbautograd.views.answer import Answer, answer, second_answer
from nbautograd.views.builders.blocks import chosen_blocks
from nbautograd.views.builders.summary import answer_document, evidence_document, findings_document, verdict_chip
from nbautograd.views.document import Chip, Document, paragraph, sentences
from nbautograd.views.phrases import block_name, code, line_of, place, say
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.jacobian import block_questions, blocks_state, decider, questions
from nbautograd.widgets.states import AnswerState, CheckState, GradcheckState, Mark, SecondOrder, Since
from nbautograd.widgets.thawing import taken_along


def verdict_state(report: GradcheckReport) -> CheckState:
    """Return the report without its heat maps: its verdict, its blocks in rows, and what the second order says."""
    second = None
    if report.order2 is not None:
        second = SecondOrder(verdict=report.order2.verdict, answer=answer_state(second_answer(report)))
    return CheckState(
        function=report.function,
        motion=report.source is not None and report.source.line("backward") is not None,
        verdict=report.verdict,
        table=chosen_blocks(report.blocks),
        since=since_last(report),
        order2=second,
        again=decider(report),
    )


def answer_state(told: Answer, table: bool = False) -> AnswerState:
    """Return the answer as the stored report says it, what stands under its table if there is one, and the rest."""
    return AnswerState(
        document=answer_document(told, table),
        evidence=evidence_document(told) if table else (),
        others=findings_document(told.others),
        marks=[Mark(line=line_of(cause), message=cause.message) for cause in told.findings],
    )


def folded_line(function: str, told: Answer) -> Document:
    """Return the line that a right report begins as, unless settings open it: the evidence, and below it each risk."""
    if told.tone != "right" or setting("reports") == "open":
        return ()
    findings, colon = (*told.findings, *told.others), messages.text("views.colon")
    kinds = Counter(finding.kind for finding in findings)
    more = [Chip(say("kind", kind) + (f" ×{n}" if n > 1 else ""), kind) for kind, n in kinds.items()]
    line = paragraph(verdict_chip(told.tone), " · ".join((code(function), *told.evidence[:1])), *more)
    return (line, *sentences([colon.join(filter(None, (place(f), f.what))) for f in findings], "faint"))


class GradcheckWidget(ViewWidget):
    """The verdict per output and input with its evidence."""

    KIND = "gradcheck"

    def make_state(self, value: GradcheckReport) -> GradcheckState:
        """Return verdict and blocks."""
        told = answer(value)
        return GradcheckState(
            check=verdict_state(value),
            answer=answer_state(told, bool(value.blocks)),
            blocks=blocks_state(value.blocks),
            folded=folded_line(value.function, told),
        )

    def questions(self) -> dict[str, Question]:
        """Return the questions by which the page zooms, looks at an entry closely, and checks at another point."""
        return {**block_questions(self.value.blocks), **questions(self.value), **taken_along(self)}


MOST_REMEMBERED = 200  # Functions that are remembered


@dataclass
class ShownCheck:
    """Record of a shown check: which it is, what was wrong in it, and the same of the one before."""

    report: weakref.ref[Any]
    wrong: dict[str, str]
    source: str
    before: dict[str, str] | None


_runs: dict[str, ShownCheck] = {}


def since_last(report: GradcheckReport | None) -> Since | None:
    """Compare with the last check of this Function: ``fixed``, ``new`` and ``still`` wrong.

    Returns:
        Sentences of the findings and names of the blocks; None when there was no check before, when its source is as
        it was then, or when nothing was wrong then or is now.
    """
    if report is None:
        return None
    right = {block_name(b) for b in report.blocks.values() if b.verdict in ("match", "subgradient")}
    key = report.identity or report.function
    last = _runs.get(key)
    if last is None or last.report() is not report:
        text = "" if report.source is None else report.source.text
        edited = last is not None and last.source != text
        last = ShownCheck(
            weakref.ref(report), _wrong(report), text, last.wrong if edited and last is not None else None
        )
        _runs[key] = last
        while len(_runs) > MOST_REMEMBERED:
            del _runs[next(iter(_runs))]
    if last.before is None or not (last.before or last.wrong):
        return None
    now, before = last.wrong, last.before
    return Since(
        fixed=[words for key, words in before.items() if key not in now and (key in right or words != _block(key))],
        new=[words for key, words in now.items() if key not in before],
        still=[words for key, words in now.items() if key in before],
    )


def _wrong(report: GradcheckReport) -> dict[str, str]:
    """Return wrong blocks, and the bugs that are in none of them, each by a key that survives an edit of the source."""
    blocks = {block_name(b): _block(block_name(b)) for b in report.blocks.values() if b.verdict == "mismatch"}
    bugs = [f for f in report.findings if f.kind == "bug" and (f.where is None or f.where not in report.blocks)]
    return blocks | {f"{f.code} {f.where}": f.what for f in bugs}


def _block(name: str) -> str:
    return f"`{name}`"
