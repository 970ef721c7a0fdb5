"""Completion of options, choices, names and expressions."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter

BODY = "\nclass Product(torch.autograd.Function):\n    pass"


def complete(notebook, code: str, cursor: int | None = None) -> list[str]:
    with provisionalcompleter():
        return [c.text for c in notebook.shell.Completer.completions(code, len(code) if cursor is None else cursor)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%autograd_function --", ["--inputs", "--name", "--reference", "--hints", "--order", "--budget"]),
        ("%%autograd_function ", ["--inputs", "--name", "--reference", "--hints", "--order", "--budget"]),
        ("%%autograd_function --in", ["--inputs"]),
        ("%%autograd_function --inputs a --n", ["--name"]),
        ("%%autograd_function --hints ", ["none", "what", "where", "fix"]),
        ("%%autograd_function --budget n", ["none"]),
        ("%%autograd_function --order 2 --hints wha", ["what"]),
    ],
)
def test_options_and_choices(notebook, line: str, expected: list[str]) -> None:
    assert complete(notebook, line) == sorted(expected) or complete(notebook, line) == expected
    assert set(complete(notebook, line + BODY, len(line))) == set(expected)


def test_name_offers_the_classes_of_the_cell(notebook) -> None:
    line = "%%autograd_function --name "
    assert complete(notebook, line + BODY, len(line)) == ["Product"]


@pytest.mark.parametrize(
    "line",
    [
        "%gradcheck line",
        "%jacobian line",
        "%autograd_graph line",
        "%autograd_compare linear(1) line",
        "%%autograd_function --inputs a, line",
        "%%autograd_function --reference line",
    ],
)
def test_variables(notebook, line: str) -> None:
    notebook("linear = 3")
    assert "linear" in complete(notebook, line)


def test_a_line_magic_offers_the_users_variables_first(notebook) -> None:
    notebook("linear = 3")
    offered = complete(notebook, "%gradcheck ")
    assert "linear" in offered
    assert not any(text.startswith(("%", "_")) for text in offered)


def test_recorded_functions_after_autograd_calls(notebook) -> None:
    notebook("%%autograd_function\nclass Product(Function):\n    pass")
    assert "Product" in complete(notebook, "%autograd_calls P")


def test_the_body_is_left_to_jedi(notebook) -> None:
    code = "%%autograd_function --inputs a\nclass F(Function):\n    def forward(ctx, weight):\n        return wei"
    assert "weight" in complete(notebook, code)
    assert "Function" in complete(notebook, "%%autograd_function\nclass F(torch.autograd.Func")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%exercise mult", "multiply"),
        ("%%exercise multiply --h", "--hints"),
        ("%%exercise multiply --hints ", "where"),
    ],
)
def test_names_of_exercises(notebook, line: str, expected: str) -> None:
    assert expected in complete(notebook, line)
    assert "multiply" not in complete(notebook, "%%exercise multiply ")


def test_completion_runs_no_file(notebook, tmp_path, monkeypatch) -> None:
    """A file in a folder of downloads must not run because somebody types there."""
    (tmp_path / "evil_exercises.py").write_text(
        "open('ran', 'w')\nimport nbautograd.course.exercise as e\n"
        "EXERCISES = (e.Exercise('written_out', 'A'), e.Exercise(name='written_named', answer='B'))\n"
    )
    (tmp_path / "broken_exercises.py").write_text("def (")
    monkeypatch.chdir(tmp_path)
    assert {"written_out", "written_named"} <= set(complete(notebook, "%%exercise written"))
    assert "multiply" in complete(notebook, "%%exercise mult")
    assert not (tmp_path / "ran").exists()
