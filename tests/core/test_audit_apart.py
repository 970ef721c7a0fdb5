"""Audits in a copy of the process: no check ends the program's process or leaves anything in it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

import pytest
import torch
from fn import BASE, Fn, written

import nbautograd
from nbautograd.core import process_copy
from nbautograd.inspection import audited_apart
from nbautograd.inspection.audit_checks import copied_calls

pytestmark = pytest.mark.skipif(bool(process_copy.why_not()), reason="this process cannot be copied")
GIVEN = torch.tensor([0.3, -0.7, 1.1])
CALLS = []


def trusting(x, end):
    """Read memory that is there for the program's own inputs alone."""
    if x.shape != GIVEN.shape or not torch.equal(x.float(), GIVEN):
        end()


Doubled = Fn.of("Doubled", "x: CALLS.append(tuple(x.shape)); save(x); return 2 * x", "grad: return 2 * grad")
Wrong = Doubled.of("Wrong", backward="grad: return 3 * grad")


def forward_that(end):
    class Trusting(Doubled):
        @staticmethod
        def forward(ctx, x):
            trusting(x.detach(), end)
            return Doubled.forward(ctx, x)

    return Trusting


def backward_that(end):
    class Trusting(Doubled):
        @staticmethod
        def backward(ctx, grad):
            trusting(GIVEN if torch.equal(grad, torch.ones(3)) else grad, end)
            return 2 * grad

    return Trusting


def checked(*classes, **budget):
    with nbautograd.audit(**budget) as audit:
        for cls in classes:
            cls.apply(GIVEN.clone().requires_grad_()).sum().backward()
    return {one.name: one.situations[0] for one in audit.report().functions}


@pytest.mark.parametrize("made", [forward_that, backward_that])
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda: ctypes.string_at(0), ("audit.died", {"signal": "SIGSEGV"})),
        (os.abort, ("audit.died", {"signal": "SIGABRT"})),
        (lambda: os._exit(3), ("audit.exited", {})),
    ],
)
def test_a_body_that_ends_the_process_at_made_up_inputs_ends_a_copy(made, end, reason):
    outcomes = checked(Doubled, made(end), Wrong)
    assert {name: one.verdict for name, one in outcomes.items()} == {
        "Doubled": "right",
        "Trusting": "cannot tell",
        "Wrong": "wrong",
    }
    said = outcomes["Trusting"].reason
    assert (said.message_id, said.params) == reason


@pytest.mark.parametrize(("made", "verdict"), [(forward_that, "right"), (backward_that, "cannot tell")])
def test_a_body_that_raises_system_exit_at_made_up_inputs_raises_and_ends_nothing(made, verdict):
    outcome = checked(made(lambda: sys.exit("made up")))["Trusting"]
    assert outcome.verdict == verdict
    assert getattr(outcome.reason, "message_id", "") == ("" if verdict == "right" else "audit.only_run_again")


def test_of_a_copy_that_died_nothing_is_believed():
    spoilt = []  # as by a write past the end of an array

    class First(Doubled):
        @staticmethod
        def forward(ctx, x):
            trusting(x.detach(), lambda: spoilt.append(1))
            return Doubled.forward(ctx, x)

    class Later(Doubled):
        @staticmethod
        def backward(ctx, grad):
            if spoilt:
                ctypes.string_at(0)
            return 2 * grad

    assert {name: one.verdict for name, one in checked(First, Later).items()} == {"First": "right", "Later": "right"}


def test_a_body_that_never_returns_is_ended_and_said(monkeypatch):
    monkeypatch.setattr(audited_apart, "GRACE", 0.1)
    forever = forward_that(lambda: ctypes.CDLL(None).usleep(10**9))
    assert checked(forever, budget=0.5)["Trusting"].reason.message_id == "audit.late"


def test_checks_leave_nothing_in_the_program():
    CALLS.clear()
    state, modules = torch.get_rng_state(), set(sys.modules)
    assert checked(Doubled, Wrong)["Wrong"].verdict == "wrong"
    assert CALLS == [(3,), (3,)]
    assert torch.equal(torch.get_rng_state(), state)
    new = {name for name in set(sys.modules) - modules if not name.startswith("nbautograd.")}
    assert new <= {"torch.utils.serialization", "torch.utils.serialization.config"}  # for the first tensor to unpickle


WrongReshaped = Fn.of(
    "WrongReshaped", "x, shape, kind: return 2 * x.reshape(shape)", "grad: return 3 * grad.reshape(3), None, None"
)


def test_inputs_of_a_wrong_gradient_come_back_as_they_were_whatever_they_are():
    with nbautograd.audit() as audit:
        WrongReshaped.apply(GIVEN.clone().requires_grad_(), (3, 1), Doubled).sum().backward()
    report = audit.report()
    [kept] = copied_calls(report).values()
    x, *others = kept.inputs
    assert (x.dtype, x.shape, others) == (torch.float64, (3,), [(3, 1), Doubled])


@pytest.mark.parametrize("copied", [True, False])
def test_a_process_that_cannot_be_copied_checks_in_itself(monkeypatch, copied):
    if not copied:
        monkeypatch.setattr(process_copy, "why_not", lambda: "fork")
    CALLS.clear()
    assert checked(Wrong)["Wrong"].verdict == "wrong"
    assert (len(CALLS) == 1) == copied


def test_an_interrupt_of_the_copy_is_one_of_the_audit():
    def interrupt():
        raise KeyboardInterrupt

    with nbautograd.audit() as audit:
        for cls in (Wrong, forward_that(interrupt)):
            cls.apply(GIVEN.clone().requires_grad_()).sum().backward()
    report = audit.report()
    assert not report.complete
    assert [one.verdict for one in report.functions] == ["wrong", "unchecked"]


def test_an_interrupt_of_the_audit_keeps_what_a_copy_told():
    told = []

    def interrupting(done, total, what):
        told.append(what)
        if "Trusting" in what:
            raise KeyboardInterrupt

    with nbautograd.audit() as audit:
        for cls in (Wrong, forward_that(lambda: time.sleep(60))):
            cls.apply(GIVEN.clone().requires_grad_()).sum().backward()
    report = audit.report(progress=interrupting)
    assert told
    assert [one.verdict for one in report.functions] == ["wrong", "unchecked"]


FORKING = f"""
import torch
import nbautograd
from nbautograd.core import process_copy

@torch.jit.script
def doubled(x):
    return torch.jit.wait(torch.jit.fork(torch.add, x, x))

{written("Forking", "x: return doubled(x)", "grad: return 3 * grad", base=BASE)}
before = process_copy.why_not()
with nbautograd.audit() as audit:
    Forking.apply(torch.tensor([0.3, -0.7], requires_grad=True)).sum().backward()
print([before, process_copy.why_not(), *(one.verdict for one in audit.report().functions)])
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are looked for in /proc")
def test_a_program_whose_threads_a_copy_lacks_is_checked_in_its_process(tmp_path):
    """In a process of its own: its threads stay till its end."""
    (tmp_path / "forking.py").write_text(FORKING)
    path = os.pathsep.join([os.path.dirname(os.path.dirname(nbautograd.__file__)), *sys.path])
    ran = subprocess.run(
        [sys.executable, "forking.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.strip() == "['', 'threads', 'wrong']", ran.stderr
