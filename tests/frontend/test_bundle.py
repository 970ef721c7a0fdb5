"""The bundle that is shipped is the one that the sources build, and small enough to be stored in every widget."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nbautograd.messages import catalogue
from nbautograd.widgets.base import deflated, labels

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "nbautograd" / "static"
SOURCES = {p.name: p.read_text(encoding="utf-8") for p in sorted((ROOT / "frontend").glob("*.js"))}
# what makes markup of text, reaches other machines, or is a front end's own; ipywidgets' manager is asked in one place
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://(?!www\.w3)"
    r"|jupyterapp|_JUPYTERLAB|\.comm\b|requirejs|google\.colab|acquireVsCodeApi|experimental|@jupyter|widget_manager"
)
BUDGET = 60_000  # bytes of loader, module and stylesheet together, as a saved widget stores them


def test_bundle_and_stylesheet_stay_within_their_budget() -> None:
    sizes = {name: len(base64.b64encode(deflated(name))) for name in ("widget.js", "widget.css")}
    sizes["loader.js"] = (STATIC / "loader.js").stat().st_size
    assert sum(sizes.values()) <= BUDGET, sizes


def test_sources_make_text_only_and_know_no_front_end() -> None:
    found = {(name, one) for name, text in SOURCES.items() for one in FORBIDDEN.findall(text)}
    assert found == {("notebook.js", "widget_manager")}


def test_every_word_that_the_sources_ask_for_exists_and_none_is_left_over() -> None:
    text = "\n".join(SOURCES.values())
    asked = set(re.findall(r'page\.t\("([a-z_.]+)"', text))
    assert len(asked) > 50
    assert asked - set(labels()) == set()
    text += "".join(p.read_text(encoding="utf-8") for p in (ROOT / "nbautograd" / "widgets").glob("*.py"))
    words = [k.removeprefix("widgets.") for k in catalogue("en") if k.startswith("widgets.")]
    dynamic = ("tab.", "column.", "stat.", "naive_", "since.", "scale_", "lens.", "key.", "trend.", "again.")
    assert [
        w
        for w in words
        if not w.startswith(dynamic) and not re.search(rf'"(widgets\.)?{re.escape(w)}"|_labels\.{re.escape(w)}\b', text)
    ] == []


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


@pytest.mark.slow
def test_the_committed_bundle_is_a_fresh_build(front: Path, tmp_path: Path) -> None:
    copy = tmp_path / "frontend"
    shutil.copytree(front, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(front / "node_modules")
    done = subprocess.run(["npm", "run", "build"], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files = ("static/loader.js", "static/widget.js", "static/widget.css", "labextension/static/remoteEntry.js")
    for file in files:
        made = tmp_path / "nbautograd" / file
        assert made.read_bytes() == (STATIC.parent / file).read_bytes(), "run `npm run build` in frontend/"
