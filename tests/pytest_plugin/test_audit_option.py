"""pytest --autograd-audit, driven as its users drive it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import said
from fn import BASE, written

from nbautograd import messages

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow  # each starts a pytest with torch
ROOT = Path(__file__).parents[2]
BACKWARD = "g: (x,) = saved; return {factor} * g * x.exp()"
TESTS = f"""
import torch

{written("Scaled", "x: save(x); return x.exp()", BACKWARD, base=BASE)}
def run():
    Scaled.apply(torch.randn(3, requires_grad=True)).sum().backward()
    assert type(vars(Scaled)["forward"]) is {{kind}}

def test_one(): run()
def test_two(): run()
def test_three(): run()
def test_four(): run()
"""
WRONG = messages.text("views.audit.wrong", count=1, wrong=1, names="`Scaled`")


@pytest.fixture
def run(pytester, monkeypatch):
    def run(*options, factor=2, more=(), kind="type(vars(Scaled)['forward'])"):
        pytester.makepyfile(TESTS.format(factor=factor, kind=kind))
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        monkeypatch.setenv("NBAUTOGRAD_LANG", "en")
        monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=":")
        plugins = [word for name in ("nbautograd.pytest_plugin", *more) for word in ("-p", name)]
        return pytester.runpytest_subprocess(*plugins, "-p", "no:cacheprovider", *options)

    return run


def test_the_run_passes_with_a_section_at_its_end(run, pytester):
    result = run("--autograd-audit", str(pytester.path))  # a path that follows the option is no value of it
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*autograd audit*", WRONG, "*`test_*.py::test_one`*", "Scaled*wrong*4"])
    tests = r",?\s[\s\S]*".join(rf"`test_\w+\.py::test_{name}`" for name in ("one", "two", "three", "four"))
    assert re.search(tests, str(result.stdout))
    assert result.ret == 0


def test_a_wrong_gradient_fails_the_run_where_that_was_asked_for(run):
    result = run("--autograd-audit", "fail")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines([WRONG])
    said.heard(str(result.stdout), "audit.fails_the_run")
    assert result.ret == 1


def test_a_gradient_that_is_meant_to_be_no_derivative_fails_nothing(run, pytester):
    step = "import torch\nclass Scaled(torch.autograd.Function):\n"
    step += "    @staticmethod\n    def forward(ctx, x): return x.round()\n"
    step += "    @staticmethod\n    def backward(ctx, g): return g\n"
    step += "def test_step(): Scaled.apply(torch.randn(3, requires_grad=True)).sum().backward()\n"
    pytester.makepyfile(test_step=step)
    result = run("--autograd-audit=fail", "test_step.py")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["Scaled*meant*1"])


def test_right_gradients_fail_nothing(run):
    result = run("--autograd-audit=fail", factor=1)
    said.heard(str(result.stdout), "views.audit.right")
    assert result.ret == 0


def test_without_the_option_nothing_is_watched(run):
    result = run(kind="staticmethod")
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*autograd audit*")


@pytest.mark.nightly
@pytest.mark.parametrize(("mode", "status"), [("report", 0), ("fail", 1)])
def test_the_processes_of_xdist_make_one_report(run, mode, status):
    pytest.importorskip("xdist")
    result = run(f"--autograd-audit={mode}", "-n", "2", more=["xdist"])
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines([WRONG, "Scaled*wrong*4"])
    assert str(result.stdout).count(WRONG) == 1
    assert all(f"::test_{name}`" in str(result.stdout) for name in ("one", "two", "three", "four"))
    assert result.ret == status
