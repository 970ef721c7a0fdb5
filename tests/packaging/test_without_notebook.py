"""``pip install --no-deps nbautograd`` beside torch, numpy and pytest alone is enough for CI."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

# the text of a check, a comparison and an audit, from Python
SCRIPT = """
import torch, nbautograd
x = torch.randn(3, dtype=torch.float64, requires_grad=True)
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return g * {factor}
print(nbautograd.gradcheck(Double, x))
print(nbautograd.compare(Double, lambda x: x * 2, (x,), sizes=()))
print(nbautograd.audit(Double.apply, x))
try:
    import {absent}
except ImportError:
    print("no {absent}")
"""
TEST = """
import torch
def test_sine(assert_gradients):
    assert_gradients(torch.sin, torch.randn(3, dtype=torch.float64, requires_grad=True))
"""
ABSENT = ("PIL", "matplotlib", "ipywidgets", "anywidget", "graphviz", "IPython")


def needed(*names: str) -> set[str]:
    """Return these distributions and all that they require, without extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system or another Python
            continue
        if name not in found:
            found.add(name)
            waiting += [re.match(r"[\w.-]+", line)[0] for line in requires if "extra ==" not in line]  # type: ignore[index]
    return found


@pytest.fixture(scope="module")
def lean(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment of torch, numpy and pytest, linked in from this one, and the wheel alone."""
    folder = tmp_path_factory.mktemp("lean") / "venv"
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needed("torch", "numpy", "pytest"):
        files = metadata.files(name) or []
        for top in {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(metadata.distribution(name).locate_file(top))
    command = ["pip", "--python", folder / "bin" / "python", "install", "-q", "--no-deps", "--no-index", built[".whl"]]
    subprocess.run([sys.executable, "-m", *map(str, command)], check=True, stdin=subprocess.DEVNULL)
    return folder


def run(lean: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    environment["NBAUTOGRAD_LANG"] = "en"
    command = [str(lean / "bin" / "python"), *words]
    return subprocess.run(command, cwd=lean, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(("factor", "verdict"), [(2, "right"), (3, "wrong")])
def test_checks_need_none_of_the_notebooks_packages(lean: Path, factor: int, verdict: str) -> None:
    ran = run(lean, "-c", SCRIPT.format(factor=factor, absent=ABSENT[0]))
    assert ran.returncode == 0, ran.stderr
    assert f"Double: backward is {verdict}" in ran.stdout
    assert f"no {ABSENT[0]}" in ran.stdout
    assert [name for name in ABSENT if list(lean.glob(f"lib/*/site-packages/{name}"))] == []


def test_commands_and_pytest_need_none_either(lean: Path) -> None:
    (lean / "test_sine.py").write_text(TEST)
    (lean / "mine.py").write_text("import torch\nx = torch.randn(3, dtype=torch.float64, requires_grad=True)\n")
    ran = run(lean, "-m", "pytest", "-q", "test_sine.py")
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
    checked = run(lean, "-m", "nbautograd", "check", "torch:sin", "--inputs", "mine:x")
    assert checked.returncode == 0, checked.stderr
    assert "right" in checked.stdout
