"""The bundle that is shipped is the one that the sources build, and small enough to be stored in every widget."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from nbautograd.widgets.base import deflated

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "nbautograd" / "static"
BUDGET = 60_000  # bytes of loader, module and stylesheet together, as a saved widget stores them


def test_bundle_and_stylesheet_stay_within_their_budget() -> None:
    sizes = {name: len(base64.b64encode(deflated(name))) for name in ("widget.js", "widget.css")}
    sizes["loader.js"] = (STATIC / "loader.js").stat().st_size
    assert sum(sizes.values()) <= BUDGET, sizes


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front end with its tools installed: the checkout's own, else a copy that npm fills."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here: whether the bundle is fresh is checked where node is installed")
    if (ROOT / "frontend" / "node_modules").is_dir():
        return ROOT / "frontend"
    copy = tmp_path_factory.mktemp("front") / "frontend"
    shutil.copytree(ROOT / "frontend", copy)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=copy, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm could not install the front end's tools:\n{done.stderr[-2000:]}")
    return copy


def run(front: Path, *command: str) -> str:
    done = subprocess.run([str(front / "node_modules" / ".bin" / command[0]), *command[1:]], cwd=front,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_committed_bundle_is_a_fresh_build(front: Path, tmp_path: Path) -> None:
    scripts = json.loads((front / "package.json").read_text())["scripts"]
    assert scripts["build"] == "npm run build:views && npm run build:lab"
    outputs = {"build:views": f"--outdir={tmp_path}", "build:lab": f"--outfile={tmp_path / 'remoteEntry.js'}"}
    for name, out in outputs.items():
        run(front, *[part for part in scripts[name].split() if not part.startswith("--out")], out)
    extension = STATIC.parent / "labextension" / "static" / "remoteEntry.js"
    for file in (*(STATIC / name for name in ("loader.js", "widget.js", "widget.css")), extension):
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), "run `npm run build` in frontend/"


@pytest.mark.slow
def test_the_types_agree(front: Path) -> None:
    assert run(front, "tsc", "-p", ".") == ""


@pytest.mark.slow
def test_the_sources_are_formatted(front: Path) -> None:
    assert "All matched files" in run(front, "prettier", "--check", ".")
