"""The exercise's own check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nbautograd.course.attempt import Attempt
from nbautograd.course.checks import exceptions
from nbautograd.course.exercise import Failure


def custom(attempt: Attempt) -> Iterator[Failure]:
    """Whatever the exercise's author wrote; what it raises is a failure as well."""
    assert attempt.exercise.own is not None
    try:
        yield from attempt.exercise.own(attempt.answer, attempt.draw())
    except Exception as error:
        failure = exceptions.plainly("own_raised", error)
        yield (
            failure if failure.more else replace(failure, sentence="course.own_unusable")
        )  # no line of the cell raised
