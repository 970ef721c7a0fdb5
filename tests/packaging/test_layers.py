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
        ("core/recording/call.py", "import nbautograd.core.checking", "inside core"),
        ("core/checking/problem.py", "import nbautograd.core.checking.jacobian.layout", "inside checking"),
        ("core/checking/jacobian/layout.py", "import nbautograd.core.checking.steps.ladder", "inside checking"),
        ("core/checking/steps/ladder.py", "import nbautograd.core.checking.block_verdict", "inside checking"),
        ("core/checking/block_verdict.py", "import nbautograd.core.checking.diagnosis.masks", "inside checking"),
        ("core/checking/diagnosis/masks.py", "import nbautograd.core.checking.probes.usage", "inside checking"),
        ("core/checking/probes/usage.py", "import nbautograd.core.checking.repair.edit", "inside checking"),
        ("core/checking/report_verdict.py", "import nbautograd.core.checking.repair.edit", "inside checking"),
        ("core/graphs/graph.py", "import nbautograd.core.graphs.folding", "no circle"),
        ("core/values.py", "import nbautograd.core.tracing.log", "no circle"),
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
