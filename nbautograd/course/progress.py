"""Progress: which exercises of a notebook were tried, how often, and how they stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nbautograd.core.display import Displayable
from nbautograd.course.catalogue import notebooks
from nbautograd.course.result import Result

Standing = Literal["passed", "failed", "unanswered"]


@dataclass(frozen=True)
class Row:
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
class Progress(Displayable):
    """The exercises of a notebook, in order.

    Example:
        >>> from nbautograd.course.progress import Progress, Row
        >>> Progress((Row("multiply", 2, "passed"), Row("exp"))).done
        1
    """

    rows: tuple[Row, ...] = field(default=())

    @property
    def done(self) -> int:
        """Count the exercises that are right."""
        return sum(row.state == "passed" for row in self.rows)

    def __repr__(self) -> str:
        return f"<Progress {self.done} of {len(self.rows)}>"


class Tries:
    """Attempts of one session."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def add(self, result: Result) -> None:
        """Count a run of an exercise's cell."""
        before = self._rows.get(result.exercise, Row(result.exercise))
        tries = before.tries + (result.state != "unanswered")
        self._rows[result.exercise] = Row(result.exercise, tries, result.state, result.points)

    def of(self, exercise: str) -> Row:
        """Return the state of an exercise."""
        return self._rows.get(exercise, Row(exercise))

    def progress(self) -> Progress:
        """Return all exercises of the notebooks that those tried belong to, and others that were tried."""
        rows: dict[str, Row] = {}
        for exercises in notebooks().values():
            if any(exercise.name in self._rows for exercise in exercises):
                rows.update({e.name: self._rows.get(e.name, Row(e.name, points=e.points)) for e in exercises})
        return Progress(tuple({**rows, **{k: v for k, v in self._rows.items() if k not in rows}}.values()))
