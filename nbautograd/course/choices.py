"""Choices: questions with a few answers to choose from; the right one is declared by its hash, beside a hint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from nbautograd.course.exercise import Texts


def digest(exercise: str, question: str, chosen: Any) -> str:
    """Return what an exercise's file says of the right choice: a hash, salted with the exercise and the question.

    The file travels with the notebook, so a reader would see the answer beside the hint. Whoever tries all choices
    still finds it, and a slow hash would not change that: the check tells of each question whether it is right.

    Args:
        exercise: its name.
        question: what is asked, a key of the answer.
        chosen: the right choice: a text, a number, True or False.

    Example:
        >>> from nbautograd.course.choices import digest
        >>> digest("which_raise", "A", True) == digest("which_raise", "B", True)
        False
    """
    return hashlib.sha256(f"{exercise}\n{question}\n{chosen!r}".encode()).hexdigest()[:16]


def wrong_choices(
    exercise: str, asked: Mapping[str, tuple[str, Texts]], answer: Mapping[str, Any]
) -> Iterator[tuple[str, Texts]]:
    """Yield each question whose answer is not the right choice, with its hint.

    Args:
        exercise: its name.
        asked: question -> digest of the right choice, and the hint.
        answer: question -> choice, for all of them.

    Example:
        >>> from nbautograd.course.choices import digest, wrong_choices
        >>> asked = {"2 + 2": (digest("sums", "2 + 2", 4), {"en": "Count.", "zh": "数一数。"})}
        >>> [hint["en"] for _, hint in wrong_choices("sums", asked, {"2 + 2": 5})]
        ['Count.']
    """
    for question, (right, hint) in asked.items():
        if digest(exercise, question, answer[question]) != right:
            yield question, hint
