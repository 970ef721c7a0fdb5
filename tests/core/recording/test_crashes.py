"""Nothing of ours ends a process: odd tensors, interrupts, forks, and what only a system call can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import odd_tensors
import pytest
import torch

from nbautograd.core.recording import api, memory
from nbautograd.core.recording.snapshot import SUMMARY, VALUES, snapshots

KINDS = [*odd_tensors.KINDS, "changed by another thread", "interrupted lookups"]
ENGINE = api.engine()  # chosen before a test breaks the recorder


@pytest.fixture(scope="module", params=["process_vm_readv", "pipe"])
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
    assert "the recorder itself failed" in odd_tensors.compare(odd_tensors.KINDS["no elements"]).lower()
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


def test_without_a_copier_nothing_is_read_and_it_is_said(monkeypatch):
    monkeypatch.setattr(memory, "copier", lambda: None)
    (one,) = snapshots([torch.ones(3)], SUMMARY)
    assert one.data is None
    assert "no way to read memory" in str(one.reason)


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
    assert "it changed while" in str(one.reason)


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
