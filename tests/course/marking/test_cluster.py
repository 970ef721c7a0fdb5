"""A cluster of which a worker is killed in the middle: no submission lost, none marked twice."""

import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from unittest.mock import Mock

import pytest
from marked_answers import EXERCISES, SQUARE
from test_submissions import book

from nbautograd.course.marking import batch
from nbautograd.course.marking.submissions import Assignment, MarkError, notebook_of

ROOT = Path(__file__).parents[3]
WHAT = Assignment("hw.ipynb", ("square",), {"hw_exercises.py": EXERCISES})


@pytest.mark.slow
def test_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": tmp_path}
    file = tmp_path / "scheduler.json"
    start = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--scheduler-file", str(file), "--no-dashboard"]
    processes = [subprocess.Popen([*start, "--port", "0", "--host", "127.0.0.1"], **quiet)]
    try:
        wait_until(file.exists)
        address = json.loads(file.read_text())["address"]
        worker = [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            address,
            "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
        ]
        processes += [subprocess.Popen(worker, **quiet) for _ in range(2)]
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=120)
        right = notebook_of(book("import torch\nfrom torch.autograd import Function", f"%%exercise square\n{SQUARE}"))
        books = {f"s{k:02}": right for k in range(10)}
        killed = threading.Event()

        def watch(done):
            if done >= 3 and not killed.is_set():
                processes[1].send_signal(signal.SIGKILL)
                killed.set()

        with batch.executor(address=f"dask://{address.partition('//')[2]}") as make:
            limits = {"seconds": 60, "memory": 1 << 30}
            marks, failed = batch.mark_all(WHAT, books, tmp_path / "m.jsonl", make, limits, watch)
        assert killed.is_set()
        assert failed == {}
        assert [m.submission for m in marks] == sorted(books)
        assert {m.earned for m in marks} == {2}
        lines = [json.loads(line)["submission"] for line in (tmp_path / "m.jsonl").read_text().splitlines()]
        assert collections.Counter(lines) == dict.fromkeys(books, 1)
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def wait_until(condition):
    while not condition():
        time.sleep(0.1)


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
