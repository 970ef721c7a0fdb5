"""A result and the progress table as documents."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.course.progress import CourseProgress, ProgressRow
from nbautograd.course.result import CheckResult, ExerciseResult
from nbautograd.course.sentences import LEVELS, Level
from nbautograd.views.builders import build
from nbautograd.views.document import (
    Card,
    Chip,
    Code,
    Document,
    Item,
    Link,
    Paragraph,
    Strong,
    Table,
    Tone,
    paragraph,
    sentences,
)
from nbautograd.views.phrases import code

# not yet right is no disgrace
TONE: dict[str, Tone] = {"passed": "right", "failed": "cannot tell", "unanswered": "unchecked"}
TICK = {"passed": "✓ ", "skipped": ""}
MARK = {"passed": "✓", "failed": "✗", "unanswered": "·", "skipped": "·"}


@build.register
def result_document(value: ExerciseResult) -> Document:
    """Return how an exercise stands, the checks that failed with what helps, and in smaller print the others."""
    mark = Chip(f"{MARK[value.state]} {messages.text(f'course.chip.{value.state}')}", TONE[value.state])
    place = [] if value.line is None else [messages.text("views.line", line=value.line)]
    head = paragraph(mark, Strong(code(value.exercise)), *place)
    shown = value.outcomes if value.state == "failed" else ()
    failed = [_failed(outcome, value.hints) for outcome in shown if outcome.state == "failed"]
    small = [Item(sentences(below(value), "small"))] if below(value) else []
    return (Card(TONE[value.state], (head, *failed, *small), place=f"exercise-{value.exercise}"),)


def _failed(outcome: CheckResult, hints: Level) -> Item:
    title = Strong(f"{MARK['failed']} {outcome.title}{messages.text('views.colon')}")
    first, *more = outcome.sentences(hints)
    return Item((Paragraph((title, first)), *sentences(more)))


def below(value: ExerciseResult) -> tuple[str, ...]:
    """Return what stands under the failures, in smaller print."""
    if value.state == "unanswered":
        return (messages.text("course.result.unanswered_more"),)
    passed, which = _titles(value, "passed"), "passed_more" if value.passed else "passed_some"
    alone = [outcome.check for outcome in value.outcomes] == ["custom"]  # then there is nothing to tell apart
    said = [messages.text(f"course.result.{which}", checks=passed)] if passed and not alone else []
    waiting = _titles(value, "skipped")
    said += [messages.text("course.result.waiting", checks=waiting)] if waiting else []
    if any(o.more(value.hints) for o in value.outcomes):
        following = LEVELS[LEVELS.index(value.hints) + 1]
        said.append(messages.text("course.result.more", name=value.exercise, hints=following))
    return tuple(said)


def _titles(value: ExerciseResult, state: str) -> str:
    return " · ".join(f"{TICK[state]}{o.title}" for o in value.outcomes if o.state == state)


@build.register
def progress_document(value: CourseProgress) -> Document:
    """Return how many exercises are right, and a row for each."""
    if not value.rows:
        return sentences([messages.text("course.progress.none")])
    columns = ("mark.column.exercise", "progress.tries", "progress.state")
    header = tuple(messages.text(f"course.{column}") for column in columns)
    rows = tuple((_name(row), str(row.tries or ""), Chip(_state(row), TONE[row.state])) for row in value.rows)
    title = messages.text("course.progress.title", done=value.done, count=len(value.rows))
    return (Paragraph((Strong(title),)), Item((Table(header, rows, right=(1,)),)))


def _name(row: ProgressRow) -> Code | Link:
    """Return the name of an exercise; of one that was tried a way to its answer, which stands in the same notebook."""
    return Link(row.exercise, place=f"exercise-{row.exercise}") if row.tries else Code(row.exercise)


def _state(row: ProgressRow) -> str:
    return f"{MARK[row.state]} {messages.text(f'course.chip.{row.state}')}"
