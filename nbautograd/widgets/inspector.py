"""The inspector: everything about one Function in tabs."""

from __future__ import annotations

from collections.abc import Sequence

from nbautograd.core.display import plain
from nbautograd.core.user_source import FunctionSource
from nbautograd.core.values import Value
from nbautograd.inspection.comparison import Comparison
from nbautograd.inspection.report import FunctionReport
from nbautograd.views.answer import Answer, answer
from nbautograd.views.builders.blocks import listed_blocks
from nbautograd.views.builders.comparison import comparison_document, headline
from nbautograd.views.packing import Figure
from nbautograd.views.phrases import line_of
from nbautograd.widgets.base import Question, ViewWidget
from nbautograd.widgets.calls import calls_questions, calls_state
from nbautograd.widgets.gradcheck import answer_state, folded_line, verdict_state
from nbautograd.widgets.graph import graph_questions, graph_state
from nbautograd.widgets.jacobian import block_questions, blocks_state, questions
from nbautograd.widgets.states import ComparisonState, ElementsState, InspectorState, SourceState
from nbautograd.widgets.thawing import taken_along

MAX_SOURCE = 40_000  # characters of source that are sent


def comparison_state(comparison: Comparison) -> ComparisonState:
    """Return the comparison's one sentence and its whole document."""
    return ComparisonState(headline=headline(comparison), document=comparison_document(comparison))


def elements_state(report: FunctionReport, told: Answer) -> ElementsState:
    """Return numbers of the small tensors that the first forward met, by position, and the line of each gradient."""
    first = next((call for call in report.calls if call.method == "forward"), None)
    gradients = () if report.source is None else report.source.gradients
    call = next((call.index for call in report.calls if call.method == "backward"), None)
    lines = {k: gradient.line for k, gradient in enumerate(gradients)}
    for finding in reversed(told.findings):  # the one that the headline speaks of counts
        if finding.where is not None and (line := line_of(finding)):
            lines[finding.where[1]] = line
    return ElementsState(
        inputs=[] if first is None else _numbers(first.inputs),
        outputs=[] if first is None else _numbers(first.outputs),
        lines=lines,
        call=call,
    )


def _numbers(values: Sequence[Value]) -> list[list[Figure] | None]:
    tensors = [value.tensor for value in values]
    return [None if t is None or t.values is None or "complex" in t.dtype else plain(list(t.values)) for t in tensors]


def source_state(source: FunctionSource | None) -> SourceState | None:
    """Return the source of the class; None where it is not known."""
    if source is None or not source.text:
        return None
    return SourceState(text=source.text[:MAX_SOURCE], first_line=source.first_line)


class InspectorWidget(ViewWidget):
    """Summary, Calls, Graph, Jacobian, Gradcheck and Source of one Function, their selections linked."""

    KIND = "inspector"

    def make_state(self, value: FunctionReport) -> InspectorState:
        """Return everything that the report holds; a part that it does not hold is None and gets no tab."""
        told = answer(value)
        return InspectorState(
            function=value.function,
            notes=list(map(str, value.notes)),
            answer=answer_state(told, bool(value.gradcheck.blocks)),
            table=listed_blocks(value.gradcheck.blocks, "jacobian"),
            check=verdict_state(value.gradcheck),
            blocks=blocks_state(value.gradcheck.blocks),
            calls=calls_state(value.calls),
            graph=None if value.graph is None else graph_state(value.graph, value.calls),
            comparison=None if value.comparison is None else comparison_state(value.comparison),
            source=source_state(value.source),
            elements=elements_state(value, told),
            folded=folded_line(value.function, told),
        )

    def questions(self) -> dict[str, Question]:
        """Return the questions by which the page zooms, asks for calls and entries, and checks at another point."""
        return {
            **block_questions(self.value.gradcheck.blocks),
            **calls_questions(self.value.calls),
            **questions(self.value.gradcheck),
            **taken_along(self),
            **graph_questions(self.value.graph),
        }
