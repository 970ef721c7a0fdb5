"""Questions of the page to a check beyond its numbers: the microscope on one entry, and another random point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nbautograd.core.checking import entry_curve
from nbautograd.core.checking.block import GradcheckReport, JacobianReport
from nbautograd.core.display import plain
from nbautograd.errors import InputError
from nbautograd.views.answer import answer
from nbautograd.views.bundle import text
from nbautograd.views.to_json import array
from nbautograd.views.words import block_name
from nbautograd.widgets.base import Question
from nbautograd.widgets.states import (
    Answer,
    ElsewhereAnswer,
    EntryCurveState,
    MicroscopeAnswer,
    OtherBlock,
    TextAnswer,
)


def questions(report: GradcheckReport | JacobianReport | None) -> dict[str, Question]:
    """The questions about a check, by name; they run the user's Function, each time because a button was pressed."""
    if report is None:
        return {}
    asked: dict[str, Callable[[Any, Mapping[str, Any]], Answer]] = {"microscope": microscope}
    if isinstance(report, GradcheckReport):
        asked["elsewhere"] = elsewhere
    return {name: lambda question, reply=reply: reply(report, question) for name, reply in asked.items()}  # type: ignore[misc]


def plain_text(value: Any) -> dict[str, Question]:
    """Return the question for a report as plain text, by name; the page copies the answer."""
    return {"text": lambda _question: TextAnswer(text=text(value))}


def microscope(report: GradcheckReport | JacobianReport, question: Mapping[str, Any]) -> MicroscopeAnswer:
    """The output along one input element, in both precisions, and what backward claims of it.

    Args:
        report: the check, or a Jacobian by itself.
        question: ``block`` (output, input) and ``entry`` (row, column).
    """
    place, (row, col) = (_pair(question.get(name)) for name in ("block", "entry"))
    block = report.blocks.get(place)
    if block is None or not (row < block.shape[0] and col < block.shape[1]):
        raise InputError("widgets.no_block")
    curves = entry_curve.entry_curves(entry_curve.subject_of(report), place, (row, col))
    claimed, found = (float(part([row], [col])[0, 0].real) for part in (block.analytical, block.numerical))
    drawn = {
        name: EntryCurveState(center=plain(curve.center), plus=array(curve.plus), minus=array(curve.minus))
        for name, curve in curves.items()
    }
    return MicroscopeAnswer(steps=plain(entry_curve.STEPS), curves=drawn, claimed=plain(claimed), found=plain(found))


def elsewhere(report: GradcheckReport, question: Mapping[str, Any]) -> ElsewhereAnswer:
    """The check again at random inputs; its headline and a verdict per block."""
    from nbautograd.core.checking.gradcheck import gradcheck

    seed = question.get("seed")
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise InputError("widgets.no_block")
    subject = entry_curve.subject_of(report)
    other = gradcheck(subject.fn, entry_curve.random_inputs(subject, seed), order=1, seed=seed)
    blocks = [OtherBlock(name=block_name(b), verdict=b.verdict, wrong=b.wrong) for b in other.blocks.values()]
    return ElsewhereAnswer(verdict=other.verdict, headline=answer(other).headline, blocks=blocks)


def _pair(numbers: Any) -> tuple[int, int]:
    if not (isinstance(numbers, list) and len(numbers) == 2 and all(type(n) is int and n >= 0 for n in numbers)):
        raise InputError("widgets.no_block")
    return numbers[0], numbers[1]
