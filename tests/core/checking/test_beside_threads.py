"""A check leaves the process as it was, and other threads notice nothing of it while it runs."""

from __future__ import annotations

import os
import random
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.autograd.function import BackwardCFunction
from torch.utils import _python_dispatch, deterministic

import nbautograd
from nbautograd.core.this_thread import warnings_ignored
from nbautograd.core.torch_private.dispatch import ThreadDispatchMode


def switches():
    """Return what a thread can see of the process; its random numbers apart."""
    folder = Path("/proc/self/fd")
    return {
        "deterministic": torch.get_deterministic_debug_mode(),
        "filled": deterministic.fill_uninitialized_memory,
        "threads": torch.get_num_threads(),
        "dispatch": _python_dispatch.is_in_torch_dispatch_mode(),
        "dtype": torch.get_default_dtype(),
        "grad": torch.is_grad_enabled(),
        "filters": [one for one in warnings.filters if type(one[1]).__name__ != "_ThisThread"],
        "trace": (sys.gettrace(), sys.getprofile()),
        "hooks": (sys.excepthook, threading.excepthook, sys.unraisablehook),
        "node": dict(vars(BackwardCFunction)),
        "files": len(os.listdir(folder)) if folder.exists() else 0,
    }


def numbers():
    return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()


Linear = Fn.of("Linear", "x, w: save(x, w); return x @ w", "g: x, w = saved; return g @ w.t(), x.t() @ g")
Halved = Linear.of("Halved", backward="g: x, w = saved; return 0.5 * g @ w.t(), x.t() @ g")
Unwritten = Fn.of("Unwritten", "x: return x[1:] * 2",
    'g: warnings.warn("as a Function may", stacklevel=1); gx = g.new_empty(len(g) + 1); '
    'gx[1:] = 2 * g; return gx')  # fmt: skip


def checks():
    return [
        (Linear, (draw(3, 4), draw(4, 2)), "right"),
        (Halved, (draw(3, 4), draw(4, 2)), "wrong"),
        (Unwritten, (draw(5),), "wrong"),
    ]


def train(steps=60, until=lambda: True):
    """Train a recorded layer with dropout on numbers of torch's default generator, as long as this asks for."""
    torch.manual_seed(3)
    w = torch.randn(6, 2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    losses = []
    while len(losses) < steps or not until():
        optimizer.zero_grad()
        x = torch.nn.functional.dropout(torch.randn(8, 6), 0.3)
        loss = Linear.apply(x, w).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, w.tolist(), torch.get_rng_state().tolist()


def explained():
    def twice():
        x = torch.ones(2, requires_grad=True)
        y = x.exp().sum()
        y.backward()
        y.backward()

    return nbautograd.explain(twice).code


def test_a_training_beside_checks_gets_the_numbers_that_it_gets_alone() -> None:
    nbautograd.instrument(Linear)
    alone = train()
    for fn, inputs, _ in checks():
        nbautograd.gradcheck(fn, inputs)  # what is imported once is there
    before, others, answers, errors = switches(), numbers()[1:], [], []
    done, begun = threading.Event(), threading.Barrier(5)

    def checking():
        while not done.is_set():
            for fn, inputs, verdict in checks():
                answers.append((nbautograd.gradcheck(fn, inputs).verdict, verdict))

    def beside(run):
        def target():
            try:
                begun.wait()
                run()
            except BaseException as error:
                errors.append(error)

        return threading.Thread(target=target)

    threads = [beside(checking) for _ in range(3)]
    threads.append(beside(lambda: answers.append((explained(), "freed_again"))))
    for thread in threads:
        thread.start()
    begun.wait()
    trained = train(until=lambda: len(answers) >= len(checks()) or errors)
    done.set()
    for thread in threads:
        thread.join()
    nbautograd.uninstrument(Linear)
    assert errors == []
    assert [now for now, _ in answers] == [expected for _, expected in answers]
    assert trained[0][: len(alone[0])] == alone[0]
    assert trained == train(steps=len(trained[0]))
    assert switches() == before
    assert numbers()[1:] == others


def test_what_another_thread_sees_while_a_check_runs_is_what_it_saw_before() -> None:
    seen = []

    def look():
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            warnings.warn("shown", stacklevel=1)
        seen.append((switches(), torch.get_rng_state().tolist(), len(heard)))

    def in_another_thread():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()

    class Looks(Fn):
        def forward(ctx, x):
            in_another_thread()
            warnings.warn("not shown", stacklevel=1)
            return x[1:] * 2

        def backward(ctx, g):
            in_another_thread()
            gx = torch.empty(len(g) + 1, dtype=g.dtype)
            gx[1:] = 2 * g
            return gx

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_another_thread()
        assert nbautograd.gradcheck(Looks, (draw(4),), order=1).verdict == "wrong"
    assert len(seen) > 10
    for one in seen[1:]:
        assert one == seen[0]


# Draws from the generators that all threads share.
Sampled = Fn.of("Sampled",
    "x: mask = torch.rand(x.shape, dtype=x.dtype) + random.random() + np.random.rand(); save(mask); "
    "return x * mask",
    "g: (mask,) = saved; return g * mask")  # fmt: skip
DrawsInBackward = Fn.of("DrawsInBackward", "x: return x * 2", "g: return 2 * g + 0 * torch.randn_like(g)")


def test_functions_that_draw_are_checked_one_after_the_other_and_leave_the_generators() -> None:
    before, verdicts = numbers(), []

    def check(fn):
        verdicts.extend(nbautograd.gradcheck(fn, (draw(3),)).verdict for _ in range(3))

    threads = [threading.Thread(target=check, args=(fn,)) for fn in (Sampled, Sampled, DrawsInBackward)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == ["right"] * 9
    assert numbers() == before


# Draw where another argument is given, or another size.
Dropped = Fn.of("Dropped",
    "x, training: mask = torch.rand_like(x) if training else torch.ones_like(x); save(mask, x); return x * x * mask",
    "g: mask, x = saved; return 3 * g * x * mask, None")  # fmt: skip
Rows = Fn.of("Rows",
    "x: mask = torch.ones_like(x) if len(x) == 3 else torch.rand_like(x); save(mask, x); return x * x * mask",
    "g: mask, x = saved; return 3 * g * x * mask")  # fmt: skip


@pytest.mark.parametrize(("fn", "more"), [(Dropped, (False,)), (Rows, ())])
def test_what_draws_at_other_arguments_or_sizes_alone_leaves_the_generators(fn, more) -> None:
    before = numbers()
    assert nbautograd.gradcheck(fn, (draw(3), *more)).verdict == "wrong"
    assert numbers() == before


@pytest.mark.parametrize("fn", [Linear, Halved])
def test_a_function_that_draws_nothing_seeds_nothing(fn, monkeypatch) -> None:
    def never(*_):
        raise AssertionError

    monkeypatch.setattr("nbautograd.core.checking.quiet.seed_all", never)
    assert nbautograd.gradcheck(fn, (draw(3, 4), draw(4, 2))).verdict == ("right" if fn is Linear else "wrong")
    with pytest.raises(AssertionError):
        nbautograd.gradcheck(Sampled, (draw(3),))


def test_a_generator_that_another_thread_moves_is_not_taken_for_the_functions() -> None:
    class Beside(Fn):
        def forward(ctx, x):
            thread = threading.Thread(target=lambda: torch.randn(3))
            thread.start()
            thread.join()
            return x * 2

        def backward(ctx, g):
            return g * 2

    torch.manual_seed(0)
    runs = []
    Beside.forward = staticmethod((lambda forward: lambda ctx, x: (runs.append(1), forward(ctx, x))[1])(Beside.forward))
    assert nbautograd.gradcheck(Beside, (draw(3),), order=1).verdict == "right"
    now = torch.get_rng_state()
    torch.manual_seed(0)
    for _ in runs:
        torch.randn(3)
    assert torch.equal(torch.get_rng_state(), now)


def test_filters_that_are_changed_meanwhile_stay() -> None:
    with warnings.catch_warnings():
        before = warnings.filters
        with warnings_ignored():
            assert len(warnings.filters) == len(before) + 1
        assert warnings.filters is before
        with warnings_ignored():
            warnings.simplefilter("error", ResourceWarning)
        assert warnings.filters[0][::2] == ("error", ResourceWarning, 0)
        assert len(warnings.filters) == len(before) + 1
        first, second = warnings_ignored(), warnings_ignored()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        with pytest.raises(ResourceWarning):
            threading_warns()
        warnings.warn("ignored in this thread", ResourceWarning, stacklevel=1)
        second.__exit__(None, None, None)
        assert len(warnings.filters) == len(before) + 1


def threading_warns():
    """Warn in another thread; raise here what it raises there."""
    caught = []

    def target():
        try:
            warnings.warn("elsewhere", ResourceWarning, stacklevel=1)
        except ResourceWarning as error:
            caught.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    raise caught[0]


def test_two_threads_that_leave_a_mode_as_they_came_leave_nothing() -> None:
    one, other = ThreadDispatchMode(), ThreadDispatchMode()
    entered, left = threading.Event(), threading.Event()

    def first():
        with one:
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait(10)
    with other:
        left.set()
        thread.join()
    assert not _python_dispatch.is_in_torch_dispatch_mode()
