"""The wheel, built once for all tests here, and an environment that it is installed in."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from notebook_shell import bare, ipython

__all__ = ["bare", "built", "fresh", "ipython"]

ROOT = Path(__file__).parents[2]
MADE_HERE = ("build", "dist", "*.egg-info", "__pycache__", "node_modules", "artifacts", "my-notebooks", ".*_cache")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", *MADE_HERE)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, and the wheel that is made from it, as one would publish them."""
    source, out = tmp_path_factory.mktemp("source") / "nbautograd", tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return {path.suffix: path for path in out.iterdir()}


@pytest.fixture(scope="session")
def fresh(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment with the wheel. It borrows the dependencies of this one, torch is too large to copy."""
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*command, str(built[".whl"])], check=True, stdin=subprocess.DEVNULL)
    (site,) = folder.glob("lib/python*/site-packages")
    # a path in a .pth file is searched last, and .pth files in there (the editable install's) are not read
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder
