"""Answers to exercises that an author knows: right ones in other words, wrong ones with the code they must fail with.

They are written as edits of the solution, in a file beside the source with the ending ``.diff``::

    @@ square: sign
    -        return 2 * x * grad_output
    +        return -2 * x * grad_output
    @@ square: right
    -        return 2 * x * grad_output
    +        return grad_output * (x + x)

A section begins with the exercise and ``right`` or a code. Lines that stay have a space before them; they are needed
where the others alone are in the solution twice. ``@@`` alone begins another edit of the same answer. An answer of
``+`` lines alone is written out whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from nbautograd.course.source import Source, SourceError, solved

_SECTION = re.compile(r"(?m)^@@ (\w+): (\S+)\n((?:(?!@@ ).*\n?)*)")


@dataclass(frozen=True)
class ExerciseAnswer:
    """An answer that somebody could give.

    Attributes:
        exercise: its exercise.
        expected: the code of a failure, ``"check:gradient"``, or ``"right"``.
        text: the whole cell.
    """

    exercise: str
    expected: str
    text: str


def answers_of(source: Source, file: Path | None = None) -> tuple[ExerciseAnswer, ...]:
    """Return the answers to the exercises of a source notebook, in order.

    Args:
        source: the source notebook.
        file: with the answers; by default the one beside the source, if it has one.

    Raises:
        SourceError: for an edit of what is not in the solution, or there more than once.
    """
    file = source.path.with_suffix(".diff") if file is None else file
    if not file.exists():
        return ()
    solutions = {cell.exercise: solved(cell) for cell in source.answers}
    found = []
    for exercise, expected, body in _SECTION.findall(file.read_text(encoding="utf-8")):
        if exercise not in solutions:
            raise SourceError("course.answer_of_no_exercise", file=file.name, exercise=exercise)
        found.append(ExerciseAnswer(exercise, expected, _edited(solutions[exercise], body, exercise)))
    return tuple(found)


def _edited(solution: str, body: str, exercise: str) -> str:
    if all(line.startswith("+") for line in body.splitlines()):
        return "\n".join(line[1:] for line in body.splitlines())
    text = solution + "\n"
    for hunk in re.split(r"(?m)^@@\n", body):
        before, after = (
            "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[:1] in kept) for kept in (" -", " +")
        )
        if f"\n{text}".count(f"\n{before}") != 1:
            raise SourceError("course.edit_misses", exercise=exercise, text=before.strip())
        text = f"\n{text}".replace(f"\n{before}", f"\n{after}", 1)[1:]
    return text.removesuffix("\n")
