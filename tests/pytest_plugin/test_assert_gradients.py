"""The pytest plugin, driven as its users drive it: a test file of their own and a pytest of its own."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import torch
from fn import written
from functions_checked import RoundStraightThrough
from said import says

from nbautograd.errors import CallError, GradcheckError
from nbautograd.pytest_plugin import assert_gradients

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]

TESTS = f"""
import pytest
import torch
from torch.autograd import Function
from nbautograd import pytest_plugin

{written("Square", "x: save(x); return x * x", "g: (x,) = saved; return 2 * x * g")}
{written("Odd", backward="g: (x,) = saved; return (2 + len(x) % 2) * x * g", base="Square")}
X = torch.linspace(-1, 1, 7, dtype=torch.float64, requires_grad=True)

def cases():
    yield "small", (torch.linspace(0.5, 1, 6).requires_grad_(),)
    yield "odd", (torch.linspace(0.5, 1, 7).requires_grad_(),)

def test_right(assert_gradients):
    assert assert_gradients(Square, (X,)).verdict == "right"

def test_wrong(assert_gradients):
    assert_gradients(Odd, (X,))

def test_hint():
    pytest_plugin.assert_gradients(Odd, X, hints="what")

@pytest.mark.gradient_cases(cases=cases)
def test_each(assert_gradients, case):
    report = assert_gradients(Odd, case, reference=torch.square)
    assert not report.cases  # what has a name is not resized

def test_all(assert_gradients):
    assert_gradients(Odd, reference=torch.square, cases=cases)
"""


@pytest.mark.slow
def test_what_is_wrong_fails_with_its_report_in_each_case(pytester, monkeypatch):
    pytester.makepyfile(TESTS)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("NBAUTOGRAD_LANG", "en")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    result = pytester.runpytest_subprocess("-p", "nbautograd.pytest_plugin", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=4)
    failed = [f"FAILED *::{name}*" for name in ("test_wrong", "test_hint", "test_each?odd?", "test_all")]
    result.stdout.fnmatch_lines(["E*GradcheckError: Odd:*", *failed])
    result.stdout.no_fnmatch_line("*raise GradcheckError*")  # our own frames are hidden
    _, hint = str(result.stdout).split("_ test_hint _")
    hint = hint.partition("_ test_each")[0]
    assert [says(hint, f"causes.constant_factor.{part}") for part in ("what", "advice")] == [True, False]


def test_the_fixture_is_listed_with_what_it_does(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = pytester.runpytest_subprocess("-p", "nbautograd.pytest_plugin", "--fixtures")
    result.stdout.fnmatch_lines(["assert_gradients*", "*Check the gradients of a torch.autograd.Function*"])


def test_the_entry_point_names_the_plugin() -> None:
    tomllib = pytest.importorskip("tomllib")
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    [(name, value)] = named.items()
    assert EntryPoint(name, value, "pytest11").load().assert_gradients is assert_gradients


def test_what_cannot_be_told_fails_unless_asked_for() -> None:
    x = torch.tensor([0.3, 1.2], dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="flat"):
        assert_gradients(RoundStraightThrough, x)
    assert assert_gradients(RoundStraightThrough, x, unsure=True).verdict == "cannot tell"


def test_a_call_that_makes_no_sense_is_told_as_such() -> None:
    with pytest.raises(CallError):
        assert_gradients(RoundStraightThrough, 3)
