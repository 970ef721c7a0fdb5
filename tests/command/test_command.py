"""The terminal command: what it says, and that a person's mistakes end in a sentence."""

import subprocess
import sys

import pytest
from said import pattern, says

from nbautograd.command import lab as lab_module
from nbautograd.command import main
from nbautograd.command.places import GUIDES, guide, notebook
from nbautograd.errors import CommandError


@pytest.fixture
def server(monkeypatch):
    """Instead of handing over to JupyterLab, keep what it would have been started with."""
    started = []
    monkeypatch.setattr(lab_module, "_serve", lambda *words: started.append(words) or 0)
    return started


COMMANDS = ("lab", "course", "freeze", "release", "audit", "doctor")


@pytest.mark.parametrize(
    "words", [[], ["--help"], *([name, "--help"] for name in COMMANDS), ["course", "open", "--help"]]
)
def test_help_is_there(words, capsys):
    if words:
        with pytest.raises(SystemExit, match="0"):
            main(words)
    else:
        assert main(words) == 0
    shown = capsys.readouterr().out
    assert "usage: nbautograd" in shown
    assert "==SUPPRESS==" not in shown
    assert "command.help" not in shown


def test_lab_never_overwrites(tmp_path, server, capsys):
    mine = tmp_path / "nbautograd-demo.ipynb"
    mine.write_text("my work")
    assert main(["lab", "--folder", str(tmp_path), "--", "--no-browser"]) == 0
    assert mine.read_text() == "my work"
    assert says(capsys.readouterr().out, "command.course.kept", path=mine)
    assert server == [(mine, ["--no-browser"])]


@pytest.mark.parametrize("name", GUIDES)
@pytest.mark.parametrize(("lang", "end"), [("en", ".ipynb"), ("zh", ".zh.ipynb")])
def test_lab_opens_each_guide(tmp_path, server, name, lang, end):
    assert main(["lab", name, "--folder", str(tmp_path), "--lang", lang]) == 0
    copy = tmp_path / f"nbautograd-{name}{end}"
    assert copy.read_bytes() == guide(name, lang).read_bytes()
    assert server == [(copy, ())]


def test_words_for_jupyterlab_are_refused_where_none_starts(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["course", "list", "--", "--no-browser"])
    assert "--no-browser" in capsys.readouterr().err


def test_no_jupyterlab(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lab_module.importlib.util, "find_spec", lambda name: None)
    assert main(["lab", "--folder", str(tmp_path)]) == 1
    assert says(capsys.readouterr().err, "command.missing", module="jupyterlab")
    assert list(tmp_path.iterdir()) == []


def test_folder_that_cannot_be_written(tmp_path, server, capsys):
    (tmp_path / "file").write_text("")
    assert main(["lab", "--folder", str(tmp_path / "file" / "below")]) == 1
    assert says(capsys.readouterr().err, "command.folder", folder=tmp_path / "file" / "below")


def test_notebooks_are_found_in_a_wheel_first(tmp_path):
    package = tmp_path / "nbautograd"
    for folder in (package / "notebooks", tmp_path / "notebooks"):
        folder.mkdir(parents=True)
    (tmp_path / "notebooks" / "demo.ipynb").write_text("checkout")
    assert notebook("demo.ipynb", package=package).read_text() == "checkout"
    (package / "notebooks" / "demo.ipynb").write_text("wheel")
    assert notebook("demo.ipynb", package=package).read_text() == "wheel"


def test_incomplete_installation(tmp_path):
    with pytest.raises(CommandError, match=pattern("command.no_notebook", name="nothing.ipynb")):
        notebook("nothing.ipynb", package=tmp_path)


def test_jupyterlab_gets_its_words(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(lab_module.os, "execv", lambda program, words: seen.append(words))
    monkeypatch.setattr(lab_module.subprocess, "call", lambda words: 0)
    lab_module._serve(tmp_path / "x.ipynb", ["--port=8899", "--no-browser"])
    (words,) = seen
    assert words[:4] == [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={tmp_path}"]
    assert {"--LabApp.default_url=/lab/tree/x.ipynb", "--port=8899", "--no-browser"} <= set(words)


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = [sys.executable, "-m", "nbautograd", "course", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.close()
        assert "Error" not in listing.stderr.read()
    assert listing.returncode == 141


@pytest.mark.parametrize("arguments", [["audit", "\0"], ["freeze", "a\0.ipynb"], ["course", "copy", "\0"]])
def test_a_null_character_is_refused_in_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("nbautograd: error: ")
