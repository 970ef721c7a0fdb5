"""What marking costs: one homework of two exercises, marked by ``nbautograd mark`` and, per submission, by its peers.

``python benchmarks/marking.py [--submissions 200] [--jobs 2] [--peers 10 --python PYTHON]`` prints seconds on the clock
and of the processor for each submission. Of eight students one wrote nothing, three made a mistake, four are right.
PYTHON is one that has nbgrader and otter-grader beside what nbautograd needs; they mark the first ``--peers`` students,
one after the other, as their own commands do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nbautograd.course.template import template

ROOT = Path(__file__).resolve().parents[1]
NAME = "hw1"
EXERCISE = """    Exercise(
        "hw1_scaled", "Scaled", "value gradient own_function", points=2,
        formula=lambda x, w: x @ w, inputs=lambda draw: (draw.normal(3, 4), draw.normal(4, 2)),
    ),
)
"""
CELL = """# %% exercise="hw1_scaled"
# %%exercise hw1_scaled
class Scaled(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad_output):
        ### BEGIN SOLUTION
        x, w = ctx.saved_tensors
        return grad_output @ w.t(), x.t() @ grad_output
        ### END SOLUTION

# %%
# %exercises
"""
WRONG = """@@ hw1_scaled: missing_factor
-        return grad_output @ w.t(), x.t() @ grad_output
+        return grad_output @ w.t(), 2 * x.t() @ grad_output
"""
FUNCTION = """class {name}(Function):
    @staticmethod
    def forward(ctx, {args}):
        ctx.save_for_backward({args})
        return {value}

    @staticmethod
    def backward(ctx, grad_output):
        {args}, = ctx.saved_tensors
        return """
SQUARE = FUNCTION.format(name="Square", args="x", value="x * x")
SCALED = FUNCTION.format(name="Scaled", args="x, w", value="x @ w")
RIGHT = "2 * x * grad_output", "grad_output @ w.t(), x.t() @ grad_output"
MISTAKES = (
    ("2 * grad_output", RIGHT[1]),
    (RIGHT[0], "grad_output @ w.t(), None"),
    ("x * grad_output", "w @ grad_output.t(), x.t() @ grad_output"),
)
HAND_OUT = """
import sys
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config
api = NbGraderAPI(config=Config({"CourseDirectory": {"root": sys.argv[1], "course_id": "autograd"}}))
made = api.generate_assignment("hw1")
assert made["success"], made["log"]
"""
GRADE = """
import sys
from pathlib import Path
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config
api = NbGraderAPI(config=Config({"CourseDirectory": {"root": sys.argv[1], "course_id": "autograd"}}))
for folder in sorted(Path(sys.argv[1], "submitted").iterdir()):
    graded = api.autograde("hw1", folder.name)
    assert graded["success"], graded
    with api.gradebook as book:
        print("SCORE", folder.name, book.find_submission_notebook("hw1", "hw1", folder.name).score)
"""
OTTER = """
import sys
from otter.run import main
main(sys.argv[1], autograder=sys.argv[2], output_dir=sys.argv[3], no_logo=True)
"""


def answers(number: int) -> dict[str, str]:
    """What one student wrote, by exercise."""
    kind = number % 8
    if kind == 0:
        return {}
    square, scaled = MISTAKES[kind - 1] if kind <= len(MISTAKES) else RIGHT
    return {"hw1_square": f"{SQUARE}{square}\n", "hw1_scaled": f"{SCALED}{scaled}\n"}


def points(number: int) -> int:
    """What that deserves, of 3."""
    said = answers(number)
    return sum(
        worth
        for worth, right in zip((1, 2), RIGHT, strict=True)
        if any(f"return {right}\n" in a for a in said.values())
    )


def filled(content: dict[str, Any], said: dict[str, str]) -> str:
    """A notebook with these answers in the cells of its exercises."""
    cells = [dict(cell) for cell in content["cells"]]
    for cell in cells:
        exercise = cell["metadata"].get("nbautograd", {}).get("exercise")
        if exercise in said:
            cell["source"] = f"%%exercise {exercise}\n{said[exercise]}"
    return json.dumps({**content, "cells": cells})


@contextmanager
def timed(what: str, submissions: int) -> Iterator[None]:
    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    clock, processor = time.perf_counter(), used()
    yield
    clock, processor = time.perf_counter() - clock, used() - processor
    each = f"{clock / submissions:.2f} s on the clock, {processor / submissions:.2f} s of the processor"
    print(f"{what}: {submissions} submissions in {clock:.0f} s; each {each}", flush=True)


def run(*words: Any, python: str = sys.executable) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", "NBAUTOGRAD_LANG": "en"}
    env["PATH"] = f"{Path(python).parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run([python, *map(str, words)], capture_output=True, text=True, env=env)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-3000:])
    return done.stdout


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--submissions", type=int, default=200)
    asked.add_argument("--jobs", type=int, default=2)
    asked.add_argument("--peers", type=int, default=0)
    asked.add_argument("--python", default=sys.executable)
    asked = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in template(NAME, "en").items():
            if name.endswith("_exercises.py"):
                text = text.removesuffix(")\n") + EXERCISE
            elif name.endswith(".diff"):
                text += WRONG
            else:
                text = text.replace("# %%\n# %exercises\n", CELL)
            (root / name).write_text(text, encoding="utf-8")
        run("-m", "nbautograd", "release", root / f"{NAME}.py", "--lang", "en", "-o", root / "out")
        with zipfile.ZipFile(root / "out" / f"{NAME}-en.zip") as archive:
            book = next(name for name in archive.namelist() if name.endswith(".ipynb"))
            handed_out = json.loads(archive.read(book))
        (root / "handed_in").mkdir()
        for number in range(asked.submissions):
            text = filled(handed_out, answers(number))
            (root / "handed_in" / f"s{number:03}.ipynb").write_text(text, encoding="utf-8")
        with timed(f"nbautograd mark -j {asked.jobs}", asked.submissions):
            run("-m", "nbautograd", "mark", root / "out", root / "handed_in", "-o", root / "m.csv", "-j", asked.jobs)
        rows = (root / "m.csv").read_text(encoding="utf-8").splitlines()[1:]
        right = sum(float(row.split(",")[1]) == points(number) for number, row in enumerate(rows))
        print("  as deserved:", right, "of", asked.submissions)
        if asked.peers:
            peers(root, handed_out, asked.peers, asked.python)


def peers(root: Path, handed_out: dict[str, Any], students: int, python: str) -> None:
    """Have nbgrader and otter mark the first students, and say what they took and whom they marked otherwise."""
    course = root / "course"
    run(
        "-m", "nbautograd", "release", root / f"{NAME}.py", "--nbgrader", "--lang", "en", "-o", course / "source" / NAME
    )
    run("-c", HAND_OUT, course, python=python)
    released = json.loads((course / "release" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    for number in range(students):
        place = course / "submitted" / f"s{number:03}" / NAME
        place.mkdir(parents=True)
        (place / f"{NAME}.ipynb").write_text(filled(released, answers(number)), encoding="utf-8")
    with timed("nbgrader autograde", students):
        said = run("-c", GRADE, course, python=python)
    scores = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("SCORE")]
    print("  as deserved:", sum(score == points(k) for k, score in enumerate(scores)), "of", students)
    run("-m", "nbautograd", "mark", root / "out", "--grader", root / "grader")
    setup = "import torch\nfrom torch.autograd import Function"
    with timed("otter run", students):
        right = 0
        for number in range(students):
            place = root / "otter" / f"s{number:03}"
            place.mkdir(parents=True)
            sources = [setup, *answers(number).values()]  # otter knows no magic of ours
            cells = [
                {
                    "cell_type": "code",
                    "metadata": {},
                    "source": text,
                    "outputs": [],
                    "execution_count": None,
                    "id": f"c{k}",
                }
                for k, text in enumerate(sources)
            ]
            content = {"cells": cells, "metadata": handed_out["metadata"], "nbformat": 4, "nbformat_minor": 5}
            (place / f"{NAME}.ipynb").write_text(json.dumps(content), encoding="utf-8")
            run("-c", OTTER, place / f"{NAME}.ipynb", root / "grader" / "otter.zip", place, python=python)
            tests = json.loads((place / "results.json").read_text(encoding="utf-8"))["tests"]
            right += sum(t["score"] for t in tests if "score" in t) == points(number)
    print("  as deserved:", right, "of", students)


if __name__ == "__main__":
    main()
