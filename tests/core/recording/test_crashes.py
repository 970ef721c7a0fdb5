"""Nothing of ours ends a process: odd tensors, interrupts, forks, and what only a system call can tell."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import odd_tensors
import pytest
import torch
from fn import Fn
from said import says

from nbautograd.core.recording import api, memory
from nbautograd.core.recording.snapshot import SUMMARY, VALUES, snapshots

KINDS = [*odd_tensors.KINDS, "changed by another thread", "interrupted lookups"]


@pytest.fixture(scope="module", params=["process_vm_readv", pytest.param("pipe", marks=pytest.mark.nightly)])
def outcomes(request):
    """All kinds, each in a process of its own."""
    done = subprocess.run(
        [sys.executable, odd_tensors.__file__, *KINDS],
        capture_output=True, text=True, timeout=280, check=False,
        env={**os.environ, "ODD_COPIER": request.param, "PYTHONPATH": str(Path(__file__).parents[3])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_odd_tensors_are_recorded_as_they_run_bare(kind, outcomes):
    assert outcomes[kind] == "ok"


@pytest.mark.slow
def test_a_lookup_of_setup_context_that_runs_python_ends_the_process():
    """Why there is a spy whose lookup runs none: PyTorch calls what it gets. Where this fails, it is not needed."""
    assert odd_tensors.run("interrupted lookups in Python") == "the process ended with -11"


def test_the_comparison_can_fail(monkeypatch):
    """The guard trips: a recorder that changes what comes out is told apart."""
    from nbautograd.core.recording import recorder

    def meddles(self, record, args, values):
        args[0].set_materialize_grads(None)  # raises

    monkeypatch.setattr(recorder.ForwardRecorder, "observe", meddles)
    assert says(odd_tensors.compare(odd_tensors.KINDS["no elements"]), "recording.error")
    api._recorder.errors.clear()


@pytest.mark.parametrize("kind", [memory.VirtualMemory, memory.Pipe])
def test_a_copier_copies_what_is_there_and_refuses_what_is_not(kind):
    copier = kind()
    assert memory.works(copier)
    x = torch.arange(100_000, dtype=torch.float64)
    assert copier.copy([x.data_ptr(), x.nbytes], x.nbytes) == x.numpy().tobytes()
    assert copier.copy([x.data_ptr(), 8, 16, 8], 16) is None
    many = [number for i in range(3000) for number in (x.data_ptr() + 8 * i, 8)]  # more than one system call takes
    assert copier.copy(many, 24_000) == x[:3000].numpy().tobytes()


def test_a_copier_that_lies_is_not_used(monkeypatch):
    monkeypatch.setattr(memory.VirtualMemory, "copy", lambda self, pieces, total: bytes(total))
    monkeypatch.setattr(memory, "copier", memory.copier.__wrapped__)
    assert memory.copier().name == "pipe"
    monkeypatch.setattr(memory.Pipe, "copy", lambda self, pieces, total: bytes(total))
    assert memory.copier() is None


def test_while_a_profiler_runs_nothing_is_read_and_its_table_stays_clean():
    def table(cls):
        with torch.profiler.profile() as profile:
            cls.apply(torch.ones(3), None)
        return sorted(event.key for event in profile.key_averages())

    bare, cls = (odd_tensors.functions(None)[0] for _ in range(2))
    expected = table(bare)
    with api.recording(cls) as log:
        assert table(cls) == expected
    assert "profiler" in str(log[0].inputs[0].tensor.reason)


def test_a_tensor_that_changes_between_plan_and_copy_is_missing(monkeypatch):
    x = torch.ones(3)
    real = memory.copier()

    class Late:
        name = "late"

        def copy(self, pieces, total):
            copied = real.copy(pieces, total)
            x.add_(1)
            return copied

    monkeypatch.setattr(memory, "copier", Late)
    (one,) = snapshots([x], SUMMARY)
    assert one.data is None
    assert one.reason.message_id == "recording.missing.changed"


def test_a_copy_on_write_tensor_stays_one():
    x = torch.ones(1000)
    clone = torch._lazy_clone(x)
    snapshots([clone, x], VALUES)
    assert torch._C._is_cow_tensor(clone)


def test_interrupts_inside_the_recorder_leave_no_open_call(monkeypatch):
    """At each of its steps once: the next call at the top has no parent, and the stack is empty."""
    from nbautograd.core.recording import recorder

    cls = odd_tensors.functions(None)[2]
    places = [
        (recorder.ForwardRecorder, name) for name in ("link", "arguments", "observe", "leave", "close")
    ] + [(recorder.BackwardRecorder, name) for name in ("link", "argument_snapshots", "observe", "close")]  # fmt: skip
    with api.recording(cls) as log:
        for owner, name in places:
            with monkeypatch.context() as patch:

                def interrupted(*_):
                    raise KeyboardInterrupt

                patch.setattr(owner, name, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    cls.apply(torch.ones(3, requires_grad=True), torch.ones(2)).sum().backward()
            assert api.local.state.stack == []
        cls.apply(torch.ones(3, requires_grad=True), torch.ones(2)).sum().backward()
        assert [call.parent for call in log[-2:]] == [None, None]


def test_after_a_fork_the_child_reads_its_own_memory():
    x = torch.zeros(3)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        x += 7
        (one,) = snapshots([x], SUMMARY)
        os.write(writer, one.data or b"nothing")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == torch.full((3,), 7.0).numpy().tobytes()
    os.waitpid(child, 0)


def test_an_argument_of_2_to_the_62_elements_can_be_looked_at():
    """Its size in bytes overflows to 0: a call with it made the whole log unreadable."""

    Ones = Fn.of("Ones", "x: return torch.ones(1)")
    for base, shape in ((torch.ones(1), (2**62,)), (torch.ones(3000), (2**50, 3000)), (torch.ones(1), (2**62 + 1,))):
        with api.recording(Ones) as log:
            Ones.apply(base.expand(shape))
            Ones.apply(base)
        assert str(log)
        assert log.to_dict()
        given = log[0].inputs[0].tensor
        assert (given.shape, given.min, given.max) == (shape, 1, 1)
    assert api._recorder.errors == {}


class Ends:
    """Ends the process, or raises, whenever anything of it is looked at."""

    def __repr__(self):
        raise SystemExit("repr")

    __str__ = __repr__


class OfOurs(torch.Tensor):
    @property
    def shape(self):
        raise SystemExit("shape")

    requires_grad = dtype = device = shape


class Spoken(Exception):  # noqa: N818 - its name is looked for
    def __str__(self):
        raise SystemExit("text")


@pytest.mark.parametrize(
    "argument", [slice(Ends()), (Ends(),), {"key": Ends()}, [slice(None, Ends())], torch.ones(2).as_subclass(OfOurs)]
)
def test_no_code_of_an_argument_runs(argument):
    Takes = Fn.of("Takes", "x, other: ctx.other = other; return x * 2")
    with api.recording(Takes) as log:
        Takes.apply(torch.ones(2), argument)
    assert log[0].inputs[1].repr


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Spoken("said"), "Spoken: said"),
        (ValueError(Ends()), "ValueError: <Ends>"),
        (OSError(2, "gone", Ends()), "FileNotFoundError: 2, gone"),
        (OSError(2, "gone", "file"), "FileNotFoundError: [Errno 2] gone: 'file'"),
        (KeyError("name"), "KeyError: 'name'"),
        (ValueError(), "ValueError"),
    ],
)
def test_no_code_of_an_exception_runs(error, text):
    class Raises(Fn):
        def forward(ctx, x):
            raise error

    with api.recording(Raises) as log, pytest.raises(type(error)) as caught:
        Raises.apply(torch.ones(2))
    assert caught.value is error
    assert log[0].exception == text


Square = Fn.of("Square", "x: save(x); return x * x", "grad: return 2 * ctx.saved_tensors[0] * grad")


WAYS = {
    "plain": lambda x: Square.apply(x).sum().backward(),
    "graph of the gradient": lambda x: torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True),
}


def struck(way, strike):
    """Return how often code of the user's ran meanwhile, and how often without a graph of its own."""
    outcomes = []

    def compute():
        with torch.enable_grad():
            outcomes.append((leaf * 2).grad_fn is not None)

    leaf, x = torch.ones(1, requires_grad=True), torch.ones(3, requires_grad=True)
    with api.recording(Square), strike(compute):
        for _ in range(300):
            way(x)
    return len(outcomes), outcomes.count(False)


@contextlib.contextmanager
def collected(compute):
    """A finalizer runs at each tenth allocation or so."""

    class Node:
        def __init__(self):
            self.itself = self

        def __del__(self):
            if not over:
                compute()
                Node()

    over, before = [], gc.get_threshold()
    gc.set_threshold(7)
    Node()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        over.append(True)
        gc.collect()


@contextlib.contextmanager
def signalled(compute):
    before = signal.signal(signal.SIGALRM, lambda *_: compute())
    signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("strike", [collected, signalled])
@pytest.mark.parametrize("way", ["plain", "graph of the gradient"])
def test_a_finalizer_and_a_signal_handler_have_autograd(way, strike, monkeypatch):
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # beside another thread, which a test may have left,
    # the collector stays on: that one could see it off
    runs, without = struck(WAYS[way], strike)
    assert (runs > 0, without) == (True, 0)


def test_a_pipe_whose_numbers_went_to_files_of_the_users_is_made_anew(tmp_path):
    pipe = memory.Pipe()
    x = torch.arange(4.0)
    (ends,) = pipe._spare
    for number in (ends.into, ends.out):
        os.close(number)
    files = [os.open(tmp_path / name, os.O_RDWR | os.O_CREAT) for name in ("first", "second")]
    assert {*files} == {ends.into, ends.out}  # the least numbers that are free
    assert pipe.copy([x.data_ptr(), x.nbytes], x.nbytes) == x.numpy().tobytes()
    for file in files:
        assert os.fstat(file).st_size == 0
        os.close(file)
    assert pipe.copy([x.data_ptr(), x.nbytes], x.nbytes) == x.numpy().tobytes()


def test_one_variable_turns_reading_off():
    program = (
        "import torch, nbautograd\n"
        "from nbautograd.core.recording import memory\n"
        "memory.VirtualMemory.__init__ = memory.Pipe.__init__ = lambda self: 1 / 0\n"
        "F = nbautograd.instrument(torch.autograd.function.InplaceFunction)\n"
        "from nbautograd.core.recording.snapshot import SUMMARY, snapshots\n"
        "print(snapshots([torch.ones(3)], SUMMARY)[0].reason)\n"
    )
    environment = {**os.environ, "NBAUTOGRAD_VALUES": "0", "PYTHONPATH": str(Path(__file__).parents[3])}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "NBAUTOGRAD_VALUES" in ran.stdout


def test_without_a_copier_nothing_is_read_and_it_is_said(monkeypatch):
    monkeypatch.setattr(memory, "copier", lambda: None)
    (one,) = snapshots([torch.ones(3)], SUMMARY)
    assert one.data is None
    assert one.reason.message_id == "recording.missing.no_copier"
