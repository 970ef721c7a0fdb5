"""A grader for platforms that bring their own container: one ``grade.py``, and a thin door for each of them.

The layouts are those that the platforms document: Gradescope's ``/autograder``, and otter's zip of tests and files.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from nbautograd.core.forks import cached
from nbautograd.course.catalogue import declared_by
from nbautograd.course.marking.batch import first_sentence
from nbautograd.course.marking.judge import SubmissionMark, mark
from nbautograd.course.marking.submissions import assignment, released, single
from nbautograd.course.release import LONG_AGO, requirements

GRADE = '''"""Marks one submission: `SUBMISSION=FOLDER pytest grade.py`, or `python grade.py results.json`."""

import os
import sys
from pathlib import Path

import pytest

from nbautograd.course.marking.grader import Graded

HERE = Path(__file__).resolve().parent
GRADED = Graded(HERE, Path(os.environ.get("SUBMISSION", ".")))


@pytest.mark.parametrize("exercise", GRADED.assignment.exercises)
def test_exercise(exercise, record_property):
    for name, value in GRADED.properties(exercise).items():
        record_property(name, value)
    assert GRADED.result(exercise)["passed"], GRADED.sentence(exercise)


if __name__ == "__main__":
    GRADED.write_results(Path(sys.argv[1]))
'''
SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, when its image is built. A wheel of nbautograd in this folder is installed first.
set -e
cd "$(dirname "$0")"
if ls ./*.whl > /dev/null 2>&1; then python3 -m pip install ./*.whl; fi
python3 -m pip install -r requirements.txt pytest
"""
RUN = """#!/usr/bin/env bash
# Gradescope runs this once for each submission.
set -e
root="${AUTOGRADER_ROOT:-/autograder}"
cd "$root/source"
SUBMISSION="$root/submission" python3 grade.py "$root/results/results.json"
"""
OTTER = """OK_FORMAT = False
name = {name!r}
points = {points}

import os
import sys

from otter.test_files import test_case

sys.path.insert(0, os.getcwd())


@test_case(name=name, points=points, hidden={hidden})
def test_exercise():
    from grade import GRADED

    assert GRADED.result({name!r})["passed"], GRADED.sentence({name!r})
"""
PACKAGES = ("nbautograd", "torch", "numpy")  # a platform installs them for every image: no notebook runs there


def write(folder: Path, release: Path, hidden: Path | None, limits: Mapping[str, float]) -> list[Path]:
    """Write the grader's folder.

    Args:
        folder: is made; nothing in it is written over.
        release: as in ``assignment``.
        hidden: likewise.
        limits: as in ``mark``.

    Returns:
        What was written: ``grade.py`` with all it needs, ``gradescope.zip`` and ``otter.zip``.

    Raises:
        FileExistsError: when one of these is there.
        MarkError: when the release cannot be read.
    """
    what = assignment(release, hidden)
    own = {f"release/{PurePosixPath(n).name}": t for n, t in released(release).items() if n.endswith((".ipynb", ".py"))}
    own |= {"grade.py": GRADE.encode(), "limits.json": json.dumps(dict(limits)).encode()}
    if hidden is not None:
        own["hidden.py"] = hidden.read_bytes()
    needed = "".join(f"{line}\n" for line in requirements() if line.partition("==")[0] in PACKAGES).encode()
    doors = {"setup.sh": SETUP.encode(), "run_autograder": RUN.encode(), "requirements.txt": needed}
    declared = declared_by(what.texts, what.exercises)
    tests = {
        f"tests/{name}.py": OTTER.format(name=name, points=declared[name].points, hidden=name in what.hidden).encode()
        for name in what.exercises
    }
    config = {"otter_config.json": b'{"pdf": false}\n', "requirements.txt": needed}
    otter = {**{f"files/{name}": content for name, content in own.items()}, **tests, **config}
    files = {**own, **doors, "gradescope.zip": _zipped({**own, **doors}), "otter.zip": _zipped(otter)}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("xb") as file:
            file.write(content)
    for name in ("setup.sh", "run_autograder"):
        (folder / name).chmod(0o755)
    return [folder / name for name in ("grade.py", "gradescope.zip", "otter.zip")]


def _zipped(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.external_attr = (0o755 if name in ("setup.sh", "run_autograder") else 0o644) << 16
            archive.writestr(entry, files[name])
    return held.getvalue()


class Graded:
    """One submission, marked when it is first asked for.

    Args:
        folder: of ``grade.py``.
        submission: the folder of the submission.
    """

    def __init__(self, folder: Path, submission: Path) -> None:
        hidden = folder / "hidden.py"
        self.folder, self.submission = folder, submission
        self.assignment = assignment(folder / "release", hidden if hidden.exists() else None)

    @cached
    def mark(self) -> SubmissionMark:
        """The mark."""
        limits = json.loads((self.folder / "limits.json").read_text(encoding="utf-8"))
        book = single(self.submission, self.assignment, self.folder / "release")
        return mark(self.assignment, "submission", book, limits, 0)

    def result(self, exercise: str) -> dict[str, Any]:
        """Return what was said of one exercise."""
        return next(r for r in self.mark.results if r["exercise"] == exercise)

    def sentence(self, exercise: str) -> str:
        """Return the first sentence; of a hidden exercise nothing that tells what it asks."""
        if exercise in self.assignment.hidden:
            return ""
        result = self.result(exercise)
        return first_sentence(result) or ", ".join(result["codes"])

    def properties(self, exercise: str) -> dict[str, Any]:
        """Return points and codes, as JUnit's properties."""
        result, reported = self.result(exercise), self.mark.reported[exercise]
        said = {"points": result["earned"], "of": result["points"], "codes": " ".join(result["codes"])}
        return {**said, "reported": " ".join(reported)}

    def write_results(self, file: Path) -> None:
        """Write Gradescope's ``results.json``; students see a hidden exercise when grades are published."""
        tests = [
            {
                "name": name,
                "score": self.result(name)["earned"],
                "max_score": self.result(name)["points"],
                "status": "passed" if self.result(name)["passed"] else "failed",
                "output": self.sentence(name),
                "visibility": "after_published" if name in self.assignment.hidden else "visible",
            }
            for name in self.assignment.exercises
        ]
        content = {"tests": tests, "execution_time": round(self.mark.seconds), "stdout_visibility": "hidden"}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
