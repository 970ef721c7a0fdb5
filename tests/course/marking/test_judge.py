"""The judge marks ordinary and hostile answers as they deserve; whatever one does costs its own marks only."""

import json

import pytest
from marked_answers import CUBE, EXERCISES, HOSTILE, ORDINARY, SCALED, SQUARE

from nbautograd.course.marking.judge import mark
from nbautograd.course.marking.submissions import Assignment, notebook_of

LIMITS = {"seconds": 60, "memory": 1 << 30}
SETUP = "import torch\nfrom torch.autograd import Function\nfrom torch.autograd.function import once_differentiable\n"


def notebook(*cells):
    """A notebook of a setup cell and these, each an (exercise, text)."""
    made = [{"cell_type": "code", "metadata": {}, "source": SETUP}]
    made += [{"cell_type": "code", "metadata": {}, "source": f"%%exercise {e}\n{t}" if e else t} for e, t in cells]
    return notebook_of(json.dumps({"cells": made}).encode())


def marked(*cells, exercises=("square",), texts=EXERCISES, seed=0, seconds=60):
    return mark(
        Assignment("hw.ipynb", exercises, {"hw_exercises.py": texts}),
        "somebody",
        notebook(*cells),
        {**LIMITS, "seconds": seconds},
        seed,
    )


DAILY = [*ORDINARY, *{code: name for name, (*_, code) in HOSTILE.items()}.values()]  # each has a process of its own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "points", "code"),
    [
        pytest.param(*answer, id=name, marks=() if name in DAILY else pytest.mark.nightly)
        for name, answer in {**ORDINARY, **HOSTILE}.items()
    ],
)
def test_an_answer_gets_what_it_deserves(text, points, code):
    (result,) = marked(("square", text), seconds=4 if code == "too_slow" else 60).results
    assert result["earned"] == points, result["codes"]
    assert code in (result["codes"] or [""]) or not code
    assert (result["state"] == "passed") == (points == 2)


@pytest.mark.slow
def test_a_function_that_is_no_class_is_differentiated_too():
    (result,) = marked(("plain", "def plain(x):\n    return x * torch.sin(x)\n"), exercises=("plain",)).results
    assert result["passed"], result["codes"]


def test_a_submission_with_a_wrong_answer_a_process_that_ends_and_right_ones():
    helper = "def power(x):\n    return x**3\n\n\nraise RuntimeError('a plot that fails')\n"
    ends = SQUARE.replace("(x,) =", "import os; os._exit(0)\n        (x,) =")
    one = marked(
        ("", helper), ("square", ends), ("cube", CUBE), ("scaled", SCALED), exercises=("square", "cube", "scaled")
    )
    assert [r["earned"] for r in one.results] == [0, 3, 1]
    assert one.results[0]["codes"] == ["process_ended"]
    assert one.reported == {"square": (), "cube": (), "scaled": ()}
    assert "limits" in one.layers
