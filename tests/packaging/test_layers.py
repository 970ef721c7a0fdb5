"""Imports run one way, and the contract that says so can fail."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT = "import sys; sys.argv = ['lint-imports', '--no-cache']; import importlinter.cli as c; c.lint_imports_command()"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of pyproject.toml on the package in this folder."""
    return subprocess.run([sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """A copy of the package that a test may spoil."""
    shutil.copytree(ROOT / "nbautograd", tmp_path / "nbautograd", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold():
    run = lint(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("core/values.py", "import nbautograd.views", "command -> magics -> widgets -> views -> inspection -> core"),
        ("core/values.py", "import nbautograd.inspection", "widgets -> views -> inspection -> core"),
        ("core/recording/calls.py", "import nbautograd.core.checking", "inside core"),
        ("core/findings.py", "import matplotlib", "core knows no IPython"),
        ("views/__init__.py", "import ipywidgets", "views know no IPython"),
    ],
)
def test_a_step_the_wrong_way_is_seen(copy, file, line, contract):
    with (copy / "nbautograd" / file).open("a") as source:
        source.write(f"\n{line}\n")
    run = lint(copy)
    assert run.returncode != 0
    assert any(contract in said and "BROKEN" in said for said in run.stdout.splitlines()), run.stdout
