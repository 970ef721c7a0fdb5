"""``nbautograd release`` in a terminal."""

from __future__ import annotations

import json
import re

import pytest
from said import pattern, says
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
    assert capsys.readouterr().out.count(".ipynb") == 2


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
    assert says(capsys.readouterr().err, "course.refused.wrong_otherwise", expected="zero_gradient")
    assert not (tmp_path / "out").exists()


def test_an_old_translation_is_reported_with_the_stamp_to_write(tmp_path, capsys):
    path = written(tmp_path, of="00000000")
    assert main(["release", str(path), "--lang", "zh", "-o", str(tmp_path / "out")]) == 0
    (stamp,) = re.findall(r'of="(\w{8})"', capsys.readouterr().err)
    path.write_text(path.read_text(encoding="utf-8").replace("00000000", stamp), encoding="utf-8")
    assert main(["release", str(path), "--lang", "zh", "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_template_can_be_released_as_it_is(tmp_path, lang, capsys):
    """It is in one language, and the release is too."""
    assert main(["release", "--new", "hw1", "--lang", lang, "-o", str(tmp_path / "mine")]) == 0
    assert sorted(p.name for p in (tmp_path / "mine").iterdir()) == ["hw1.diff", "hw1.py", "hw1_exercises.py"]
    assert main(["release", str(tmp_path / "mine"), "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == ""
    made = json.loads((tmp_path / "out" / "hw1.ipynb").read_text(encoding="utf-8"))
    assert made["metadata"]["nbautograd"]["language"] == lang
    assert "own_function" in (tmp_path / "mine" / "hw1_exercises.py").read_text()
    other = {"en": "zh", "zh": "en"}[lang]
    assert main(["release", str(tmp_path / "mine"), "--lang", other, "-o", str(tmp_path / "other")]) == 1
    assert says(capsys.readouterr().err, "course.no_language", lang=other)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--new", "a/b"], pattern("command.release.no_name", name="a/b")),
        (["--new", "99_squares"], "99_squares.py"),
        (["--new", "own"], "own_exercises.py"),
        ([], pattern("command.release.nothing")),
    ],
)
def test_no_template(tmp_path, words, sentence, capsys):
    written(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["release", *words, "-o", str(tmp_path)]) == 1
    assert re.search(sentence, capsys.readouterr().err)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["nothing.py", "empty"])
def test_no_source(tmp_path, name, capsys):
    (tmp_path / "empty").mkdir()
    assert main(["release", str(tmp_path / name)]) == 1
    assert says(capsys.readouterr().err, "command.release.no_source")
