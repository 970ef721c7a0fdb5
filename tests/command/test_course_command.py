"""``nbautograd course`` and ``nbautograd release`` in a terminal."""

import json
import re

import pytest
from said import pattern, says

from nbautograd.command import course as course_module
from nbautograd.command import lab as lab_module
from nbautograd.command import main, places


def lesson(folder, name="03_checking.ipynb", content="1", text="first"):
    """A notebook as a release writes it."""
    about = {"title": "Checking", "minutes": "40", "content": content}
    cells = [{"cell_type": "code", "metadata": {"nbautograd": {"exercise": "e"}}, "source": [text]}]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps({"cells": cells, "metadata": {"nbautograd": about}}))
    return folder / name


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A course of two notebooks in place of ours."""
    folder = tmp_path / "package" / "notebooks" / "en"
    paths = [lesson(folder), lesson(folder, "04_ctx.ipynb")]
    monkeypatch.setattr(course_module, "notebooks", lambda lang: sorted(folder.glob("*.ipynb")))
    return paths


@pytest.fixture
def server(monkeypatch):
    started = []
    monkeypatch.setattr(lab_module, "_serve", lambda *words: started.append(words) or 0)
    return started


@pytest.mark.parametrize("words", [["course"], ["course", "list"], ["course", "list", "--lang", "en"]])
def test_list(installed, words, capsys):
    assert main(words) == 0
    out = capsys.readouterr().out
    assert says(out, "command.course.title", count=2)
    assert all(f"`nbautograd lab {name}`" in out for name in places.GUIDES if name != "demo")
    assert says(out, "command.course.row", title="Checking", count=1, minutes=40)


def test_copy(installed, tmp_path, capsys):
    assert main(["course", "copy", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / "03_checking.ipynb").read_bytes() == installed[0].read_bytes()
    assert len(re.findall(pattern("command.course.copied", path=""), capsys.readouterr().out)) == 2


def test_copy_leaves_work_of_the_same_release_alone(installed, tmp_path, capsys):
    mine = lesson(tmp_path / "mine", text="my work")
    before = mine.read_bytes()
    assert main(["course", "copy", str(tmp_path / "mine")]) == 0
    assert mine.read_bytes() == before
    assert says(capsys.readouterr().out, "command.course.kept", path=mine)


@pytest.mark.parametrize("older", ["a notebook", "no notebook"])
def test_copy_keeps_work_of_an_older_release_aside(installed, tmp_path, capsys, older):
    mine = lesson(tmp_path / "mine", content="0", text="my work")
    if older == "no notebook":
        mine.write_text("notes of mine")
    before = mine.read_bytes()
    assert main(["course", "copy", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / "03_checking.mine-1.ipynb").read_bytes() == before
    assert mine.read_bytes() == installed[0].read_bytes()
    assert says(capsys.readouterr().out, "command.course.aside", path=mine, aside="03_checking.mine-1.ipynb")
    mine.write_text("more work")
    assert main(["course", "copy", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / "03_checking.mine-1.ipynb").read_bytes() == before
    assert (tmp_path / "mine" / "03_checking.mine-2.ipynb").read_text() == "more work"


def test_copy_into_a_place_that_is_no_folder(installed, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["course", "copy", str(tmp_path / "file")]) == 1
    assert says(capsys.readouterr().err, "command.folder", folder=tmp_path / "file")


@pytest.mark.parametrize("number", ["03", "3", "03_checking"])
def test_open(installed, tmp_path, server, number):
    assert main(["course", "open", number, "--folder", str(tmp_path / "mine"), "--", "--no-browser"]) == 0
    assert server == [(tmp_path / "mine" / "03_checking.ipynb", ["--no-browser"])]


def test_open_what_is_not_there(installed, tmp_path, server, capsys):
    assert main(["course", "open", "12", "--folder", str(tmp_path)]) == 1
    assert says(capsys.readouterr().err, "command.course.no_lesson", number="12", numbers="03, 04")
    assert server == []


def test_an_incomplete_installation_is_said(tmp_path):
    with pytest.raises(Exception, match=pattern("command.no_notebook")):
        places.notebooks("en", package=tmp_path / "nbautograd")


def test_open_by_the_name_that_a_notebook_had_under_an_old_number(installed, tmp_path, server):
    assert main(["course", "open", "13_ctx", "--folder", str(tmp_path)]) == 0
    assert server[0][0].name == "04_ctx.ipynb"
