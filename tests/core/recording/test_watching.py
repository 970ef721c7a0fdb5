"""Watching every custom Function of a program: who is met, what is kept, and that nothing else changes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading

import numpy as np
import pytest
import torch
from fn import Fn
from interrupts import steps_of
from torch.autograd.function import BackwardCFunction

import nbautograd
from nbautograd.core.recording import watching
from nbautograd.core.recording.watching import FunctionWatch

Square = Fn.of("Square", "x, note=None: save(x); return x * x", "grad: (x,) = saved; return 2 * x * grad, None")
Product = Fn.of("Product", "x, y: return x * y",
    "grad: x, y = saved; return grad * y, grad * x", setup_context="inputs, output: save(*inputs)")  # fmt: skip


square = Square.apply  # kept before any watch begins, as most programs do


def leaf(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


def only(watch):
    [found] = watch.functions.values()
    return found


def test_a_function_is_met_through_an_apply_that_was_kept_before():
    with FunctionWatch() as watch:
        square(leaf(3))
        Product.apply(leaf(2), leaf(2))
    assert [(f.cls, f.calls) for f in watch.functions.values()] == [(Square, 1), (Product, 1)]


def test_a_function_that_is_born_during_the_watch_is_met():
    with FunctionWatch() as watch:

        class Born(Square):
            pass

        Born.apply(leaf(3))
    assert only(watch).cls is Born


def test_nested_watches_see_the_same_and_the_last_one_cleans_up():
    with FunctionWatch() as outer:
        square(leaf(3))
        with FunctionWatch() as inner:
            square(leaf(3))
        square(leaf(3))
    assert (only(outer).calls, only(inner).calls) == (3, 1)
    assert "__init__" not in vars(BackwardCFunction)


def test_recording_and_watching_do_not_disturb_each_other():
    nbautograd.instrument(Product)
    try:
        with FunctionWatch() as watch:
            Product.apply(leaf(2), leaf(2)).sum().backward()
            nbautograd.instrument(Square)
            square(leaf(3))
            nbautograd.uninstrument(Square)
            square(leaf(3))
        assert {f.cls: f.calls for f in watch.functions.values()} == {Product: 1, Square: 2}
        assert [c.method for c in nbautograd.calls(Product)][-3:] == ["forward", "setup_context", "backward"]
    finally:
        nbautograd.uninstrument(Product)
    assert type(vars(Product)["forward"]) is staticmethod
    assert type(vars(Square)["forward"]) is staticmethod


def test_situations_are_told_apart():
    x = leaf(4, 4)
    with FunctionWatch() as watch:
        for given in [(x,), (x.double(),), (x.t(),), (x[0],), (x, "a"), (x, "b"), (x, 1), (x, 1.0), (x, True)]:
            square(*given)
            square(*given)
    assert [situation.calls for situation in only(watch).situations.values()] == [2] * 9


def test_the_three_smallest_calls_are_kept_as_they_were():
    with FunctionWatch() as watch:
        for size in (50, 40, 7, 6, 5, 60):
            x = leaf(size)
            square(x)
            x.data.zero_()
    [situation] = only(watch).situations.values()
    assert [call.elements for call in situation.copies] == [5, 6, 7]
    assert all(call.arguments[0].abs().sum() > 0 for call in situation.copies)
    assert situation.calls == 6


def test_the_room_for_copies_is_bounded(monkeypatch):
    monkeypatch.setattr(watching, "CLASS_BYTES", 100)
    with FunctionWatch() as watch:
        square(leaf(1000))
        square(leaf(20))
        square(leaf(20))
    [situation] = only(watch).situations.values()
    assert len(situation.copies) == 1
    assert only(watch).bytes == watch.bytes == 80
    assert "4" in str(situation.lacking)


LISTS = {
    "long": lambda: [*map(float, range(100_000))],
    "of lists": lambda: [[1.0] * 1000 for _ in range(100)],
    "deep": lambda: [[[[[[1.0]]]]]],
}


@pytest.mark.parametrize("make", LISTS.values(), ids=LISTS)
def test_what_a_list_holds_is_counted_and_tells_situations_apart_only_while_it_is_small(make):
    def measured(key):
        return sum(map(measured, key)) if isinstance(key, (tuple, frozenset)) else 1

    given = make()
    with FunctionWatch() as watch:
        square(leaf(3), given)
    assert watch.errors == {}
    [(key, situation)] = only(watch).situations.items()
    assert measured(key) < 100
    [call] = situation.copies
    assert watch.bytes == call.bytes > 8 * len(given)


def test_of_a_list_that_holds_itself_it_is_said_that_it_is_not_kept():
    given = [1.0]
    given += [given, given]
    with nbautograd.audit() as audit:
        square(leaf(3), given)
    report = audit.report()
    assert report.verdict == "unchecked"
    assert "`list`" in str(report)


def test_many_situations_are_counted_not_kept(monkeypatch):
    monkeypatch.setattr(watching, "SITUATIONS", 3)
    with FunctionWatch() as watch:
        for step in range(10):
            square(leaf(2), step)
    assert len(only(watch).situations) == 3
    assert only(watch).others == 7


# Raises in backward where it is told to.
Cubed = Fn.of("Cubed", "x, fails: return x**3",
    'grad: if ctx.fails: raise ValueError("told to"); '
    'return 3 * grad * ctx.saved_tensors[0] ** 2, None',
    setup_context="inputs, output: save(inputs[0]); ctx.fails = inputs[1]")  # fmt: skip


class CubedByVjp(Fn):
    """Takes ctx in forward, and has a vjp in place of a backward."""

    def forward(ctx, x, fails):
        ctx.save_for_backward(x)
        ctx.fails = fails
        return x**3

    vjp = Cubed.backward


@pytest.mark.parametrize("cls", [Cubed, CubedByVjp])
def test_how_the_programs_own_backwards_ended_is_counted_by_situation(cls):
    inside = vars(cls).copy()
    with FunctionWatch() as watch:
        for fails in (False, False, True):
            y = cls.apply(leaf(2), fails)
            with pytest.raises(ValueError, match="told to") if fails else contextlib.nullcontext():
                y.sum().backward()
        cls.apply(leaf(2), False)
    assert [(s.calls, s.backwards, s.raised) for s in only(watch).situations.values()] == [(3, 2, 0), (1, 0, 1)]
    assert vars(cls) == inside
    assert not watch.errors


@pytest.mark.parametrize("first", [True, False])
def test_backwards_of_a_function_that_is_recorded_as_well_are_counted(first):
    calls = len(nbautograd.calls())
    try:
        if first:
            nbautograd.instrument(Cubed)
        with FunctionWatch() as watch:
            nbautograd.instrument(Cubed)
            Cubed.apply(leaf(2), False).sum().backward()
    finally:
        nbautograd.uninstrument(Cubed)
    assert [s.backwards for s in only(watch).situations.values()] == [1]
    assert [call.method for call in nbautograd.calls()[calls:]] == ["forward", "setup_context", "backward"]


def test_no_mode_is_entered_for_a_copy_that_is_on_already(monkeypatch):
    """An interrupt while ``inference_mode(False)`` is entered left gradients off when torch had put them on again."""

    def entered(*_):
        raise AssertionError("a mode was entered")

    x = torch.randn(3, requires_grad=True)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "inference_mode", entered)
        patch.setattr(torch, "no_grad", entered)
        with FunctionWatch() as watch:
            Square.apply(x)
    assert watch.errors == {}
    (situation,) = watch.functions[Square].situations.values()
    assert torch.equal(situation.copies[0].arguments[0], x)


def test_inside_torch_func_it_is_known_which_arguments_are_differentiated():
    y = torch.randn(3)
    with FunctionWatch() as watch:
        torch.func.grad(lambda x: Product.apply(x, y).sum())(torch.randn(3))
    [situation] = only(watch).situations.values()
    assert [x.requires_grad for x in situation.copies[0].arguments] == [True, False]


def test_a_check_is_not_watched():
    with FunctionWatch() as watch:
        nbautograd.gradcheck(Square, (leaf(2, dtype=torch.float64),))
    assert not watch.functions


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[::2],
        lambda x: x[:, ::3],
        lambda x: x[:1].expand(4, 6),
        lambda x: x.to(torch.complex64).conj(),
        lambda x: x.to(torch.bfloat16),
        lambda x: x.unsqueeze(0).unsqueeze(0).to(memory_format=torch.channels_last),
        lambda x: x[:0],
    ],
)
def test_a_copy_has_the_values_and_the_order_in_memory_of_the_original(change):
    x = change(torch.randn(4, 6))
    x.requires_grad_()
    with FunctionWatch() as watch:
        Square.apply(x)
    [situation] = only(watch).situations.values()
    [kept] = situation.copies[0].arguments
    assert torch.equal(kept, x)
    assert (kept.requires_grad, kept.is_leaf, kept.dtype) == (True, True, x.dtype)
    assert kept.is_contiguous() == x.is_contiguous()
    assert [s == 0 for s in kept.stride()] == [s == 0 for s in x.stride()] or x.is_conj() or not x.numel()
    assert kept.untyped_storage().nbytes() <= 2 * x.untyped_storage().nbytes() + 64


@pytest.mark.parametrize("make", [pytest.param(FunctionWatch, marks=pytest.mark.nightly), nbautograd.audit])
@pytest.mark.parametrize("kept", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_an_interrupt_at_any_step_of_a_watch_leaves_nothing_behind(make, kept, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    classes = [Square, Product, BackwardCFunction]
    before = [dict(vars(cls)) for cls in classes]
    x, held = leaf(3), []

    def block():
        watch = make()
        if kept:
            held.append(watch)
        with watch:
            square(x)
            Product.apply(x, x)

    def left():
        return [vars(cls) != entries for cls, entries in zip(classes, before, strict=True)], watching._hook.watches

    nothing = ([False] * 3, ())
    reached, again = 0, []  # an interrupt within the end of a watch that an interrupt began
    files = {watching.__file__, nbautograd.inspection.audit.__file__}
    steps = steps_of(block, files)
    assert steps > 50
    for at in range(1, steps + 1):
        caught = None
        try:
            steps_of(block, files, at)
        except KeyboardInterrupt as error:  # not where the statement's last reference goes: there Python itself catches
            caught = error
        if left() != nothing:
            again.append(at)
            block()
        assert left() == nothing, at
        reached += caught is not None  # its traceback holds all frames meanwhile
    assert again == []
    assert reached > 0.8 * steps


def test_a_watch_that_no_statement_holds_goes_on_until_it_is_ended():
    audit = nbautograd.audit()
    audit.__enter__()
    assert callable(audit.__exit__)
    with FunctionWatch():
        square(leaf(3))
    assert audit.watching
    square(leaf(3))
    audit.__exit__(None, None, None)
    assert not audit.watching
    assert only(audit.watch).calls == 2
    with contextlib.ExitStack() as stack:
        stack.enter_context(audit)
        square(leaf(3))
    assert only(audit.watch).calls == 3
    assert "__init__" not in vars(BackwardCFunction)


def test_the_child_of_a_fork_watches_nothing_and_waits_for_nobody():
    held, over = threading.Event(), threading.Event()

    def hold():
        with watching._hook._lock:
            held.set()
            over.wait(60)

    with FunctionWatch() as watch:
        square(leaf(3))
        thread = threading.Thread(target=hold)
        thread.start()
        assert held.wait(20)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            os._exit(("__init__" in vars(BackwardCFunction)) + 2 * (type(vars(Square)["forward"]) is not staticmethod))
        over.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert watch.unseen.processes == 1


def test_tensors_are_made_of_what_was_read_after_the_program(monkeypatch):
    """No operation runs in the program: not even one that makes room for a copy."""
    from nbautograd.core.recording.argument_copies import KeptTensor

    with monkeypatch.context() as patch:
        patch.setattr(KeptTensor, "tensor", lambda _: 1 / 0)
        with FunctionWatch() as watch:
            Product.apply(leaf(3), leaf(3))
    [situation] = only(watch).situations.values()
    first, _ = situation.copies[0].arguments
    assert first is situation.copies[0].arguments[0]


@pytest.mark.parametrize(
    "change", [lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[:0], lambda a: a[1, 2]]
)
def test_arrays_are_kept_as_they_were(change):
    array = change(np.arange(24.0).reshape(4, 6))
    with FunctionWatch() as watch:
        square(leaf(2), array)
        expected = np.array(array)
        if isinstance(array, np.ndarray):
            array[...] = -1
    [situation] = only(watch).situations.values()
    assert np.array_equal(situation.copies[0].arguments[1], expected)


def test_no_code_of_an_argument_runs():
    class Number(int):
        def __hash__(self):
            raise SystemExit("hashed")

        __eq__ = __repr__ = __hash__

    class Array(np.ndarray):
        def __array_finalize__(self, other):
            if other is not None and type(other) is Array:
                raise SystemExit("copied")

    with FunctionWatch() as watch:
        square(leaf(2), Number(3))
        square(leaf(2), np.zeros(3).view(Array))
    assert only(watch).calls == 2
    assert watch.errors == {}


def test_a_mistake_of_ours_does_not_reach_the_program(monkeypatch):
    monkeypatch.setattr(watching, "_kind", lambda *_: 1 / 0)
    with FunctionWatch() as watch:
        assert square(leaf(3)).shape == (3,)
    assert list(watch.errors.values()) == [1]
