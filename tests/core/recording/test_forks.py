"""The child of a fork: no lock of ours is held in it, whatever other threads were doing."""

from __future__ import annotations

import io
import multiprocessing
import os
import re
import signal
import sys
import threading
from pathlib import Path

import pytest
import torch
from fn import Fn

import nbautograd
from nbautograd.core import forks
from nbautograd.core.recording import api as log

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
PACKAGE = Path(nbautograd.__file__).parent


Double = Fn.of("Double", 'x: print("forward", end=""); return x * 2', "grad: return grad * 2")


def steps(_=None):
    for _ in range(100):
        Double.apply(torch.ones(3))
    return len(nbautograd.calls(Double))


def in_child(action):
    """Run something in a forked child; returns how it ended. One that hangs is ended by its alarm."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            action()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Held:
    """Holds locks in another thread."""

    def __init__(self, *locks):
        self.locks, self.ready, self.over = locks, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self):
        for lock in self.locks:
            lock.acquire()
        self.ready.set()
        self.over.wait(60)
        for lock in self.locks:
            lock.release()

    def __enter__(self):
        self.thread.start()
        assert self.ready.wait(20)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_a_child_that_records_does_not_wait_for_a_thread_that_it_has_not(capfd):
    with log.recording(Double), Held(log._ring._lock):
        assert in_child(steps) == 0


def test_that_test_can_trip(monkeypatch):
    lock = threading.RLock()  # not made by ``forks.lock``
    with Held(lock):
        assert in_child(lambda: os._exit(0 if lock.acquire(blocking=False) else 3)) == 3


def test_a_lock_that_the_forking_thread_holds_is_still_its_own_in_the_child():
    lock = forks.lock()

    def release():
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()

    with lock:
        assert in_child(release) == 0


def test_every_lock_of_the_package_is_renewed():
    """They are made in one place."""
    made = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf-8")
        if found := re.findall(r"\b(?:R?Lock|Condition|(?:Bounded)?Semaphore|Barrier)\(", text):
            made[str(path.relative_to(PACKAGE))] = len(found)
        assert "@cached_property" not in text  # which in Python 3.11 holds a lock of its own
    assert made == {"core/forks.py": 1}


def test_a_value_that_another_thread_computes_at_the_fork_is_computed_in_the_child():
    begun, over = threading.Event(), threading.Event()

    class Slow:
        @forks.cached
        def value(self):
            if threading.current_thread() is thread:
                begun.set()
                over.wait(60)
            return 7

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    assert begun.wait(20)
    assert in_child(lambda: os._exit(Slow().value)) == 7
    over.set()
    thread.join()


@pytest.mark.slow
def test_workers_of_a_data_loader_record_beside_threads_that_look_and_train(capfd):
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, at):
            signal.alarm(60)
            steps()
            return Double.apply(torch.full((2,), float(at)))

    over = threading.Event()

    def until_over(action):
        while not over.is_set():
            action()

    with log.recording(Double):
        threads = [
            threading.Thread(target=until_over, args=(action,))
            for action in (lambda: Double.apply(torch.ones(3)), lambda: len(nbautograd.calls(Double)))
        ]
        for thread in threads:
            thread.start()
        try:
            loader = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=2, multiprocessing_context="fork")
            for _ in range(3):
                rows = torch.cat(list(loader))
                assert rows[:, 0].tolist() == [2.0 * at for at in range(8)]
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert min(pool.map_async(steps, range(8)).get(timeout=120)) > 0
        finally:
            over.set()
            for thread in threads:
                thread.join()


def test_the_stream_of_a_child_is_free_of_a_call_that_another_thread_makes(monkeypatch):
    begun, over = threading.Event(), threading.Event()

    class Waiting(Fn):
        def forward(ctx, x):
            begun.set()
            over.wait(60)
            return x * 2

    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with log.recording(Waiting):
        thread = threading.Thread(target=Waiting.apply, args=(torch.ones(1),))
        thread.start()
        assert begun.wait(20)
        assert "write" in vars(sys.stdout)
        try:
            assert in_child(lambda: os._exit(len(vars(sys.stdout)))) == 0
        finally:
            over.set()
            thread.join()
