"""A check is quiet for the thread that runs it, and for no other."""

from __future__ import annotations

import contextlib
import io
import random
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import torch
from fn import BASE, Fn, written
from interrupts import steps_of
from torch import nn
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import nbautograd
from nbautograd.core import this_thread
from nbautograd.core.checking import quiet as quiet_room
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.quiet import quiet
from nbautograd.core.explaining import watch
from nbautograd.core.explaining.watch import Watch
from nbautograd.core.recording import api
from nbautograd.core.recording.record import local
from nbautograd.core.torch_private import tensors


def test_prints_of_this_thread_are_dropped_and_those_of_others_are_not(capsys):
    stdout, stderr = sys.stdout, sys.stderr

    def background():
        print("from the background")
        print("and as an error", file=sys.stderr)

    file = io.StringIO()
    with quiet():
        print("from the check")
        print("into a file", file=file)
        with quiet():
            print("from a check inside the check")
        sys.stderr.write("from the check")
        thread = threading.Thread(target=background)
        thread.start()
        thread.join()
    assert (sys.stdout, sys.stderr) == (stdout, stderr)
    assert file.getvalue() == "into a file\n"
    print("after it")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("from the background\nafter it\n", "and as an error\n")


def test_two_threads_in_quiet_at_once_leave_the_streams_as_they_were():
    before, first, second = sys.stdout, threading.Event(), threading.Event()

    def check():
        with quiet():
            first.set()
            second.wait(10)

    thread = threading.Thread(target=check)
    thread.start()
    first.wait(10)
    with quiet():
        second.set()
        thread.join()
        assert sys.stdout is not before
    assert sys.stdout is before


@pytest.mark.parametrize("check", [nbautograd.gradcheck, lambda f, i: nbautograd.inspect(f, *i)])
def test_a_function_that_prints_is_checked_without_a_word(check, capsys):
    Chatty = Fn.of("Chatty", 'x: print("forward"); return x * 2', 'g: print("backward", file=sys.stderr); return g * 2')
    check(Chatty, (torch.ones(3, dtype=torch.float64, requires_grad=True),))
    assert capsys.readouterr() == ("", "")


Drawing = Fn.of("Drawing", "x: return x * torch.rand_like(x)", "g: return g")


def state():
    modes = _get_current_dispatch_mode_stack(), _get_current_function_mode_stack()
    filters = sys.stdout, sys.stderr, [*warnings.filters], nn.Parameter.__dict__["__new__"]
    numbers = torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()
    return *modes, *filters, *numbers, local.state.paused, quiet_room._here.room, quiet_room._shared._is_owned()


def a_room() -> None:
    x, numbers = torch.ones(2), quiet_room.Numbers()
    with quiet(), quiet_room.own_generators([random.Random(1)]):
        for kind in ("forward", "backward"):
            numbers.run(1, kind, lambda: Drawing.apply(x))


def a_watch() -> None:
    with Watch().on():
        torch.ones(2) * 2


@pytest.mark.parametrize(
    ("run", "modules"), [(a_room, [quiet_room, this_thread, tensors, api]), (a_watch, [watch, this_thread, tensors])]
)
def test_an_interrupt_at_any_step_leaves_the_thread_as_it_was(run, modules) -> None:
    files, before = {module.__file__ for module in modules}, state()
    steps = steps_of(run, files)
    assert steps > 15
    for at in range(1, steps + 1):
        with contextlib.suppress(KeyboardInterrupt):
            steps_of(run, files, at)
        assert state() == before, at


FIRST_CHECK = f"""
import sys, torch, nbautograd
{written("Square", "x: save(x); return x * x", "g: (x,) = saved; return 2 * g * x", base=BASE)}
print(nbautograd.gradcheck(Square, torch.ones(2, dtype=torch.float64, requires_grad=True)).verdict)
print([name for name in ("sympy", "torch._dynamo") if name in sys.modules])
"""


@pytest.mark.slow
def test_a_first_check_does_not_import_the_compiler() -> None:
    run = subprocess.run([sys.executable, "-c", FIRST_CHECK], capture_output=True, text=True, check=True)
    assert run.stdout.split("\n")[:2] == ["right", "[]"]


DRAWS = {
    "none": lambda: 2.0,
    "torch": lambda: torch.rand(1, dtype=torch.float64),
    "Python": random.random,
    "NumPy": np.random.rand,
    "NumPy's normal numbers, two at a time": np.random.randn,
    "Python, seeded by the function": lambda: random.seed(3) or random.random(),
    "NumPy, seeded by the function": lambda: np.random.seed(3) or np.random.rand(),
}


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("draw", DRAWS)
def test_a_draw_is_seen_also_where_the_second_of_two_numbers_was_kept(draw, kept) -> None:
    np.random.seed(3)
    np.random.randn(kept)
    problem = Problem(lambda x: x * DRAWS[draw](), torch.ones(2, dtype=torch.float64, requires_grad=True))
    first, again = problem.call(), problem.call()
    assert problem.numbers.drawn is (draw != "none")
    assert torch.equal(first[0], again[0])


@pytest.mark.parametrize("draw", DRAWS)
def test_a_first_run_that_raises_leaves_the_generators_as_they_were(draw) -> None:
    def fails(x):
        raise ArithmeticError(DRAWS[draw]())

    before = state()
    with pytest.raises(ArithmeticError):
        nbautograd.gradcheck(fails, torch.ones(2, dtype=torch.float64, requires_grad=True))
    assert state() == before
