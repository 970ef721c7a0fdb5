"""`import nbautograd` brings in nothing heavy, and the guard that says so can trip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("IPython", "matplotlib", "PIL", "anywidget", "ipywidgets", "graphviz", "nbconvert", "jupyterlab")


def brought_in(statement: str, root: Path) -> set[str]:
    """Which heavy packages a fresh process has imported after this statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True, env=environment
    )
    return {name.split(".")[0] for name in run.stdout.split()} & set(HEAVY)


def test_import_brings_in_nothing_heavy():
    assert brought_in("import nbautograd", ROOT) == set()


def test_who_runs_pytest_pays_for_the_plugin_alone():
    code = (
        "import sys, nbautograd.pytest_plugin; print(*(name for name in sys.modules if name.startswith('nbautograd')))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    ours = {name for name in run.stdout.split() if name.startswith("nbautograd")}
    assert ours == {"nbautograd", "nbautograd.version", "nbautograd.pytest_plugin"}


@pytest.mark.slow
def test_checking_and_showing_without_a_notebook_need_nothing_heavy_either():
    code = "import nbautograd, nbautograd.views.dot, nbautograd.views.svg; nbautograd.gradcheck; nbautograd.graph; "
    assert brought_in(code + "nbautograd.types.CallLog()._repr_mimebundle_()", ROOT) == set()


def test_the_guard_trips(tmp_path):
    shutil.copytree(ROOT / "nbautograd", tmp_path / "nbautograd")
    with (tmp_path / "nbautograd" / "__init__.py").open("a") as file:
        file.write("\nimport IPython\n")
    assert "IPython" in brought_in("import nbautograd", tmp_path)


def test_every_public_name_is_there():
    import nbautograd

    assert all(getattr(nbautograd, name) is not None for name in nbautograd.__all__)
    assert set(nbautograd.__all__) <= set(dir(nbautograd))
