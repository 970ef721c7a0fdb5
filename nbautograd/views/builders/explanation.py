"""An explanation as a document: what happened, the tensor and its lines, a changed line, what to do, the graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from nbautograd import messages
from nbautograd.core.explaining.cause import SourceLine
from nbautograd.core.findings import Finding
from nbautograd.inspection.explanation import Explanation
from nbautograd.views.builders import build
from nbautograd.views.document import (
    Block,
    Card,
    Cell,
    Change,
    Code,
    Document,
    Drawing,
    Faint,
    Fold,
    Strong,
    Table,
    paragraph,
)

DRAWING = 16_000  # characters of the stored picture


@build.register
def explanation_document(explanation: Explanation) -> Document:
    """Return the answer, the table of lines, the change that was tried, and the graph."""
    first, *others = explanation.findings
    head = paragraph(Strong(first.message), look="head")
    mended = explanation.fix is not None  # the change says what to do, and torch's rule why
    facts: list[Block] = [
        _rule(finding) if mended and _is_rule(finding) else paragraph(finding.message, look=_look(finding))
        for finding in others
    ]
    body: list[Block] = [head]
    if explanation.fix is not None:
        fix = explanation.fix
        where = messages.text("views.fix.at", line=fix.line)
        note = messages.text("views.semicolon").join(
            (where, messages.text(f"explain.tried_{explanation.params['tried']}"))
        )
        body.append(Change(fix.before, fix.source, note, tried=True, line=fix.line))
    body += facts
    rows = _rows(explanation)
    table: tuple[Block, ...] = (Table((), rows, messages.text("explain.caption"), cut=False),) if rows else ()
    tone = "bug" if explanation else "note"
    drawing: tuple[Block, ...] = ()
    if explanation.graph is not None and explanation.graph.nodes:
        drawing = (Drawing(explanation.graph, budget=DRAWING),)
    return (Card(tone, tuple(body)), *table, *drawing)  # type: ignore[arg-type]


def _is_rule(finding: Finding) -> bool:
    return "rule" in finding.code


def _rule(finding: Finding) -> Fold:
    return Fold(messages.text("explain.why"), (paragraph(finding.message),), strong=False, in_text="nothing")


def _look(finding: Finding) -> Literal["", "faint"]:
    aside = finding.code.startswith(("explain_ran_", "explain_run_")) or _is_rule(finding)
    return "faint" if aside else ""


def _rows(explanation: Explanation) -> tuple[tuple[Cell, ...], ...]:
    """Return the tensor and the lines, each line with what is written there."""
    rows: list[tuple[Cell, ...]] = []
    if explanation.tensor:
        rows.append((messages.text("explain.row.tensor"), Code(explanation.tensor), ""))
    for name, place in lines_of(explanation):
        rows.append((role_text(explanation, name), Faint(place_text(place)), Code(place.text)))
    return tuple(rows)


def lines_of(explanation: Explanation) -> Sequence[tuple[str, SourceLine]]:
    """Return the user's lines by their part, in the order that they ran; one that makes and saves a tensor once."""
    made = () if explanation.made == explanation.saved else ("made",)
    places = [(name, getattr(explanation, name)) for name in (*made, "saved", "did", "raised")]
    return [(name, place) for name, place in places if place is not None]


def role_text(explanation: Explanation, name: str) -> str:
    """Return what a line did, by its part: the words of what was saved and overwritten where that is what happened."""
    overwritten = explanation.code.startswith("in_place") and "slot" in explanation.params
    name = {"did": "overwritten", "raised": "needed"}.get(name, name) if overwritten else name
    return messages.text(f"explain.row.{name}")


def place_text(place: SourceLine) -> str:
    """Return a line with its cell or file and the function around it."""
    if place.cell is not None:
        words = messages.text("explain.place_cell", cell=place.cell, line=place.line)
    elif os.path.isfile(place.file):
        words = messages.text("explain.place_file", file=os.path.basename(place.file), line=place.line)
    else:
        words = messages.text("views.line", line=place.line)
    if place.function:
        return messages.text("explain.in_function", place=words, function=place.function.replace("`", ""))
    return words
