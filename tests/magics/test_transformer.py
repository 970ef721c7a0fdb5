from __future__ import annotations

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from nbautograd.course import catalogue
from nbautograd.course.exercise import Exercise
from nbautograd.magics.transformer import BlankMagicLines, Request, read

BODY = "class F:\n    pass\n"


@pytest.fixture
def manager() -> TransformerManager:
    made = TransformerManager()
    made.cleanup_transforms.append(BlankMagicLines(lambda request: None))
    return made


@pytest.fixture
def square(monkeypatch: pytest.MonkeyPatch) -> Exercise:
    exercise = Exercise("square", "Square", "value", lambda x: x * x, lambda draw: (draw.normal(3),))
    monkeypatch.setattr(catalogue, "_packaged", lambda: {"square": exercise})
    return exercise


def request(cell: str) -> Request | None:
    return read(cell.splitlines(keepends=True))[0]


@pytest.mark.parametrize(
    "cell", ["%%autograd_function --wrong\nx = 1\n", "%%autograd_function\n", "%%autograd_function --inputs a\n\n  \n"]
)
def test_wrong_options_and_empty_bodies_are_left_to_the_registered_magic(manager, cell):
    assert "run_cell_magic('autograd_function'" in manager.transform_cell(cell)
    assert request(cell) is None


def test_help_is_left_alone(manager: TransformerManager) -> None:
    assert "pinfo" in manager.transform_cell("%%autograd_function?")
    assert request("%%autograd_function?\nx = 1") is None


def test_who_runs_the_cell_is_told_what_each_cell_asks_for() -> None:
    told: list[Request | None] = []
    manager = TransformerManager()
    manager.cleanup_transforms.append(BlankMagicLines(told.append))
    manager.transform_cell(f"\n\n%%autograd_function -i a\n{BODY}")
    manager.transform_cell(BODY)
    manager.transform_cell(f"%%time\n%%autograd_function -i a\n{BODY}")  # %%time transforms what is below it itself
    [first, *others] = told
    assert (first.options.inputs, first.exercise, first.body) == ("a", None, f"\n{BODY}")
    assert others == [None, None]


def test_an_exercise_alone_is_recorded_and_not_shown(square: Exercise) -> None:
    asked = request(f"%%exercise square --hints where\n{BODY}")
    assert asked.options is None
    assert asked.exercise.hints == "where"


def test_the_second_line_may_be_wrong_too(square: Exercise, manager: TransformerManager) -> None:
    shown = manager.transform_cell(f"%%exercise square\n%%autograd_function --wrong\n{BODY}")
    assert shown.startswith("get_ipython().run_cell_magic('autograd_function', '--wrong'")


def test_a_cell_is_complete_when_it_ends_with_an_empty_line(manager: TransformerManager) -> None:
    assert manager.check_complete("%%autograd_function")[0] == "incomplete"
    assert manager.check_complete(f"%%autograd_function\n{BODY}")[0] == "incomplete"
    assert manager.check_complete(f"%%autograd_function\n{BODY}\n")[0] == "complete"
