"""A result and the progress table as text and as static HTML, from the pieces that every page is made of."""

from __future__ import annotations

from nbautograd import messages
from nbautograd.course.progress import Progress, Row
from nbautograd.course.result import MAX_HINT_LEVEL, CheckResult, Result
from nbautograd.views.bundle import mimebundle as drawn
from nbautograd.views.html import body
from nbautograd.views.markup import Markup, join, prose, tag
from nbautograd.views.pieces import SOFT, block, chip, faint, name, paragraph, table
from nbautograd.views.tables import indent, wrap
from nbautograd.views.tables import table as lines_of
from nbautograd.views.text import text
from nbautograd.views.theme import TONES

TONE = {"passed": "right", "failed": "cannot tell", "unanswered": "unchecked"}  # not yet right is no disgrace
MARK = {"passed": "✓", "failed": "✗", "unanswered": "·", "skipped": "·"}


def mimebundle(value: Result | Progress) -> dict[str, str]:
    """``text/plain`` and ``text/html`` of a result or of the progress table.

    Example:
        >>> from nbautograd.course.result import Result
        >>> from nbautograd.course.rendering import mimebundle
        >>> print(mimebundle(Result("multiply", "Multiply", "unanswered", line=4))["text/plain"])
        · `multiply`: not answered yet.
          Line 4 still contains `...`: replace it with your answer and run the cell.
    """
    return drawn(value)


@text.register
def _result_text(value: Result) -> str:
    lines = [f"{MARK[value.state]} {headline(value)}"]
    for outcome in value.outcomes if value.state == "failed" else ():
        if outcome.state == "failed":
            said = " ".join(outcome.sentences(value.hints))
            lines += indent(wrap(f"{MARK[outcome.state]} {outcome.title}{messages.text('course.colon')}{said}"))
    return "\n".join([*lines, *indent([line for sentence in below(value) for line in wrap(sentence)])])


@body.register
def _result_markup(value: Result) -> Markup:
    tone = TONE[value.state]
    look = f"border-left:4px solid {TONES[tone]};background-color:{SOFT};padding:7px 14px 2px 14px;border-radius:3px"
    mark = chip(f"{MARK[value.state]} {messages.text(f'course.chip.{value.state}')}", tone)
    head = block(mark, " ", tag("strong", None, name(value.exercise)))
    failed = [_failed(o, value.hints) for o in value.outcomes if o.state == "failed"] if value.state == "failed" else []
    small = block(tag("span", {"style": "opacity:0.75;font-size:0.92em"}, prose(" ".join(below(value)))))
    return tag("div", {"style": look}, head, *failed, *([small] if below(value) else []))


def _failed(outcome: CheckResult, hints: int) -> Markup:
    title = tag("strong", None, f"{MARK['failed']} {outcome.title}{messages.text('course.colon')}")
    first, *more = outcome.sentences(hints)
    return block(join((title, prose(first))), *(tag("div", None, prose(sentence)) for sentence in more))


def headline(value: Result) -> str:
    """The one line that says how it stands."""
    return messages.text(f"course.result.{value.state}", name=value.exercise)


def below(value: Result) -> tuple[str, ...]:
    """What stands under the failures, in smaller print."""
    if value.state == "unanswered":
        which = "unanswered_more" if value.line is None else "unanswered_line"
        return (messages.text(f"course.result.{which}", line=value.line),)
    passed, which = _titles(value, "passed"), "passed_more" if value.passed else "passed_some"
    alone = [outcome.check for outcome in value.outcomes] == ["custom"]  # then there is nothing to tell apart
    said = [messages.text(f"course.result.{which}", checks=passed)] if passed and not alone else []
    waiting = _titles(value, "skipped")
    said += [messages.text("course.result.waiting", checks=waiting)] if waiting else []
    if value.hints < MAX_HINT_LEVEL and any(o.more(value.hints) for o in value.outcomes):
        said.append(messages.text("course.result.more", name=value.exercise, hints=value.hints + 1))
    return tuple(said)


def _titles(value: Result, state: str) -> str:
    return messages.text("course.comma").join(o.title for o in value.outcomes if o.state == state)


@text.register
def _progress_text(value: Progress) -> str:
    if not value.rows:
        return messages.text("course.progress.none")
    header = [messages.text(f"course.progress.{column}") for column in ("exercise", "tries", "state")]
    rows = [(row.exercise, str(row.tries or ""), _state(row)) for row in value.rows]
    return "\n".join([_title(value), *indent(lines_of(header, rows, right=(1,)))])


@body.register
def _progress_markup(value: Progress) -> Markup:
    if not value.rows:
        return paragraph(messages.text("course.progress.none"))
    header = [messages.text(f"course.progress.{column}") for column in ("exercise", "tries", "state")]
    rows = [(name(row.exercise), row.tries or faint("·"), chip(_state(row), TONE[row.state])) for row in value.rows]
    return join((block(tag("strong", None, _title(value))), table("", header, rows, right=(1,))))


def _title(value: Progress) -> str:
    return messages.text("course.progress.title", done=value.done, count=len(value.rows))


def _state(row: Row) -> str:
    return f"{MARK[row.state]} {messages.text(f'course.chip.{row.state}')}"
