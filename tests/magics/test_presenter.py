"""What a cell with the magic shows: a report, or a sentence for what cannot be."""

from __future__ import annotations

import re

import pytest
from fn import written
from IPython.core.error import UsageError
from said import pattern, says


def square(line: str = "", prelude: str = "pass", backward: str = "pass") -> str:
    made = written("Square", f"x: {prelude}; save(x); return x * x", f"g: (x,) = saved; {backward}; return 2 * x * g")
    return f"%%autograd_function {line}\n{made}\nsquare = Square.apply\n"


OTHER = written("Other", "x: return x * x", "g: return g")


X = "x = torch.tensor([1., 2., 3.], dtype=torch.double, requires_grad=True)"


def test_with_inputs_the_report_appears_and_the_users_tensors_are_untouched(notebook) -> None:
    notebook(X)
    ran = notebook(square("--inputs x"))
    assert says(ran.text, "views.headline.right", function="Square")
    assert len(ran.bundles) == 1
    assert {"text/plain", "text/html"} <= set(ran.bundles[0])
    assert notebook["x"].grad is None


def test_under_capture_it_records_and_shows_nothing(notebook) -> None:
    notebook(X)
    ran = notebook("%%capture\n" + square() + "y = square(x)")
    assert ran.bundles == []
    assert (ran.stdout, ran.stderr) == ("", "")
    assert len(notebook("%autograd_calls Square").result.result) == 1


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("y", pattern("magics.inputs_undefined", name="y")),
        ("x.long()", "int64"),
        ("3", pattern("checking.no_tensors", count=1)),
    ],
)
def test_inputs_that_cannot_be_used_are_one_line_and_the_class_stays(notebook, inputs: str, words: str) -> None:
    notebook(X)
    ran = notebook(square(f"--inputs {inputs}"))
    assert re.search(words, ran.stderr)
    assert ran.stderr.startswith("UsageError: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stdout + ran.stderr
    assert isinstance(ran.error, UsageError)  # so that a front end stops the cells behind it
    assert notebook("square(x).tolist()").result.result == [1, 4, 9]
    assert len(notebook("%autograd_calls Square").result.result) == 1


def test_a_wrong_option_runs_nothing(notebook) -> None:
    ran = notebook(square("--input x"))
    assert says(ran.stderr, "magics.unknown_option", option="--input")
    assert "Square" not in notebook.shell.user_ns


def test_a_forward_that_raises_shows_its_own_traceback_without_ours(notebook) -> None:
    notebook(X)
    ran = notebook(square("--inputs x", prelude="x = x @ x @ x"))
    assert isinstance(ran.error, RuntimeError)
    assert "RuntimeError" in ran.stdout
    assert "x = x @ x @ x" in ran.stdout
    assert "nbautograd/" not in ran.stdout
    assert "<magic>" not in ran.stdout
    assert ran.stdout.count("Traceback (most recent call last)") == 1


@pytest.mark.parametrize("method", ["prelude", "backward"])
def test_a_function_that_exits_ends_no_kernel(notebook, method) -> None:
    notebook(X)
    ran = notebook(square("--inputs x", **{method: "raise SystemExit(3)"}))  # what leaves here has left the shell
    assert "SystemExit: 3" in ran.stdout + ran.text


def test_a_syntax_error_is_ipythons_own_and_nothing_else(notebook) -> None:
    ran = notebook(square("--inputs x").replace("pass", "x = = 1"))
    assert ran.bundles == []
    assert ran.stderr == ""
    assert "SyntaxError: invalid syntax" in ran.stdout


def test_a_cell_that_fails_half_way_shows_a_card_and_no_report(notebook) -> None:
    notebook(X)
    ran = notebook(square("--inputs x") + "square(x)\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert says(ran.text, "magics.card_called", names="`Square`")
    assert says(ran.text, "views.headline.calls", calls="calls: 1")
    assert not says(ran.text, "views.headline.right")


def test_two_functions_in_one_cell(notebook) -> None:
    notebook(X)
    assert "Other: backward" in notebook(square("--inputs x") + OTHER).text
    named = notebook(square("--inputs x --name Square") + OTHER)
    assert says(named.text, "views.headline.right", function="Square")
    assert "Recording `Square`, `Other`" in notebook(square() + OTHER).text
    wrong = notebook(square("--inputs x --name Squrae") + OTHER)
    assert says(wrong.stderr, "magics.no_such_name", name="Squrae", names="Square, Other")
    assert says(wrong.stderr, "magics.did_you_mean", near="Square")


def test_running_a_cell_again_replaces_the_registration(notebook) -> None:
    for _ in range(3):
        notebook(square())
    old = notebook["Square"]
    notebook(square())
    assert type(old.__dict__["forward"]) is staticmethod  # as written again
    assert type(notebook["Square"].__dict__["forward"]) is not staticmethod
    notebook(X + "\ny = square(x)")
    assert [c.method for c in notebook("%autograd_calls Square").result.result] == ["forward"]
