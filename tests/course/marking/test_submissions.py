"""What is read of a folder or an archive: one notebook a submission, bounded, and nothing outside of it."""

import io
import json
import os
import zipfile

import pytest
from marked_answers import EXERCISES

from nbautograd.course.marking import submissions as reader
from nbautograd.course.marking.submissions import Assignment, MarkError, assignment, notebook_of, submissions

WHAT = Assignment("hw.ipynb", ("square",), {"hw_exercises.py": EXERCISES})


def book(*cells):
    made = [{"cell_type": "code", "metadata": {}, "source": text} for text in cells]
    return json.dumps({"cells": made}).encode()


ANSWER = book("%%exercise square\nSquare = 1")
OTHER = book("x = 1")


def put(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def zipped(files):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


LAYOUTS = {
    "notebooks": {"ann.ipynb": ANSWER, "bob.ipynb": ANSWER, "notes.txt": b"x"},
    "nbgrader": {"ann/hw/hw.ipynb": ANSWER, "ann/hw/timestamp.txt": b"x", "bob/hw/hw.ipynb": ANSWER},
    "zips": {"ann.zip": zipped({"deep/er/hw.ipynb": ANSWER}), "bob.zip": zipped({"hw.ipynb": ANSWER})},
    "a zip in a folder": {"ann/hw.zip": zipped({"hw.ipynb": ANSWER}), "bob/hw (1).ipynb": ANSWER},
    "another notebook beside it": {"ann/zz.ipynb": OTHER, "ann/hw.ipynb": ANSWER, "bob.ipynb": ANSWER},
    "hidden files": {"ann.ipynb": ANSWER, "bob/hw.ipynb": ANSWER, "bob/.ipynb_checkpoints/hw-checkpoint.ipynb": OTHER},
}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("packed", ["folder", "zip", "zip with one folder around it"])
def test_layouts(tmp_path, files, packed):
    place = put(tmp_path / "in", files)
    if packed != "folder":
        around = "export/" if "around" in packed else ""
        place = tmp_path / "all.zip"
        place.write_bytes(zipped({around + name: content for name, content in files.items()}))
    read = submissions(place, WHAT)
    assert {name: [e for e, _ in one.cells] for name, one in read.items()} == {"ann": ["square"], "bob": ["square"]}


UNREADABLE = {
    "empty": b"", "no JSON": b"{", "a list": b"[]", "cells of another kind": b'{"cells": 3}', "deep": b"[" * 100_000,
    "a broken zip": b"PK\x03\x04 and no more",
}  # fmt: skip


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_has_its_row_and_stops_nobody(tmp_path, content):
    files = {"ann.ipynb": content, "bob.zip": content, "cleo/report.pdf": content, "dan.ipynb": ANSWER}
    read = submissions(put(tmp_path, files), WHAT)
    assert {name: one is not None for name, one in read.items()} == {
        "ann": False,
        "bob": False,
        "cleo": False,
        "dan": True,
    }


def test_nothing_is_written_and_no_link_is_followed(tmp_path):
    secret = put(tmp_path / "secret", {"hw.ipynb": ANSWER})
    place = put(
        tmp_path / "in", {"eve.zip": zipped({"../../../evil.ipynb": ANSWER, "/abs.ipynb": ANSWER}), "dan.ipynb": ANSWER}
    )
    os.symlink(secret / "hw.ipynb", place / "linked.ipynb")
    os.symlink(secret, place / "folder")
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        link = zipfile.ZipInfo("hw.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(secret / "hw.ipynb"))
    (place / "zoe.zip").write_bytes(held.getvalue())
    before = sorted(tmp_path.rglob("*"))
    read = submissions(place, WHAT)
    assert sorted(read) == ["dan", "eve", "zoe"]
    assert read["zoe"] is None
    assert sorted(tmp_path.rglob("*")) == before


def test_archives_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "MOST_BYTES", 10_000)
    monkeypatch.setattr(reader, "MOST_FILES", 5)
    bomb = zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED)
    with bomb:
        bomb.writestr("hw.ipynb", ANSWER[:-1] + b" " * 10**6 + b"}")
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as many:
        for k in range(8):
            many.writestr(f"{k}.ipynb", OTHER if k < 7 else ANSWER)
    (tmp_path / "nested.zip").write_bytes(zipped({"a.zip": zipped({"b.zip": zipped({"hw.ipynb": ANSWER})})}))
    read = submissions(tmp_path, WHAT)
    assert read["bomb"] is None
    assert read["nested"] is None
    assert [e for e, _ in read["many"].cells] == [""]


def test_only_what_the_exercise_uses_runs():
    cells = [
        "import torch\nimport matplotlib.pyplot as plt\nfor k in range(10**9):\n    loss = k\nplt.plot([1])",
        "def power(x):\n    return table[0] * x\ntable = [3]\nunused = 5",
        "%matplotlib inline\n%%exercise square",
        "%%exercise square\nclass Square:\n    y = power(torch.ones(1))\n",
        "print(Square)",
    ]
    run, own = notebook_of(book(*cells)).cells_of("square", "Square")
    text = "".join(part for _, part in run)
    assert [name for name in ("import torch", "plt", "loss", "def power", "table = ", "unused", "class Square", "print") if name in text] == [
        "import torch", "def power", "table = ", "class Square",
    ]  # fmt: skip
    assert own.strip().startswith("class Square")


def test_a_cell_that_lost_its_name_is_found_by_what_it_defines():
    run, _ = notebook_of(book("x = 1", "class Square:\n    pass")).cells_of("square", "Square")
    assert [file for file, _ in run] == ["<square>"]


def test_a_hidden_file_adds_and_replaces_exercises(tmp_path):
    put(tmp_path / "out", {"hw.ipynb": book("%%exercise square\n..."), "hw_exercises.py": EXERCISES.encode()})
    hidden = (
        EXERCISES.replace('"cube"', '"unseen"')
        .replace("points=2", "points=7")
        .replace('Exercise("scaled"', 'Exercise("s2"')
    )
    (tmp_path / "hidden.py").write_text(hidden)
    whole = assignment(tmp_path / "out", tmp_path / "hidden.py")
    assert whole.exercises == ("square", "unseen", "plain", "s2")
    assert set(whole.hidden) == {"square", "unseen", "plain", "s2"}
    assert assignment(tmp_path / "out").digest != whole.digest


@pytest.mark.parametrize("files", [{}, {"a.ipynb": OTHER}, {"a.ipynb": ANSWER, "b.ipynb": ANSWER}])
def test_a_release_has_one_notebook_with_exercises_and_a_folder_some_submission(tmp_path, files):
    with pytest.raises(MarkError) as raised:
        assignment(put(tmp_path, {**files, "hw_exercises.py": EXERCISES.encode()}))
    assert raised.value.message_id == "course.mark.no_release"
    (tmp_path / "empty").mkdir()
    with pytest.raises(MarkError) as raised:
        submissions(tmp_path / "empty", WHAT)
    assert raised.value.message_id == "course.mark.no_submissions"
