"""Progress: which exercises of a notebook were tried, how often, and how they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nbautograd.core.display import Displayable
from nbautograd.course.catalogue import notebooks
from nbautograd.course.result import ExerciseResult

Standing = Literal["passed", "failed", "unanswered"]


@dataclass(frozen=True)
class ProgressRow:
    """One exercise.

    Attributes:
        exercise: its name.
        tries: how often its cell was run with an answer.
        state: how the last run ended; ``"unanswered"`` when there was none.
        points: what it is worth.
    """

    exercise: str
    tries: int = 0
    state: Standing = "unanswered"
    points: int = 1


@dataclass(frozen=True, repr=False)
class CourseProgress(Displayable):
    """The exercises of a notebook, in order."""

    rows: tuple[ProgressRow, ...] = field(default=())

    @property
    def done(self) -> int:
        """Count the exercises that are right."""
        return sum(row.state == "passed" for row in self.rows)

    def __repr__(self) -> str:
        return f"<Progress {self.done} of {len(self.rows)}>"


class TryCounts:
    """Attempts of one session."""

    def __init__(self) -> None:
        self._rows: dict[str, ProgressRow] = {}

    def add(self, result: ExerciseResult) -> None:
        """Count a run of an exercise's cell."""
        before = self._rows.get(result.exercise, ProgressRow(result.exercise))
        tries = before.tries + (result.state != "unanswered")
        self._rows[result.exercise] = ProgressRow(result.exercise, tries, result.state, result.points)

    def of(self, exercise: str) -> ProgressRow:
        """Return the state of an exercise."""
        return self._rows.get(exercise, ProgressRow(exercise))

    def progress(self) -> CourseProgress:
        """Return all exercises of the notebooks that those tried belong to, and others that were tried."""
        rows: dict[str, ProgressRow] = {}
        for exercises in notebooks().values():
            if any(exercise.name in self._rows for exercise in exercises):
                rows.update({e.name: self._rows.get(e.name, ProgressRow(e.name, points=e.points)) for e in exercises})
        return CourseProgress(tuple({**rows, **{k: v for k, v in self._rows.items() if k not in rows}}.values()))
