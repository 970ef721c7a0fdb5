"""``nbautograd release`` in a terminal."""

from __future__ import annotations

import pytest
from small_course import written

from nbautograd.command import main


def test_release_beside_the_source(tmp_path, capsys):
    folder = tmp_path / "source"
    folder.mkdir()
    assert main(["release", str(written(folder))]) == 0
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.glob("*/*.ipynb")) == [
        "en/99_squares.ipynb",
        "zh/99_squares.ipynb",
    ]
    assert capsys.readouterr().out.count("Released: ") == 2


def test_release_into_a_folder_with_zip_and_manifest(tmp_path):
    out = tmp_path / "out"
    written(tmp_path)
    assert main(["release", str(tmp_path), "--lang", "en", "-o", str(out)]) == 0
    names = ["99_squares-en.manifest.json", "99_squares-en.zip", "99_squares.ipynb"]
    assert sorted(p.name for p in out.iterdir()) == names


def test_release_for_nbgrader(tmp_path):
    """One language, the machine's own unless another one is asked for, and what nbgrader copies beside it."""
    out = tmp_path / "source" / "hw1"
    assert main(["release", str(written(tmp_path)), "--nbgrader", "-o", str(out)]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["99_squares.ipynb", "own_exercises.py"]
    assert '"language": "en"' in (out / "99_squares.ipynb").read_text()


def test_a_refusal_writes_nothing(tmp_path, capsys):
    assert main(["release", str(written(tmp_path, expects="zero_gradient")), "-o", str(tmp_path / "out")]) == 1
    assert "99_squares.py: Not released" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_stamp_and_stale(tmp_path, capsys):
    path = written(tmp_path, of="00000000")
    assert main(["release", str(path), "--lang", "zh", "-o", str(tmp_path / "out")]) == 0
    assert "older English text" in capsys.readouterr().err
    assert main(["release", str(path), "--stamp"]) == 0
    assert "1 translations stamped" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["nothing.py", "empty"])
def test_no_source(tmp_path, name, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["release", str(tmp_path / name)]) == 1
    assert "neither a source notebook" in capsys.readouterr().err
