"""A class is marked once: the journal keeps what is done, and nothing that was written is written over."""

import csv
import json
import os
import pty
import signal
import subprocess
import sys
import types
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from marked_answers import CUBE, EXERCISES, SQUARE
from test_submissions import book, put

from nbautograd.command import main
from nbautograd.course.marking import batch
from nbautograd.course.marking.class_report import ClassReport, class_document
from nbautograd.course.marking.submissions import Assignment, MarkError, notebook_of
from nbautograd.views.to_text import to_text

WHAT = Assignment("hw.ipynb", ("square", "cube"), {"hw_exercises.py": EXERCISES}, ("cube",))
LIMITS = {"seconds": 6, "memory": 1 << 30}
NOBODY = {f"s{k}": None for k in range(6)}  # without a notebook: marked without a process


class Counting(ThreadPoolExecutor):
    """An executor that notes what it was given, and may break on the way."""

    given: list[str] = []
    breaks_at = -1

    def submit(self, fn, *args):
        if len(self.given) == self.breaks_at:
            type(self).breaks_at = -1
            raise BrokenExecutor("a worker is gone")
        self.given.append(args[1])
        return super().submit(fn, *args)


@pytest.fixture
def counting():
    Counting.given, Counting.breaks_at = [], -1
    return Counting


def test_a_journal_is_gone_on_with(tmp_path, counting):
    journal = tmp_path / "marks.jsonl"
    first, failed = batch.mark_all(WHAT, dict(list(NOBODY.items())[:4]), journal, counting, LIMITS)
    assert (len(first), failed, counting.given) == (4, {}, ["s0", "s1", "s2", "s3"])
    whole = journal.read_text().splitlines()
    journal.write_text("\n".join(whole[:3]) + "\n" + whole[3][:40])  # switched off while it wrote the fourth
    counting.given.clear()
    marks, _ = batch.mark_all(WHAT, NOBODY, journal, counting, LIMITS)
    assert sorted(counting.given) == ["s3", "s4", "s5"]
    assert [m.submission for m in marks] == sorted(NOBODY)
    counting.given.clear()
    again = batch.mark_all(WHAT, {**NOBODY, "s1": notebook_of(book("x = 1"))}, journal, counting, LIMITS)[0]
    assert counting.given == ["s1"]  # handed in anew
    assert [m.seed for m in again if m.submission != "s1"] == [m.seed for m in marks if m.submission != "s1"]
    other = Assignment("hw.ipynb", ("square",), WHAT.texts)
    counting.given.clear()
    batch.mark_all(other, NOBODY, journal, counting, LIMITS)
    assert len(counting.given) == 6  # for another assignment nothing is done yet


def test_a_pool_that_breaks_is_made_anew(tmp_path, counting):
    counting.breaks_at = 3
    marks, failed = batch.mark_all(WHAT, NOBODY, tmp_path / "m.jsonl", counting, LIMITS)
    assert ([m.submission for m in marks], failed) == (sorted(NOBODY), {})
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 6


def test_an_error_of_ours_is_no_mark(tmp_path, counting, monkeypatch):
    def marking(what, name, *rest):
        if name == "s2":
            raise KeyError("ours")
        return original(what, name, *rest)

    original = batch.mark
    monkeypatch.setattr(batch, "mark", marking)
    marks, failed = batch.mark_all(WHAT, NOBODY, tmp_path / "m.jsonl", counting, LIMITS)
    assert len(marks) == 5
    assert list(failed) == ["s2"]
    assert "s2" in to_text(class_document(ClassReport(WHAT, tuple(marks), tuple(failed.items()))))


def test_the_table_and_its_names(tmp_path, counting):
    marks, _ = batch.mark_all(WHAT, {"=cmd()": None}, tmp_path / "m.jsonl", counting, LIMITS)
    batch.write_csv(tmp_path / "m.csv", WHAT, marks)
    header, row = csv.reader((tmp_path / "m.csv").open(encoding="utf-8-sig"))
    assert header[:5] == ["submission", "points", "of", "square", "cube"]
    assert row[:6] == ["'=cmd()", "0", "5", "0", "0", "square: no_notebook; cube: no_notebook"]
    assert batch.free_name(tmp_path / "m.csv") == tmp_path / "m-2.csv"
    report = ClassReport(WHAT, tuple(marks))
    assert [row[:3] for row in report.codes] == [("square", "no_notebook", 1), ("cube", "no_notebook", 1)]
    assert json.dumps(report.to_dict())


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    put(
        tmp_path / "out",
        {"hw.ipynb": book("%%exercise square", "%%exercise cube"), "hw_exercises.py": EXERCISES.encode()},
    )
    setup = "import torch\nfrom torch.autograd import Function\ndef power(x):\n    return x**3"
    right = book(setup, f"%%exercise square\n{SQUARE}", f"%%exercise cube\n{CUBE}")
    wrong = book(setup, f"%%exercise square\n{SQUARE.replace('2 *', '-2 *')}")
    put(tmp_path / "in", {"ann.ipynb": right, "bob.ipynb": wrong})
    words = ["mark", *(str(tmp_path / n) for n in ("out", "in")), "-o", str(tmp_path / "marks.csv"), "--seconds", "30"]
    assert main(words) == 0
    rows = list(csv.reader((tmp_path / "marks.csv").open(encoding="utf-8-sig")))
    assert [row[:6] for row in rows[1:]] == [
        ["ann", "5", "5", "2", "3", ""],
        ["bob", "0", "5", "0", "0", "square: sign; cube: not_answered"],
    ]
    assert "1 of 2" in capsys.readouterr().out
    page = (tmp_path / "marks.html").read_text(encoding="utf-8")
    assert "sign" in page
    before = {path: path.read_bytes() for path in tmp_path.glob("marks*")}
    assert main(words) == 1  # never over what is there
    assert {path: path.read_bytes() for path in tmp_path.glob("marks*")} == before
    assert main([*words, "--resume"]) == 0
    assert (tmp_path / "marks-2.csv").read_bytes() == before[tmp_path / "marks.csv"]


@pytest.mark.nightly
def test_ctrl_c_keeps_the_marks_that_are_there_and_resume_makes_the_others(tmp_path):
    """As in a terminal: the command and the processes that mark all get the signal, while the bar stands at 1 of 4."""
    put(tmp_path / "out", {"hw.ipynb": book("%%exercise square"), "hw_exercises.py": EXERCISES.encode()})
    setup = "import torch\nfrom torch.autograd import Function"
    put(tmp_path / "in", {f"s{k}.ipynb": book(setup, f"%%exercise square\n{SQUARE}") for k in range(4)})
    table, journal = tmp_path / "marks.csv", tmp_path / "marks.jsonl"
    words = ["mark", *(str(tmp_path / n) for n in ("out", "in")), "-o", str(table), "--seconds", "60"]
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "nbautograd", *words]
    marking = subprocess.Popen(
        command,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "NBAUTOGRAD_LANG": "en"},
    )
    os.close(theirs)
    shown = ""
    while "1 of 4" not in shown:
        shown += os.read(ours, 1000).decode(errors="replace")
    os.killpg(marking.pid, signal.SIGINT)
    assert marking.wait(timeout=120) == 130
    os.close(ours)
    assert not table.exists()
    kept = journal.read_text().splitlines()
    assert 1 <= len(kept) < 4
    assert main([*words, "--resume"]) == 0
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sorted(line["submission"] for line in lines) == ["s0", "s1", "s2", "s3"]
    assert journal.read_text().splitlines()[: len(kept)] == kept
    assert [row[1] for row in list(csv.reader(table.open(encoding="utf-8-sig")))[1:]] == ["2"] * 4


@pytest.mark.parametrize(
    ("address", "why"),
    [("dask:127.0.0.1:1", "executor"), ("ray://127.0.0.1:1", "executor"), ("dask://", "executor"),
     ("dask://127.0.0.1:1", "distributed"), ("dask://127.0.0.1:1", "cluster")],
)  # fmt: skip
def test_an_address_that_is_none(address, why, monkeypatch):
    there = types.SimpleNamespace(Client=Mock(side_effect=OSError("refused")))
    monkeypatch.setitem(sys.modules, "distributed", there if why == "cluster" else None)
    with pytest.raises(MarkError) as raised, batch.executor(address=address):
        pass
    assert raised.value.message_id == f"course.mark.no_{why}"
