"""nbgrader itself takes a notebook of the course: it hands it out, tells its students how they stand, and grades it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from said import says

from nbautograd.command import main
from nbautograd.course import source as notebooks
from nbautograd.course.answers import answers_of

ROOT = Path(__file__).resolve().parents[2]
NAME = "02_vector_jacobian_products"
SOURCE = ROOT / "notebooks" / "source" / f"{NAME}.py"
ANSWERS = Path(__file__).with_name("answers") / f"{NAME}.diff"
HERE = sys.executable if importlib.util.find_spec("nbgrader") else None
PYTHON = os.environ.get("NBAUTOGRAD_NBGRADER", HERE)  # a Python that has nbgrader; `.ci/nbgrader` makes one
pytestmark = [
    pytest.mark.notebooks,
    pytest.mark.skipif(PYTHON is None, reason="no nbgrader here: .ci/nbgrader runs this"),
    pytest.mark.skipif(not SOURCE.exists(), reason="an sdist has no solutions"),
]
HAND_OUT = """
import sys
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

api = NbGraderAPI(config=Config({"CourseDirectory": {"root": sys.argv[1], "course_id": "autograd"}}))
made = api.generate_assignment("hw1")
assert made["success"], made["log"]
"""
GRADE = """
import json, sys
from pathlib import Path
from nbgrader.apps import NbGraderAPI
from nbgrader.validator import Validator
from traitlets.config import Config

root, name = sys.argv[1:]
api = NbGraderAPI(config=Config({"CourseDirectory": {"root": root, "course_id": "autograd"}}))
found = {}
for folder in sorted(Path(root, "submitted").iterdir()):
    student = folder.name
    validated = Validator().validate(str(folder / "hw1" / f"{name}.ipynb"))
    graded = api.autograde("hw1", student)
    with api.gradebook as gradebook:
        mine = gradebook.find_submission_notebook(name, "hw1", student)
        found[student] = {
            "error": graded.get("error"), "score": mine.score, "of": mine.max_score,
            "by hand": mine.needs_manual_grade, "validated": validated,
        }
print("RESULTS" + json.dumps(found))
"""


def run(code, *arguments):
    """Run a script with nbgrader; returns what it printed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "NBAUTOGRAD_LANG": "en"}
    env["PATH"] = f"{Path(PYTHON).parent}{os.pathsep}{env['PATH']}"  # it calls its database's program by name
    done = subprocess.run([PYTHON, "-c", code, *map(str, arguments)], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def with_answers(content, answers):
    """The notebook as nbgrader hands it out, with the cells of the exercises replaced."""
    for cell in content["cells"]:
        exercise = cell["metadata"].get("nbautograd", {}).get("exercise")
        if exercise in answers:
            cell["source"] = answers[exercise]
    return content


def without_checks(content):
    """The notebook of somebody who has written other things into the cells that are locked."""
    for cell in content["cells"]:
        about = cell["metadata"].get("nbgrader", {})
        if about.get("grade"):
            cell["source"] = "1"
        elif about.get("grade_id") == "setup":
            cell["source"] += "\nimport nbautograd.course.nbgrader as judge\njudge.points = lambda *_: 1"
    return content


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """What `release --nbgrader` wrote, handed out by nbgrader."""
    root = tmp_path_factory.mktemp("course")
    words = ["release", str(SOURCE), "--nbgrader", "--lang", "en", "-o", str(root / "source" / "hw1")]
    assert main(words) == 0
    assert sorted(p.name for p in (root / "source" / "hw1").iterdir()) == [f"{NAME}.ipynb"]
    run(HAND_OUT, root)
    return root


@pytest.fixture(scope="module")
def handed_out(course):
    return (course / "release" / "hw1" / f"{NAME}.ipynb").read_text(encoding="utf-8")


def test_what_is_handed_out_keeps_what_the_student_fills_in(handed_out):
    cells = json.loads(handed_out)["cells"]
    asked = ["".join(c["source"]) for c in cells if c["metadata"].get("nbautograd", {}).get("exercise")]
    assert len(asked) == 5
    assert all(text.startswith("%%exercise ") and "raise NotImplementedError()" in text for text in asked)
    assert all("SOLUTION" not in text for text in asked)
    assert sum("class " in text or "def " in text for text in asked) >= 4


@pytest.mark.slow
def test_points_of_right_and_wrong_students(course, handed_out):
    source = notebooks.read(SOURCE)
    right = {cell.exercise: notebooks.solved(cell) for cell in source.answers}
    wrong = {answer.exercise: answer.text for answer in answers_of(source, ANSWERS) if answer.expected != "right"}
    some = dict(list(right.items())[:2]) | dict(list(wrong.items())[2:4])  # and one left empty
    students = {
        "right": with_answers(json.loads(handed_out), right),
        "wrong": with_answers(json.loads(handed_out), wrong),
        "empty": json.loads(handed_out),
        "cheat": without_checks(with_answers(json.loads(handed_out), wrong)),
        "some": with_answers(json.loads(handed_out), some),
    }
    for student, content in students.items():
        folder = course / "submitted" / student / "hw1"
        folder.mkdir(parents=True)
        (folder / f"{NAME}.ipynb").write_text(json.dumps(content), encoding="utf-8")
    found = json.loads(run(GRADE, course, NAME).partition("RESULTS")[2])
    assert {student: told["error"] for student, told in found.items() if told["error"]} == {}
    assert {student: (told["score"], told["of"]) for student, told in found.items()} == {
        "right": (5, 5), "wrong": (0, 5), "empty": (0, 5), "cheat": (0, 5), "some": (2, 5),
    }  # fmt: skip
    assert not any(told["by hand"] for told in found.values())
    assert found["right"]["validated"] == {}
    assert len(found["wrong"]["validated"]["failed"]) == 5
    assert says(found["wrong"]["validated"]["failed"][0]["raw_error"], "course.no_points", points=1)
    assert "changed" in found["cheat"]["validated"]
