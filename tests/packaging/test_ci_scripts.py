"""The set-up scripts parse, and a stage that fails makes the run fail without hiding the others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[2]
CI = ROOT / ".ci"


def bash(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of bash in the repository's root."""
    return subprocess.run(
        ["bash", "-c", script], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )


@pytest.mark.parametrize("script", sorted(file.name for file in CI.iterdir() if file.suffix != ".txt"))
def test_script_parses(script):
    run = bash(f"bash -n .ci/{script}")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is a GPU")
def test_a_machine_without_a_gpu_is_told_so():
    page = (ROOT / "docs" / "evidence" / "compatibility.md").read_text()
    run = bash(".ci/gpu", NBAUTOGRAD_VENV=str(Path(sys.executable).parents[1]))
    assert (run.returncode, run.stdout.startswith("There is no cuda here")) == (0, True)
    assert (ROOT / "docs" / "evidence" / "compatibility.md").read_text() == page


def test_all_stages_run_and_one_failure_counts():
    run = bash(". .ci/stages; stage first true; stage second false; stage third echo done; summary all")
    assert run.returncode == 1
    assert [line.split()[-1] for line in run.stdout.splitlines()[-3:]] == ["ok", "FAILED", "ok"]
    assert bash(". .ci/stages; stage only true; summary all").returncode == 0


SHOWN = (
    'stage() { printf "%s\\t" "$@"; echo; }; beside() { stage "$@"; }; join() { :; }; summary() { :; }; python=python'
)


@pytest.mark.parametrize(
    "marks", ["", "slow", "browser", "packaging", "notebooks", "e2e", "browser slow", "e2e notebooks"]
)
def test_stages_of_the_tests_leave_none_out(marks):
    """A test of any markers runs in one stage of the whole run, whose folders hold all files with such tests."""
    run = bash(SHOWN + (CI / "test").read_text().partition(". .ci/stages")[2])
    stages = [line.split("\t") for line in run.stdout.splitlines()]
    given = {words[0]: words[len(words) - words[::-1].index("-m") :] for words in stages}
    assert len(given) == len(stages) == 4
    own = marks.split()
    (held,) = (rest for rest in given.values() if Expression.compile(rest[0]).evaluate(lambda name: name in own))
    folders = [CI.parent / folder for folder in held[1:] if folder] or [CI.parent / "tests"]
    files = [one for one in CI.parent.glob("tests/**/*.py") if all(f"mark.{m}" in one.read_text() for m in own)]
    assert [one for one in files if not any(folder in one.parents for folder in folders)] == []


def test_the_constraints_are_versions_that_were_tested():
    """Pins are exact, torch's is the one that the set-up asks for, and what is installed here agrees with them."""
    from importlib import metadata

    lines = [line for line in (CI / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    pins = dict(line.split("==") for line in lines)
    assert f"torch={pins['torch']}\n" in (CI / "environment").read_text()
    if os.environ.get("CI"):
        assert {name for name, pin in pins.items() if metadata.version(name).split("+")[0] != pin} == set()


STUB = """#!/bin/sh
# a Python that makes "environments" of itself, installs nothing, and whose tests end as TESTS says
case "$*" in
  "-m venv"*) mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  *version_info*) echo 3.11 ;;
  *"-m pytest"*) echo "${TESTS#*:}"; exit "${TESTS%%:*}" ;;
  *torch.__version__*) echo 2.6.0 ;;
esac
"""


def matrix(folder: Path, tests: str, *pairs: str) -> tuple[int, list[str]]:
    """Return the exit status and the table of .ci/matrix with a stub for Python 3.11 and no other Python."""
    stub = folder / "python3.11"
    stub.write_text(STUB)
    stub.chmod(0o755)
    run = bash(
        f".ci/matrix {' '.join(pairs)}",
        PATH=f"{folder}:{os.environ['PATH']}",
        PYENV_ROOT=str(folder),
        NBAUTOGRAD_MATRIX=str(folder / "environments"),
        TESTS=tests,
    )
    return run.returncode, run.stdout.splitlines()[-len(pairs) :]


def test_a_pair_whose_tests_fail_makes_the_matrix_fail(tmp_path):
    status, table = matrix(tmp_path, "1:1 failed, 2 passed in 0.10s", "3.11:2.6", "3.99:2.6")
    assert status == 1
    assert table[0].split(maxsplit=2) == ["3.11:2.6", "2.6.0", "1 failed, 2 passed in 0.10s"]


def test_a_pair_that_cannot_be_made_is_named_and_has_not_passed(tmp_path):
    status, table = matrix(tmp_path, "0:2 passed in 0.10s", "3.11:2.6", "3.99:2.6")
    assert status == 0
    assert "2 passed" in table[0]
    assert "passed" not in table[1]
    assert table[1].endswith("not made: there is no Python 3.99 here")
