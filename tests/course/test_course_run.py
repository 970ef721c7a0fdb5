"""What a student reads of a run: kind, level by level, in both languages; and what a grader gets: plain data."""

from __future__ import annotations

import json

import pytest
import torch
from said import says
from written_answers import product

from nbautograd import messages
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.result import CheckResult
from nbautograd.course.run import check, placeholder
from nbautograd.views.bundle import mimebundle

MULTIPLY = Exercise("multiply", "Multiply", "value gradient", torch.mul, lambda draw: (draw.normal(3), draw.normal(3)))
SWAPPED = {"returned": "return g * a, g * b"}


def test_the_levels_of_hints_say_more_and_more():
    result = check(MULTIPLY, product(**SWAPPED))
    [failed] = [outcome for outcome in result.outcomes if outcome.state == "failed"]
    assert failed.sentences("what") == (messages.text("causes.mended_exchanged.what", input="a"),)
    assert "line 10" in " ".join(failed.sentences("where"))
    assert failed.more("what")
    assert not failed.more("fix")


@pytest.mark.parametrize(
    "returned", ["return g * b * 2, g * a", "return g, g * a", "return g * b * b, g * a", "return g * b + g, g * a"]
)
def test_the_first_level_never_names_the_right_expression(returned):
    result = check(MULTIPLY, product(returned=returned))
    told = " ".join(s for outcome in result.outcomes for s in outcome.sentences("what"))
    assert told
    assert "`b`" not in told.replace("gradient of `b`", "")
    assert "times `" not in told


def test_a_result_is_plain_data_in_both_languages():
    result = check(MULTIPLY, product(**SWAPPED))
    held = json.loads(json.dumps(result.to_dict()))
    assert held["codes"] == ["swapped_inputs"]
    assert held["passed"] is False
    [failure, *_] = held["outcomes"][1]["failures"]
    assert "swapped" in failure["sentences"]["en"][0]
    assert "梯度" in failure["sentences"]["zh"][0]
    assert messages.language() == "en"


def test_an_untouched_cell_fails_kindly():
    text = "class Multiply(Function):\n    @staticmethod\n    def forward(ctx, a, b):\n        ...  # your code here\n"
    result = check(MULTIPLY, product(value="None"), source=text)
    assert (result.state, result.codes, result.line) == ("unanswered", ("not_answered",), 4)
    assert "Replace" in mimebundle(result)["text/plain"]
    assert check(MULTIPLY, ...).state == "unanswered"
    assert check(MULTIPLY, product(), source=text).passed  # a forgotten line does no harm


def test_a_placeholder_is_a_line_that_stands_for_an_answer():
    assert placeholder("%%exercise x\ny = x[..., 0]") is None
    assert placeholder("%%exercise x\nanswer = ...  # your code here") == 2
    assert placeholder("def f(:") is None


def test_old_style_functions_are_explained():
    old = type("Old", (torch.autograd.Function,), {"forward": lambda self, a, b: a * b, "backward": lambda self, g: g})
    result = check(MULTIPLY, old)
    assert result.state == "failed"
    assert says(mimebundle(result)["text/plain"], "checking.legacy")


def test_the_checks_behind_a_failure_wait():
    result = check(
        Exercise("m", "unchanged", "value gradient edges", torch.mul, lambda d: (d.normal(3), d.normal(3))),
        product(value="a + b"),
    )
    assert [outcome.state for outcome in result.outcomes] == ["failed", "skipped", "skipped"]


def test_a_note_of_the_exercise_takes_the_place_of_the_sentence():
    exercise = Exercise(
        "multiply", "Multiply", "value gradient", torch.mul, lambda draw: (draw.normal(3), draw.normal(3)),
        notes={"swapped_inputs": {"en": "In which order?", "zh": "什么顺序？"}},
    )  # fmt: skip
    result = check(exercise, product(**SWAPPED))
    assert result.outcomes[1].sentences("what") == ("In which order?",)


def test_a_failure_without_a_sentence_names_its_check():
    (said,) = CheckResult("custom", "failed", (Failure("odd"),)).sentences("fix")
    assert said == messages.text("course.only_failed", check=messages.text("course.check.custom"))


def test_an_exercise_that_no_check_could_be_made_of_is_refused():
    with pytest.raises(ValueError, match="checks"):
        Exercise("x", "X", "value colour")
    with pytest.raises(ValueError, match="check value needs formula"):
        Exercise("x", "X", "value")


def test_a_failure_of_an_exercise_within_another_has_its_advice_once():
    within = Exercise("square", "square", "value", torch.square, lambda draw: (draw.normal(3),))

    def own(answer, draw):
        yield from check(within, answer).outcomes[0].failures

    for exercise in (within, Exercise("whole", "whole", "custom", own=own)):
        sentences = check(exercise, lambda x: x**3).outcomes[0].sentences("fix")
        assert sentences[1:] == (messages.text("course.advice.forward_value"),)
