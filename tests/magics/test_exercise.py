"""``%%exercise`` and ``%exercises`` in a shell."""

from __future__ import annotations

import pytest
from fn import written
from said import says

from nbautograd import messages
from nbautograd.course import catalogue
from nbautograd.course.exercise import Exercise
from nbautograd.course.source import without_magics
from nbautograd.magics.exercise import defines

RIGHT = "2 * ctx.saved_tensors[0] * g"


@pytest.fixture(autouse=True)
def square(monkeypatch):
    """One exercise, whatever the course has."""
    made = Exercise("square", "Square", "value gradient", lambda x: x * x, lambda draw: (draw.normal(3),))
    monkeypatch.setattr(catalogue, "_packaged", lambda: {"square": made})


def cell(returned=RIGHT, options=" square"):
    return f"%%exercise{options}\n" + written("Square", "x: save(x); return x * x", f"g: return {returned}")


def test_right_and_wrong(notebook):
    wrong = notebook(cell("-" + RIGHT))
    assert messages.text("course.chip.failed") + " `square`" in wrong.text
    assert says(wrong.text, "causes.mended_sign.what")
    assert wrong.error is None
    right = notebook(cell())
    assert right.text.startswith(f"✓ {messages.text('course.chip.passed')} `square`")


def test_the_function_is_recorded_and_no_card_shown(notebook):
    ran = notebook(cell())
    assert len(ran.bundles) == 1
    notebook("Square.apply(torch.ones(2))")
    assert "forward" in notebook("%autograd_calls Square").text


@pytest.mark.parametrize(
    ("options", "key", "told"),
    [
        ("", "course.magic.no_name", {}),
        (" square other", "course.magic.one_name", {"text": "square other"}),
        (" sqare", "magics.did_you_mean", {"near": "square"}),
        (" nothing", "course.unknown", {"name": "nothing"}),
        (" square --hints 9", "magics.unknown_choice", {"value": 9, "choices": "what, where, fix"}),
    ],
)
def test_a_line_that_is_not_understood_runs_nothing(notebook, options, key, told):
    ran = notebook(cell(options=options))
    assert says(ran.stderr, key, **told)
    assert says(ran.stderr, "magics.not_run")
    assert "Traceback" not in ran.stderr + ran.stdout
    assert "Square" not in notebook.shell.user_ns


def test_an_untouched_cell(notebook):
    ran = notebook("%%exercise square\nclass Square(Function):\n    ...  # your code here")
    assert says(ran.text, "course.chip.unanswered")
    assert ran.error is None
    assert "Ellipsis" not in notebook("%%exercise square\nSquare = 1\n...  # your code here").text
    raising = notebook("%%exercise square\nanswer = ...  # your code here\nanswer + 1")
    assert says(raising.text, "course.chip.unanswered")


def test_a_name_of_an_earlier_cell_is_no_answer(notebook):
    notebook(cell())
    assert "does not define `Square`" in notebook("%%exercise square\nx = 1").text


def test_an_error_is_the_students_own(notebook):
    ran = notebook("%%exercise square\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert ran.bundles == []
    assert isinstance(notebook("%%exercise square\nx = (").error, SyntaxError)


def test_an_answer_that_exits_ends_no_kernel(notebook):
    ran = notebook(cell("__import__('sys').exit(3)"))
    assert "SystemExit: 3" in ran.text


def test_progress(notebook, monkeypatch):
    other = Exercise("other", "Other", "value", lambda x: x, lambda draw: (draw.normal(3),))
    assert messages.text("course.progress.none") in notebook("%exercises").text
    made = catalogue._packaged()["square"]
    monkeypatch.setattr("nbautograd.course.progress.notebooks", lambda: {"01": (made, other)})
    notebook(cell("g"))
    notebook(cell())
    ran = notebook("%exercises")
    assert says(ran.text, "course.progress.title", done=1, count=2)
    assert "square        2  ✓ right" in ran.text
    assert "<table" in ran.html


def test_a_cell_stops_where_an_exercise_it_needs_has_no_answer(notebook):
    needing = "%exercises square\nreached = True"
    ran = notebook(needing)
    assert "`square`" in ran.stderr
    assert "reached" not in notebook.shell.user_ns
    notebook(cell("g"))  # an answer, though a wrong one
    notebook(needing)
    assert notebook.shell.user_ns["reached"]


def test_unloading_takes_the_magics_away(notebook):
    notebook("%unload_ext nbautograd")
    assert "exercise" not in notebook.shell.magics_manager.magics["cell"]
    assert "not found" in notebook(cell()).stderr


def test_an_exercise_declared_beside_the_notebook(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_exercises.py").write_text(
        "from nbautograd.course.exercise import Exercise\n"
        "EXERCISES = (Exercise('mine', 'f', 'value', lambda x: x + 1, lambda draw: (draw.normal(2),)),)\n"
    )
    assert "✓ right `mine`" in notebook("%%exercise mine\nf = lambda x: 1 + x").text


def test_declarations_that_cannot_be_read(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_exercises.py").write_text("EXERCISES = (")
    ran = notebook(cell())
    assert says(ran.stderr, "course.declarations_broken")
    assert "Traceback" not in ran.stderr + ran.stdout


def test_the_text_of_a_cell():
    assert without_magics("%%time\n%%exercise square\nx = 1") == "\n\nx = 1"
    assert defines("import numpy as Square", "Square")
    assert defines("def Square(x):\n    return x", "Square")
