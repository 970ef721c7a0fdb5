"""The judge: all checks of a release on one submission, with points that nobody could know."""

from __future__ import annotations

import dataclasses
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbautograd.core import forks
from nbautograd.course.attempt import Attempt
from nbautograd.course.catalogue import declared_by
from nbautograd.course.checks import ROUTINES
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.marking.proxy import LostError, Nursery, Nursling, class_of, function_of
from nbautograd.course.marking.submissions import Assignment, Notebook
from nbautograd.course.marking.wire import CannotCrossError, Foreign
from nbautograd.course.result import CheckResult, ExerciseResult
from nbautograd.course.run import check

SECONDS = 20.0  # that the child may take for one exercise, all questions together; the course's slowest takes 1.5 s
REPORTED = ("own_function", "context", "cost")  # what only the process that runs the answer can see
_CODE = re.compile(r"[a-z]\w{0,59}")
_lock = forks.lock()  # the random numbers of torch are one per process, and a cluster's worker has many threads
_nursery = Nursery()


@dataclass(frozen=True)
class SubmissionMark:
    """What one submission earns.

    Attributes:
        submission: its name.
        digest: of the notebook; with the name it tells whether this was marked already.
        results: one a exercise, in order.
        reported: for each exercise the checks that were made in the submission's own process.
        layers: of confinement that held.
        seconds: wall time.
        seed: of the random points; the same one marks alike.
    """

    submission: str
    digest: str
    results: tuple[dict[str, Any], ...]
    reported: Mapping[str, Sequence[str]]
    layers: Sequence[str]
    seconds: float
    seed: int

    @property
    def earned(self) -> int:
        """Points of all exercises."""
        return sum(result["earned"] for result in self.results)


def mark(
    assignment: Assignment, name: str, notebook: Notebook | None, limits: Mapping[str, float], seed: int
) -> SubmissionMark:
    """Mark one submission.

    Args:
        assignment: what was handed out, with what was not.
        name: of the submission.
        notebook: what was handed in; None when there is nothing that can be read.
        limits: ``memory`` in bytes, ``seconds`` for an exercise.
        seed: of the random points, unknown to whoever wrote the submission; 0 draws one.

    Returns:
        The mark; whatever the submission does ends in it.
    """
    start, seed = time.perf_counter(), seed or secrets.randbits(62)
    results: list[dict[str, Any]] = []
    reported: dict[str, tuple[str, ...]] = {}
    layers: set[str] = set()
    with _lock:
        declared = declared_by(assignment.texts, assignment.exercises)
        for exercise in (declared[name] for name in assignment.exercises):
            if notebook is None:
                result, judged = _lost(exercise, "no_notebook", seed), None
            else:
                judged = _Judged(exercise, assignment.texts, notebook, limits, seed)
                result = judged.result()
                layers |= judged.layers
            results.append(result.to_dict())
            reported[exercise.name] = () if judged is None else tuple(judged.reported)
    digest = "" if notebook is None else notebook.digest
    took = time.perf_counter() - start
    return SubmissionMark(name, digest, tuple(results), reported, sorted(layers), took, seed)


class _Judged:
    """One exercise of one submission."""

    def __init__(
        self, exercise: Exercise, texts: Mapping[str, str], notebook: Notebook, limits: Mapping[str, float], seed: int
    ) -> None:
        self.exercise, self.texts, self.limits, self.seed = exercise, texts, limits, seed
        self.cells, self.text = notebook.cells_of(exercise.name, exercise.answer)
        self.reported: list[str] = []
        self.layers: set[str] = set()

    def result(self) -> ExerciseResult:
        try:
            with self._child() as child:
                return self._checked(child)
        except LostError as lost:
            return _lost(self.exercise, lost.code, self.seed)

    def _child(self) -> Nursling:
        child = _nursery.born(self.limits)
        self.layers.update(child.layers)
        return child

    def _checked(self, child: Nursling) -> ExerciseResult:
        about, blob = child.start(self.cells, self.exercise.answer)
        kind = str(about.get("kind"))
        asked: dict[str, Any] = {"seed": self.seed, "source": self.text}
        if kind == "missing":
            if not self.text:
                return check(self.exercise, seed=self.seed)
            if about["raised"]:
                said = {"error": str(about["raised"]["type"])[:80], "said": str(about["raised"]["text"])[:160]}
                failure = Failure("cell_raised", "course.mark.cell_raised", said)
                return _failed(self.exercise, failure, self.seed)
            return check(self.exercise, defined=False, seed=self.seed)
        routines: dict[str, Any] = {name: self._crossing(name, routine) for name, routine in ROUTINES.items()}
        seen_inside = (*REPORTED, *(["custom"] if self.exercise.inside else []))
        routines |= {name: self._reported(name) for name in seen_inside}
        if kind == "class":
            if about["legacy"]:
                return _failed(
                    self.exercise, Failure("cannot_call", "checking.legacy", {"name": about["name"]}), self.seed
                )
            answer: Any = class_of(child, about)
        elif kind == "function":
            answer = function_of(child, self.exercise.answer, about)
        elif kind == "data":
            answer = child.decoded(about["value"], blob)
        else:  # an object whose parts stay where they are: nothing of it crosses
            answer, routines = Foreign(), {name: self._reported(name) for name in ROUTINES}
            return check(dataclasses.replace(self.exercise, apply=None), _stay, routines=routines, **asked)
        return check(self.exercise, answer, routines=routines, **asked)

    def _crossing(self, name: str, routine: Callable[[Attempt], Iterator[Failure]]) -> Callable[[Attempt], Any]:
        """Return a check that is made here, or in the child where it gives the answer what cannot be sent."""

        def crossing(attempt: Attempt) -> Any:
            try:
                return list(routine(attempt))
            except CannotCrossError:
                return self._reported(name)(attempt)

        return crossing

    def _reported(self, name: str) -> Callable[[Attempt], Any]:
        """Return a check that a child makes, one of its own: it sees what is declared, which the others must not."""

        def reported(attempt: Attempt) -> Any:
            self.reported.append(name)
            with self._child() as child:
                child.start(self.cells, self.exercise.answer)
                about = {"exercise": self.exercise.name, "check": name, "seed": self.seed}
                answer, _ = child.ask("report", texts=dict(self.texts), **about)
            return [_failure(told) for told in answer["failures"]]

        return reported


def _stay(*_: Any) -> None:
    """Stand for an answer that is not called here."""


def _failure(told: Any) -> Failure:
    """Return a failure that a child told, as far as it is one."""
    try:
        code = told["code"] if _CODE.fullmatch(told["code"]) else "garbled"
        languages = {lang: [str(s)[:400] for s in said[:3]] for lang, said in told["sentences"].items()}
        steps = [dict(zip(languages, each, strict=True)) for each in zip(*languages.values(), strict=True)]
        return Failure(code, steps[0] if steps else "", more=tuple(steps[1:]))
    except (LookupError, TypeError, AttributeError, ValueError):
        raise LostError("garbled") from None


def _lost(exercise: Exercise, code: str, seed: int) -> ExerciseResult:
    return _failed(exercise, Failure(code, f"course.mark.{code}"), seed)


def _failed(exercise: Exercise, failure: Failure, seed: int) -> ExerciseResult:
    outcomes = (CheckResult(exercise.ids[0], "failed", (failure,)),)
    return ExerciseResult(exercise.name, exercise.answer, "failed", outcomes, None, exercise.points, seed=seed)
