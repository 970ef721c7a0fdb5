"""The judge gives the right answers to our own exercises full marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nbautograd.course.answers import answers_of
from nbautograd.course.marking.judge import mark
from nbautograd.course.marking.submissions import assignment, notebook_of
from nbautograd.course.source import read, solved

NOTEBOOKS = Path(__file__).parents[3] / "notebooks"
SOURCES = [path for path in sorted((NOTEBOOKS / "source").glob("[0-9]*.py")) if read(path).answers]


@pytest.mark.nightly
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_solutions_and_right_answers_in_other_words_get_full_marks(path: Path) -> None:
    source, released = read(path), NOTEBOOKS / "en" / f"{path.stem}.ipynb"
    answers = {cell.exercise: [solved(cell)] for cell in source.answers}
    for answer in answers_of(source):
        if answer.expected == "right":
            answers[answer.exercise].append(answer.text)
    for style in range(max(map(len, answers.values()))):
        book = json.loads(released.read_text(encoding="utf-8"))
        for cell in book["cells"]:
            exercise = cell["metadata"].get("nbautograd", {}).get("exercise")
            if exercise:
                texts = answers[exercise]
                cell["source"] = f"%%exercise {exercise}\n{texts[min(style, len(texts) - 1)]}"
        handed_in = notebook_of(json.dumps(book).encode())
        made = mark(assignment(released), "ann", handed_in, {"seconds": 60, "memory": 2 << 30}, seed=1)
        lost = {r["exercise"]: r["codes"] for r in made.results if r["earned"] != r["points"]}
        assert len(made.results) == len(answers)
        assert lost == {}
