"""The doors of a grader, each run on the layout that its platform is said to use."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from marked_answers import EXERCISES, SQUARE
from test_submissions import book, put

from nbautograd.command import main

ROOT = Path(__file__).parents[3]
SETUP = "import torch\nfrom torch.autograd import Function"
WRONG = SQUARE.replace("2 * x", "3 * x")
HIDDEN = """
from nbautograd.course.exercise import Exercise
EXERCISES = (Exercise("large", "Square", "value", formula=lambda x: x * x, inputs=lambda draw: (draw.normal(20, 9) * 1e3,)),)
"""


@pytest.fixture
def grader(tmp_path):
    put(tmp_path / "out", {"hw.ipynb": book("%%exercise square"), "hw_exercises.py": EXERCISES.encode()})
    put(tmp_path, {"secret.py": HIDDEN.encode()})
    words = [
        "mark",
        str(tmp_path / "out"),
        "--hidden",
        str(tmp_path / "secret.py"),
        "--grader",
        str(tmp_path / "grader"),
    ]
    assert main(words) == 0
    before = {path: path.read_bytes() for path in (tmp_path / "grader").rglob("*") if path.is_file()}
    assert main(words) == 1  # nothing is written over
    assert {path: path.read_bytes() for path in before} == before
    return tmp_path / "grader"


def run(*words, cwd, **environment):
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    whole = {**os.environ, "PYTHONPATH": path, **{k: str(v) for k, v in environment.items()}}
    return subprocess.run(words, cwd=cwd, env=whole, capture_output=True, text=True, timeout=250)


@pytest.mark.nightly
def test_gradescope(grader, tmp_path):
    """Source, submission and results in one folder, python3 on the path; the zip is what an instructor uploads."""
    root = tmp_path / "autograder"
    with zipfile.ZipFile(grader / "gradescope.zip") as archive:
        archive.extractall(root / "source")
        assert {"setup.sh", "run_autograder", "grade.py"} <= set(archive.namelist())
        assert archive.getinfo("run_autograder").external_attr >> 16 & 0o111
    put(root / "submission", {"in a folder/hw (3).ipynb": book(SETUP, f"%%exercise square\n{WRONG}")})
    put(root, {"results/.keep": b"", "bin/python3": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'.encode()})
    (root / "bin/python3").chmod(0o755)
    paths = f"{root / 'bin'}:{os.environ['PATH']}"
    done = run("bash", root / "source/run_autograder", cwd="/", AUTOGRADER_ROOT=root, PATH=paths)
    assert done.returncode == 0, done.stderr
    tests = json.loads((root / "results/results.json").read_text())["tests"]
    assert [(t["name"], t["score"], t["max_score"], t["status"], t["visibility"]) for t in tests] == [
        ("square", 0, 2, "failed", "visible"), ("large", 1, 1, "passed", "after_published"),
    ]  # fmt: skip
    assert tests[0]["output"]


@pytest.mark.nightly
def test_pytest(grader, tmp_path):
    put(tmp_path / "mine", {"hw.ipynb": book(SETUP, f"%%exercise square\n{SQUARE}")})
    words = [
        sys.executable,
        "-m",
        "pytest",
        "grade.py",
        "--junitxml",
        str(tmp_path / "junit.xml"),
        "-p",
        "no:cacheprovider",
    ]
    done = run(*words, cwd=grader, SUBMISSION=tmp_path / "mine")
    assert done.returncode == 0, done.stdout
    cases = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase")
    properties = [{p.get("name"): p.get("value") for p in case.iter("property")} for case in cases]
    assert [(p["points"], p["of"], p["reported"]) for p in properties] == [("2", "2", "own_function"), ("1", "1", "")]
