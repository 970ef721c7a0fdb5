"""What a terminal can be asked that makes no sense: one sentence, never a traceback of ours, never a status of 0."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import torch
from injected import broken

from nbautograd.command import main
from nbautograd.core import stumbles

FUNCTIONS = """import sys, torch
class Leaves(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: 2 * x)
    backward = staticmethod(lambda ctx, g: sys.exit(0))
class Right(Leaves):
    backward = staticmethod(lambda ctx, g: 2 * g)
inputs = (torch.ones(3, dtype=torch.float64, requires_grad=True),)
"""
PROGRAM = "from functions import *\nRight.apply(*inputs).sum().backward()\n"
LONG = "x" * 300  # no file system takes such a name
RIGHT = ("check", "functions.py:Right", "--inputs", "functions.py:inputs")
FOUND_NOTHING = [
    ("check", "leaves.py:F", "--inputs", "functions.py:inputs"),
    (*RIGHT, "--layouts", "nonsense"),
    (*RIGHT, "--json", "."),
    (*RIGHT, "--html", "."),
    (*RIGHT[:3], "number.pt"),
    (*RIGHT[:3], "dict.pt"),
    (*RIGHT, "--seed", "-5"),
    (*RIGHT, "--seed", "9" * 30),
    ("audit", "--budget", "nan", "program.py"),
    ("audit", "--budget", "inf", "program.py"),
    ("audit", "--budget", "0", "program.py"),
    ("audit", "-m", "package.module"),
    ("audit", "-m", "broken"),
    ("audit", "deep.py"),
    ("audit", LONG),
    ("audit", "--json", "o.json", "\udcff.py"),
    ("explain", "-m", "package.module"),
    ("explain", LONG),
]
FAILED = [
    ("freeze", "."),
    ("freeze", "/"),
    ("freeze", "minor.ipynb"),
    ("freeze", "surrogate.ipynb", "-o", "o.html"),
    ("freeze", LONG),
    ("release", LONG),
    ("release", "es\x1bc.py"),
    ("release", "--new", LONG),
    ("mark", "x"),
    ("mark", "x", "y", "-o", "."),
    ("mark", "x", "y", "-o", LONG),
    ("report-bug", "list.json"),
    ("report-bug", LONG),
]
CELL = {"cell_type": "code", "id": "a", "metadata": {}, "source": "'\ud800'", "outputs": [], "execution_count": None}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    notebooks = {"minor": ("x", []), "surrogate": (5, [CELL])}
    texts = {
        "functions.py": FUNCTIONS,
        "program.py": PROGRAM,
        "closes.py": PROGRAM + "sys.stdout.close()\n",
        "none.py": PROGRAM + "sys.stdout = None\n",
        "leaves.py": "raise SystemExit(0)",
        "package/__init__.py": "raise SystemExit(0)",
        "broken.py": "def (",
        "deep.py": f"x = {'-' * 100_000}1",
        "list.json": "[]",
        **{
            f"{name}.ipynb": json.dumps({"nbformat": 4, "nbformat_minor": minor, "metadata": {}, "cells": cells})
            for name, (minor, cells) in notebooks.items()
        },
    }
    (tmp_path / "package").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    torch.save(3, tmp_path / "number.pt")
    torch.save({"a": 5}, tmp_path / "dict.pt")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def asked(words: tuple[str, ...]) -> int:
    try:
        return main(list(words))
    except SystemExit as error:  # argparse's
        return int(error.code or 0)


@pytest.mark.parametrize(
    ("words", "status"),
    [(w, 2) for w in FOUND_NOTHING] + [(w, 1) for w in FAILED],
    ids=lambda w: " ".join(map(str, w))[:50] if isinstance(w, tuple) else "",
)
def test_what_makes_no_sense_is_a_sentence(words, status, folder, capsys):
    assert asked(words) == status
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert last.startswith("nbautograd")
    assert "\x1b" not in last
    assert "report-bug" not in last  # nothing of ours stumbled
    assert not list(folder.glob("o.*"))


def test_a_backward_that_leaves_is_one_that_raises(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(("check", "functions.py:Leaves", "--inputs", "functions.py:inputs")) == 1
    assert "SystemExit" in capsys.readouterr().out


@pytest.mark.parametrize("program", ["closes.py", "none.py"])
def test_a_program_that_closes_its_output_takes_no_report_with_it(program, folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", output := io.StringIO())
    assert main(["audit", program]) == 0
    assert "Right" in (capsys.readouterr().err if output.closed else output.getvalue())


def test_an_error_of_ours_is_a_sentence_that_says_what_to_send(monkeypatch, capsys):
    monkeypatch.setattr("nbautograd.command.doctor.doctor", broken("command/injected.py"))
    assert main(["doctor"]) == 1
    assert "report-bug" in capsys.readouterr().err
    assert [one.what for one in stumbles.recent()] == ["AttributeError: renamed"]
    stumbles.forget()
