"""A report on a Function as a document: the answer, its parts, what else was noticed."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.core.user_source import FunctionSource
from nbautograd.inspection.report import FunctionReport
from nbautograd.views.answer import Answer, answer
from nbautograd.views.builders import build
from nbautograd.views.builders.blocks import blocks_document, blocks_in_short, matrices_document, second_document
from nbautograd.views.builders.calls import calls_document
from nbautograd.views.builders.comparison import comparison_document
from nbautograd.views.builders.graph import graph_body, graph_size
from nbautograd.views.builders.summary import (
    answer_document,
    evidence_document,
    findings_document,
)
from nbautograd.views.document import Document, Fold, Strong, Verbatim, sentences
from nbautograd.views.phrases import counted, failed

PARTS = ("gradcheck", "jacobian", "calls", "graph", "comparison")


@build.register
def report_document(report: FunctionReport) -> Document:
    """Return the answer, the parts, the findings left and the notes."""
    told = answer(report)
    parts = _shown_sections(report)
    folds = (_fold(report, part, told) for part in parts)
    notes = sentences(report.notes, "faint")
    return (*answer_document(told, "gradcheck" in parts), *folds, *findings_document(told.others), *notes)


def _shown_sections(report: FunctionReport) -> list[str]:
    """Return which parts there is something to show of."""
    there = {
        "gradcheck": bool(report.gradcheck.blocks),
        "jacobian": bool(report.gradcheck.blocks),
        "calls": bool(report.calls.calls or report.calls.problems),
        "graph": report.graph is not None,
        "comparison": report.comparison is not None,
    }
    return [part for part in PARTS if there[part]]


def _fold(report: FunctionReport, part: str, told: Answer) -> Fold:
    """Return one part; the evidence is open."""
    try:
        inside, beside = _inside(report, part, told)
    except Exception as error:  # one part that fails must not take the others, and the answer, with it
        inside, beside = sentences([failed(error, f"part {part}")]), ""
    return Fold(
        Strong(messages.text(f"views.part.{part}")),
        inside,
        beside,
        opened=part in ("gradcheck", "jacobian", "comparison"),
        attribute=part,
    )


def _inside(report: FunctionReport, part: str, told: Answer) -> tuple[Document, str]:
    """Return what a part shows, and a few words that stand beside its title."""
    graph, comparison, blocks = report.graph, report.comparison, list(report.gradcheck.blocks.values())
    if part == "gradcheck":
        below = (*evidence_document(told), *second_document(report.gradcheck))
        return (*blocks_document(blocks), *below), blocks_in_short(blocks)
    if part == "graph" and graph is not None:
        return graph_body(graph), graph_size(graph)
    if part == "comparison" and comparison is not None:
        return comparison_document(comparison), ""
    if part == "calls":
        return calls_document(report.calls), counted("calls", len(report.calls))
    return matrices_document(blocks, wrong_in_text=True), counted("blocks", len(blocks))


@build.register
def source_document(value: FunctionSource) -> Document:
    """Return the source as it is written."""
    return (Verbatim(value.text),)
