"""What is committed is clean: no stored outputs, no path or host of one machine."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from nbautograd.version import SITE

ROOT = Path(__file__).parents[2]
TEXT = {".py", ".js", ".mjs", ".css", ".md", ".toml", ".json", ".ipynb", ".txt", ".in", ".svg", ""}
# written in two pieces, so that this file is not a find of its own
SOMEONES_PATH = re.compile(r"(?<![\w.:/])/(?:" + "ro" + "ot|home|work|Users)" + r"/[\w.-]+")
REGISTRY = re.compile(r"download\.py" + r"torch|files\.python" + r"hosted|py" + r"pi\.org/simple")


def tracked() -> list[Path]:
    """The committed files that are text."""
    run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if run.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in run.stdout.split("\0") if name]
    return [file for file in files if file.suffix in TEXT and file.is_file()]


def finds(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    """Every line that the pattern meets, as ``file:line: text``."""
    return [
        f"{file.name}:{number}: {line.strip()[:100]}"
        for file in files
        if file.name != "package-lock.json"
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def with_output(notebook: Path) -> list[str]:
    """The cells of a notebook that carry an output or a count."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell["id"] for cell in cells if cell.get("outputs") or cell.get("execution_count")]


def test_no_path_of_one_machine():
    assert finds(SOMEONES_PATH, tracked()) == []


def test_no_registry_host():
    assert finds(REGISTRY, tracked()) == []


def test_these_guards_trip(tmp_path):
    file = tmp_path / "note.md"
    file.write_text("see /ro" + "ot/x and https://py" + "pi.org/simple\n", encoding="utf-8")
    assert len(finds(SOMEONES_PATH, [file])) == len(finds(REGISTRY, [file])) == 1
    notebook = tmp_path / "n.ipynb"
    notebook.write_text(json.dumps({"cells": [{"id": "a", "outputs": [1]}, {"id": "b", "outputs": []}]}))
    assert with_output(notebook) == ["a"]


@pytest.mark.parametrize("notebook", sorted(ROOT.glob("notebooks/**/*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_committed_clean(notebook):
    assert with_output(notebook) == []
    metadata = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
    assert set(metadata) <= {"kernelspec", "language_info", "nbautograd"}
    assert metadata["kernelspec"]["name"] == "python3"


def code(notebook: Path) -> list[str]:
    """The code cells without their comments."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [re.sub(r"(?m)^# .*\n?", "", source) for source in sources]


def test_the_demo_has_the_same_code_in_both_languages():
    english, chinese = (code(ROOT / "notebooks" / name) for name in ("demo.ipynb", "demo.zh.ipynb"))
    assert english == chinese
    assert len(english) > 10


def workflows() -> dict[str, dict]:
    """The workflows by name."""
    import yaml

    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    return {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}


def test_the_workflows_run_what_a_person_runs():
    commands = {
        name: [s["run"] for job in flow["jobs"].values() for s in job["steps"] if "run" in s]
        for name, flow in workflows().items()
    }
    scripts = {words for several in commands.values() for line in several for words in re.findall(r"\.ci/\w+", line)}
    assert scripts >= {".ci/test", ".ci/run", ".ci/coverage", ".ci/docs", ".ci/matrix", ".ci/wheel"}
    assert [script for script in scripts if not os.access(ROOT / script, os.X_OK)] == []
    pairs = workflows()["matrix"]["jobs"]["pair"]["strategy"]["matrix"]
    named = f"3.{{{','.join(p.partition('.')[2] for p in pairs['python'])}}}:{{{','.join(pairs['torch'])}}}"
    assert f"set -- {named}" in (ROOT / ".ci" / "matrix").read_text()
    assert not [file for file in (ROOT / ".github").rglob("*.yml") if "secrets." in file.read_text()]


def test_every_place_names_the_same_version():
    import yaml

    import nbautograd

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == nbautograd.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Documentation"] == SITE
    extension = json.loads((ROOT / "nbautograd" / "labextension" / "package.json").read_text(encoding="utf-8"))
    assert extension["version"] == nbautograd.__version__
    assert f"## [{nbautograd.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation["license"] == "MIT"
    assert not {"doi", "url", "repository-code", "identifiers"} & set(citation)  # none exists yet
