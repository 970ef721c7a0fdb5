"""A copy of the process leaves no trace: not in files that were open, not in files that it would open, not outside."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from nbautograd import explain
from nbautograd.core import process_copy
from nbautograd.core.process_copy import Refused, in_copy


def kernel_forbids_writing():
    """True where the kernel knows Landlock; asked in a copy, since what it forbids it forbids for good."""
    return in_copy(lambda: process_copy._forbid_writing() or True) is True


def children():
    """The processes that this one started and that are still there, ended or not; Linux alone lists them."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def scripted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.trace(torch.nn.Identity(), torch.ones(1))


@pytest.mark.parametrize(
    "reach",
    [
        lambda path: Path(path).write_text("1"),
        lambda path: os.mkdir(path),
        lambda path: os.system("true"),
        lambda path: subprocess.run(["true"], check=True),
        lambda path: np.save(path, np.ones(1)),
        lambda path: torch.save(torch.ones(1), path),
        lambda path: torch.jit.save(scripted(), path),
        lambda path: scripted().save(path),
        lambda path: sqlite3.connect(path),
    ],
)
def test_a_run_in_a_copy_reaches_nothing_outside(reach, tmp_path):
    path = str(tmp_path / "reached")
    refused = in_copy(lambda: reach(path))
    assert (type(refused), refused.reason) == (Refused, "outside")
    assert os.listdir(tmp_path) == []


def logger_of(path):
    logger = logging.getLogger(path)
    logger.addHandler(logging.FileHandler(path))
    logger.propagate = False
    return lambda: logger.warning("a line")


def opened(path, mode, **how):
    return Path(path).open(mode, **how)


def written(path, **how):
    file = opened(path, "w+", **how)
    return lambda: (file.write("a line\n"), file.flush())


def unflushed(path):
    file = opened(path, "w")
    file.write("kept back\n")
    return file.flush


def by_number(path):
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    return lambda: os.write(number, b"a line")


def truncated(path):
    file = opened(path, "w")
    file.write("a line")
    file.flush()
    return lambda: os.ftruncate(file.fileno(), 0)


def database(path):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("create table losses (value)")
    return lambda: connection.execute("insert into losses values (1)")


def saved(path):
    file = opened(path, "wb")
    return lambda: (torch.save(torch.ones(3), file), file.flush())


OPEN = {
    "a log": logger_of,
    "a progress bar": lambda path: written(path, buffering=1),
    "a file": written,
    "a file of its own encoding": lambda path: written(path, encoding="utf-16"),
    "what is not flushed": unflushed,
    "a descriptor": by_number,
    "a length": truncated,
    "a database": database,
    "torch.save": saved,
}


@pytest.mark.parametrize("begin", OPEN.values(), ids=OPEN)
def test_what_was_open_before_is_the_same_to_the_byte_and_goes_on_here(begin, tmp_path):
    path = tmp_path / "open"
    write = begin(str(path))
    before = path.read_bytes()

    def job():
        with contextlib.suppress(sqlite3.OperationalError, OSError):  # a database cannot, and a device has no length
            write()
        return True

    assert in_copy(job) in (True, Refused("outside", "os.truncate"))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["open"]
    write()
    assert path.read_bytes() != before


@pytest.mark.parametrize("listed", [True, False], ids=["listed", "not listed"])
def test_a_socket_and_a_pipe_are_out_of_reach(listed, monkeypatch):
    if not listed:
        monkeypatch.setattr(process_copy, "_descriptors", lambda: range(256))
    ours, peer = socket.socketpair()
    reading, writing = os.pipe()
    os.write(writing, b"for here")

    def job():
        ours.sendall(b"bytes")
        return os.write(writing, b"bytes"), os.read(reading, 99)

    with contextlib.closing(ours), contextlib.closing(peer):
        assert in_copy(job) is not True  # what it answers depends on the system
        peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            peer.recv(99)
        assert os.read(reading, 99) == b"for here"
        ours.sendall(b"from here")
        assert peer.recv(99) == b"from here"
    os.close(reading)
    os.close(writing)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems open no file a second time by its number"
)
def test_a_copy_reads_on_in_a_file_and_its_position_here_stays(tmp_path):
    path = tmp_path / "read"
    path.write_bytes(b"first second third")
    with open(path, "rb", buffering=0) as file:
        assert file.read(6) == b"first "
        path.unlink()
        assert in_copy(file.read) == b"second third"
        assert file.read() == b"second third"


def test_a_copy_reads_files_and_devices():
    assert in_copy(lambda: Path(__file__).read_text().startswith('"""')) is True
    with open("/dev/zero", "rb", buffering=0) as device:
        assert in_copy(lambda: device.read(3)) == bytes(3)


@pytest.mark.skipif(not kernel_forbids_writing(), reason="this kernel knows no Landlock")
@pytest.mark.parametrize("call", ["fopen", "creat", "unlink", "rename", "mkdir"])
def test_the_kernel_refuses_what_python_does_not_hear_of(call, tmp_path):
    import ctypes

    path, other = str(tmp_path / "kept").encode(), str(tmp_path / "other").encode()
    (tmp_path / "kept").write_text("kept")
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    given = {"fopen": (path, b"w"), "creat": (path, 0o600), "rename": (path, other), "mkdir": (other, 0o700)}
    failed = in_copy(lambda: getattr(libc, call)(*given.get(call, (path,))) in (-1, None))
    assert failed is True
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("kept", "kept")]


def test_a_copy_may_write_to_nothing():
    assert in_copy(lambda: Path(os.devnull).write_text("nothing")) == 7


@pytest.mark.slow
def test_the_first_optimizer_of_a_process_may_be_made_in_a_copy():
    program = """if True:
        import sys, torch, nbautograd
        assert "torch._dynamo" not in sys.modules  # what torch imports for an optimizer, with folders for its caches
        def step():
            w = torch.zeros(3, requires_grad=True)
            torch.optim.SGD([w], 0.1)
            a = w.exp()
            b = a * a
            a += 1
            b.sum().backward()
        print(nbautograd.explain(step).code)
    """
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["in_place"]


def test_a_process_whose_group_has_threads_is_not_copied(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    assert in_copy(lambda: True) == Refused("fork", "group")


def test_a_copy_that_dies_is_said():
    assert in_copy(lambda: os._exit(1)) == Refused("died")
    assert in_copy(os.abort) == Refused("died", "SIGABRT")
    assert explain(lambda: os._exit(1)).code == "refused"


def test_a_copy_that_takes_too_long_is_ended():
    forever = threading.Event()
    assert in_copy(forever.wait, longest=0.2) == Refused("late", "0.2")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems tell no process that its parent ended")
def test_a_copy_ends_with_the_process_that_waits_for_it():
    seen = mmap.mmap(-1, 8)  # shared with every copy: 0 begun, 1 to go on, 2 went on, and where the copy's number is

    def job():
        seen[4:8] = os.getpid().to_bytes(4, "little")
        seen[0] = 1
        while not seen[1]:
            time.sleep(0.001)
        seen[2] = 1

    parent = os.fork()
    if parent == 0:
        in_copy(job)
        os._exit(0)
    while not seen[0]:
        time.sleep(0.001)
    copy = int.from_bytes(seen[4:8], "little")
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    while os.path.exists(f"/proc/{copy}") and "\nState:\tZ" not in Path(f"/proc/{copy}/status").read_text():
        time.sleep(0.001)
    seen[1] = 1
    assert seen[2] == 0


striking: list[int] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=lambda: signal.raise_signal(striking.pop()) if striking else None)


def test_a_signal_that_comes_during_the_fork_is_handled_after_it() -> None:
    """In Python's own function after a fork its exception would be lost, and a lock of logging with it."""

    def stop(*_) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, stop)
    striking.append(signal.SIGUSR1)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_copy(lambda: 1)
        assert signal.getsignal(signal.SIGUSR1) is stop
        assert in_copy(lambda: 1) == 1
    finally:
        signal.signal(signal.SIGUSR1, before)


def struck(step, in_the_copy):
    """Interrupt a copy at one step of what makes and ends it, here or in the copy; returns whether it came so far."""
    here, escaped, steps = os.getpid(), mmap.mmap(-1, 1), 0
    made = {process_copy.told_by_copy, process_copy._in_copy}
    codes = {f.__code__ for f in made} | {
        c for c in process_copy.told_by_copy.__code__.co_consts if hasattr(c, "co_code")
    }

    def strike(frame, event, arg):
        nonlocal steps
        if frame.f_code in codes and (os.getpid() != here) == in_the_copy:
            steps += event == "line"
            if event == "line" and steps == step:
                raise KeyboardInterrupt
        return strike

    before, reached = sys.gettrace(), False
    sys.settrace(strike)
    try:
        answer = in_copy(lambda: 1)
        reached = answer != 1
    except KeyboardInterrupt:
        reached = True
    finally:
        sys.settrace(before)
        if os.getpid() != here:
            escaped[0] = 1
            os._exit(1)
    assert not escaped[0]
    return reached


@pytest.mark.slow
@pytest.mark.parametrize("in_the_copy", [False, True], ids=["here", "in the copy"])
def test_an_interrupt_at_any_step_lets_no_copy_out_and_leaves_none_behind(in_the_copy):
    handlers, files, before = signal.getsignal(signal.SIGINT), set(process_copy._descriptors()), children()
    step = 1
    while struck(step, in_the_copy):
        step += 1
    assert step > 10
    assert signal.getsignal(signal.SIGINT) == handlers
    assert set(process_copy._descriptors()) - files == set()
    assert children() - before == set()
