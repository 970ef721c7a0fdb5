"""A class at a glance: how many passed each exercise, and what went wrong how often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from nbautograd.core.display import Displayable
from nbautograd.course.marking.batch import first_sentence
from nbautograd.course.marking.judge import SubmissionMark
from nbautograd.course.marking.submissions import Assignment
from nbautograd.messages import text
from nbautograd.views.builders import build
from nbautograd.views.document import Cell, Code, Document, Item, Paragraph, Sentence, Strong, Table, sentences


@dataclass(frozen=True, repr=False)
class ClassReport(Displayable):
    """Marks of a class.

    Attributes:
        assignment: what was handed out.
        marks: one a submission.
        failed: what could not be marked, with the reason.
    """

    assignment: Assignment
    marks: tuple[SubmissionMark, ...]
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def codes(self) -> list[tuple[str, str, int, str]]:
        """Exercise, code, how many submissions have it, and what one of them was told; the most frequent first."""
        counts: Counter[tuple[str, str]] = Counter()
        said: dict[tuple[str, str], str] = {}
        for one in self.marks:
            for result in one.results:
                for code in result["codes"][:1]:
                    counts[result["exercise"], code] += 1
                    said.setdefault((result["exercise"], code), first_sentence(result))
        return [(*key, count, said[key]) for key, count in counts.most_common()]

    def __repr__(self) -> str:
        return f"<ClassReport of {len(self.marks)} submissions>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"type": "ClassReport", "submissions": len(self.marks), "codes": [list(row) for row in self.codes]}


@build.register
def class_document(value: ClassReport) -> Document:
    """Return a row for each exercise, and a row for each mistake, as one of those who made it was told."""
    count = len(value.marks)
    head = Paragraph((Strong(text("course.mark.title", count=count, name=value.assignment.notebook)),))
    results = [{r["exercise"]: r for r in one.results} for one in value.marks]
    passed = tuple(
        (
            Code(name),
            text("course.mark.of", some=sum(r[name]["passed"] for r in results), count=count),
            _note(value, name),
        )
        for name in value.assignment.exercises
    )
    header = tuple(text(f"course.mark.column.{name}") for name in ("exercise", "passed", "note"))
    codes = tuple(
        (Code(exercise), text("course.mark.of", some=some, count=count), _said(code, said))
        for exercise, code, some, said in value.codes
    )
    wrong = tuple(text(f"course.mark.column.{name}") for name in ("exercise", "count", "sentence"))
    tables = [Item((Table(header, passed),)), *([Item((Table(wrong, codes, cut=False),))] if codes else [])]
    unmarked = [text("course.mark.unmarked", name=name, reason=reason) for name, reason in value.failed]
    layers = sorted({layer for one in value.marks for layer in one.layers})
    confined = text("course.mark.layers", layers=", ".join(layers)) if layers else ""
    return (head, *tables, *sentences([*unmarked, *filter(None, [confined])], "small"))


def _said(code: str, said: str) -> Cell:
    """Return what one of the submissions was told; the code, which the marks have too, only where that is nothing."""
    if said:
        return Sentence(said)
    return text("course.mark.no_answer") if code == "not_answered" else Code(code)


def _note(value: ClassReport, exercise: str) -> str:
    """Tell of an exercise that students did not see, and of the checks that had to be believed."""
    reported = sorted({check for one in value.marks for check in one.reported.get(exercise, ())})
    hidden = [text("course.mark.hidden")] if exercise in value.assignment.hidden else []
    titles = ", ".join(text(f"course.check.{check}") for check in reported)
    return " · ".join([*hidden, *([text("course.mark.reported", checks=titles)] if reported else [])])
