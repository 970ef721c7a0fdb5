"""Result: what the checks of one exercise said of one answer, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nbautograd import messages
from nbautograd.core.display import Displayable
from nbautograd.course.exercise import Failure
from nbautograd.course.sentences import Level, steps, told_line

State = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, repr=False)
class CheckResult(Displayable):
    """Result of one check.

    Attributes:
        check: its name, such as ``"gradient"``.
        state: ``"passed"``, ``"failed"``, or ``"skipped"`` after a failure that leaves nothing to ask.
        failures: what it found; empty unless it failed. The first one is shown.
        seconds: wall time.
    """

    check: str
    state: State
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0

    @property
    def title(self) -> str:
        """Name what the check asks, in a few words."""
        return messages.text(f"course.check.{self.check}")

    def sentences(self, hints: Level = "what") -> tuple[str, ...]:
        """Return the sentences that help, with these hints."""
        if not self.failures:
            return ()
        return steps(self.failures[0], hints) or (messages.text("course.only_failed", check=self.title),)

    def more(self, hints: Level) -> bool:
        """Return True if all hints would say more than these."""
        return bool(self.failures) and len(steps(self.failures[0], "fix")) > len(steps(self.failures[0], hints))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; all its sentences in both languages."""
        return {
            "check": self.check,
            "state": self.state,
            "seconds": self.seconds,
            "failures": [failure_dict(failure) for failure in self.failures],
        }


@dataclass(frozen=True, repr=False)
class ExerciseResult(Displayable):
    """Results of all checks of an answer.

    Attributes:
        exercise: its name.
        answer: the name that the cell defines.
        state: ``"passed"``, ``"failed"`` or ``"unanswered"``.
        outcomes: one per check, in order.
        line: for an unanswered cell the line of the first ``...`` in it, where known.
        points: what the exercise is worth.
        earned: how many of them the answer gets.
        hints: how much it gives away when it shows itself.
        seed: of the random points.
        seconds: wall time of all checks.

    Example:
        >>> from nbautograd.course.result import ExerciseResult
        >>> ExerciseResult("multiply", "Multiply", "passed").passed
        True
    """

    exercise: str
    answer: str
    state: Literal["passed", "failed", "unanswered"]
    outcomes: tuple[CheckResult, ...] = ()
    line: int | None = None
    points: int = 1
    earned: int = 0
    hints: Level = "what"
    seed: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def passed(self) -> bool:
        """Return True if every check passed."""
        return self.state == "passed"

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of everything that failed; ``"not_answered"`` for a cell without an answer."""
        found = tuple(failure.code for outcome in self.outcomes for failure in outcome.failures)
        return ("not_answered",) if self.state == "unanswered" else tuple(dict.fromkeys(found))

    def marked_lines(self) -> tuple[tuple[int, str], ...]:
        """Return lines of the cell that its sentences name, each with the sentence."""
        if self.state == "unanswered" and self.line is not None:
            return ((self.line, messages.text("course.result.unanswered_more")),)
        failures = [outcome.failures[0] for outcome in self.outcomes if outcome.failures]
        told = [(failure, " ".join(steps(failure, self.hints))) for failure in failures]
        return tuple((line, words) for failure, words in told if (line := told_line(failure, self.hints)) is not None)

    def shows(self, expected: str) -> bool:
        """Return True if this failed as expected.

        Args:
            expected: a code, the beginning of one up to an underscore, or ``"check:gradient"`` for a check that failed.
        """
        if expected.startswith("check:"):
            return any(outcome.state == "failed" and outcome.check == expected[6:] for outcome in self.outcomes)
        return any(code == expected or code.startswith(f"{expected}_") for code in self.codes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that ``json.dumps`` takes; all its sentences in both languages."""
        return {
            "type": "ExerciseResult",
            "exercise": self.exercise,
            "answer": self.answer,
            "state": self.state,
            "passed": self.passed,
            "points": self.points,
            "earned": self.earned,
            "line": self.line,
            "seed": self.seed,
            "seconds": self.seconds,
            "codes": list(self.codes),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
        }

    def __repr__(self) -> str:
        done = sum(outcome.state == "passed" for outcome in self.outcomes)
        return f"<Result {self.exercise}: {self.state}, {done} of {len(self.outcomes)} checks>"


def failure_dict(failure: Failure) -> dict[str, Any]:
    """Return a failure as plain data, its sentences in both languages."""
    said = {}
    for language in messages.LANGUAGES:
        with messages.speaking(language):
            said[language] = list(steps(failure, "fix"))
    return {"code": failure.code, "sentences": said}
