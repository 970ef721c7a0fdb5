"""The Gradcheck view: verdict, table of blocks, witnesses, error against step, findings."""

from __future__ import annotations

from dataclasses import replace

from nbautograd.core.checking.block import GradcheckReport
from nbautograd.views.answer import Answer, answer, second_answer
from nbautograd.views.builders.blocks import weighed_blocks
from nbautograd.views.builders.summary import answer_document, findings_document
from nbautograd.views.words import line_of
from nbautograd.widgets.asking import plain_text, questions
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.history import since_last
from nbautograd.widgets.jacobian import beyond, block_questions, blocks_state, whole_blocks
from nbautograd.widgets.states import AnswerState, CheckState, GradcheckState, Mark, SecondOrder


def verdict_state(report: GradcheckReport) -> CheckState:
    """The report without its heat maps: its verdict, its blocks in rows, and what the second order says."""
    second = None
    if report.order2 is not None:
        second = SecondOrder(verdict=report.order2.verdict, answer=answer_state(second_answer(report)))
    return CheckState(
        function=report.function,
        verdict=report.verdict,
        table=weighed_blocks(report.blocks, {at: beyond(report.blocks[at]) for at in whole_blocks(report.blocks)}),
        since=since_last(report),
        order2=second,
    )


def answer_state(told: Answer) -> AnswerState:
    """Return the answer as the stored report says it: whole, without its causes, and what it leaves out."""
    return AnswerState(
        document=answer_document(told),
        brief=answer_document(replace(told, findings=())),
        others=findings_document(told.others),
        marks=[Mark(line=line_of(cause), message=cause.message) for cause in told.findings],
    )


class GradcheckWidget(ViewWidget):
    """The verdict per output and input with its evidence."""

    KIND = "gradcheck"

    def make_state(self, value: GradcheckReport) -> GradcheckState:
        """Verdict and blocks."""
        return GradcheckState(
            check=verdict_state(value), answer=answer_state(answer(value)), blocks=blocks_state(value.blocks)
        )

    def questions(self) -> dict[str, Question]:
        """The page may zoom, look at an entry through the microscope, and check at another point."""
        return {**block_questions(self.value.blocks), **questions(self.value), **plain_text(self.value)}
