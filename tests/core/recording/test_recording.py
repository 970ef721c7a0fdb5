"""What a recorded call tells."""

from __future__ import annotations

import contextlib
import gc
import json
import pickle
import sys
import threading
import weakref

import pytest
import recorded_functions as functions
import torch
from fn import Fn
from interrupts import steps_of

from nbautograd.core.recording import api as log
from nbautograd.core.recording import spy
from nbautograd.core.recording.call import CallLog
from nbautograd.core.recording.snapshot import elements
from nbautograd.errors import CallError, InputError


def leaf(*shape):
    return torch.ones(*shape, dtype=torch.float64, requires_grad=True)


def linear(bias=True):
    inputs = (leaf(2, 3), leaf(3, 4), *((leaf(4),) if bias else ()))
    with log.recording(functions.Linear) as calls:
        functions.Linear.apply(*inputs).sum().backward()
    return calls


def test_ctx_with_the_names_of_the_source():
    forward, backward = linear()
    assert [v.name for v in forward.ctx.saved_tensors] == ["input", "weight", "bias"]
    assert [v.same_as for v in forward.ctx.saved_tensors] == ["input 0", "input 1", "input 2"]
    assert forward.ctx.needs_input_grad == (True, True, True)
    assert forward.ctx.bytes == 8 * (6 + 12 + 4)
    assert backward.ctx.saved_tensors == forward.ctx.saved_tensors


def test_create_graph_and_double_backward():
    class Square(Fn):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return Double.apply(g * x)

    Double = Fn.of("Double", "x: return x * 2", "g: return g * 2")
    x = leaf(2)
    with log.recording(Square, Double) as calls:
        (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
        g.sum().backward()
    outer = next(c for c in calls if c.function == "Square" and c.method == "backward")
    inner = next(c for c in calls if c.function == "Double" and c.method == "forward")
    assert outer.create_graph
    assert inner.parent == outer.index
    assert not calls[-1].create_graph


def test_freed_after_the_first_backward():
    x = leaf(2, 3)
    with log.recording(functions.Kept) as calls:
        out = functions.Kept.apply(x).sum()
        out.backward(retain_graph=True)
        out.backward()
        out2 = functions.Kept.apply(x).sum()
        out2.backward()
    assert [c.ctx.freed for c in calls if c.method == "backward"] == [False, False, False]
    assert [c.forward for c in calls if c.method == "backward"] == [calls[0].index, calls[0].index, calls[3].index]


def test_exceptions():
    with log.recording(functions.Linear) as calls, pytest.raises(RuntimeError):
        functions.Linear.apply(leaf(2, 3), leaf(2, 3))
    assert calls[0].exception.startswith("RuntimeError: ")
    assert calls[0].outputs == ()


def test_func_levels():
    with log.recording(functions.Cube) as calls:
        torch.func.vmap(torch.func.grad(lambda x: functions.Cube.apply(x)[0].sum()))(torch.ones(2, 3))
    said = [v.tensor.reason.message_id for c in calls for v in c.inputs if v.tensor and v.tensor.reason]
    assert "recording.missing.vmap" in said
    assert all(c.forward is not None for c in calls if c.method == "backward")
    assert not log.problems()


@pytest.mark.parametrize("levels", [1, 2])
def test_each_setup_context_under_transforms_is_recorded_and_its_backward_linked(levels):
    """PyTorch runs setup_context for its own ctx, then torch.func in Python for that of each level."""
    contexts = []

    class Doubled(Fn):
        def forward(x):
            return x * x

        def setup_context(ctx, inputs, output):
            contexts.append(type(ctx).__name__)
            ctx.save_for_backward(*inputs)

        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    derivative = Doubled.apply
    for _ in range(levels):
        derivative = torch.func.grad(derivative)
    with log.recording(Doubled) as calls:
        derivative(torch.tensor(3.0))
        Doubled.apply(leaf(2)).sum().backward()
    forwards = [call.index for call in calls if call.method == "forward"]
    assert len(forwards) == 2
    set_up = [call.forward for call in calls if call.method == "setup_context"]
    assert len(set_up) == len(contexts)
    assert set_up == [forwards[0]] * (levels + 1) + [forwards[1]]
    run = [call.forward for call in calls if call.method == "backward"]
    assert run == [forwards[0]] * (len(run) - 1) + [forwards[1]]
    assert len(run) >= 2


def test_the_log_is_read_during_and_after():
    with log.recording(functions.Kept) as calls:
        functions.Kept.apply(leaf(2))
        assert len(calls) == 1
        functions.Kept.apply(leaf(2))
        assert len(calls) == 2
    functions.Kept.apply(leaf(2))
    assert len(calls) == 2
    assert len(calls[1:]) == 1


def test_the_log_is_pickled_as_a_plain_one():
    calls = linear()
    copied = pickle.loads(pickle.dumps(calls))
    assert type(copied) is CallLog
    assert copied[0].inputs[0].tensor == calls[0].inputs[0].tensor
    json.dumps(calls.to_dict())
    assert calls.to_dict()["type"] == "CallLog"


def test_paused_and_cell():
    log.set_cell(12)
    try:
        with log.recording(functions.Kept) as calls:
            with log.paused():
                functions.Kept.apply(leaf(2))
            functions.Kept.apply(leaf(2))
    finally:
        log.set_cell(None)
    assert [c.cell for c in calls] == [12]


def test_open_calls_are_closed():
    Stuck = Fn.of("Stuck", "x: log.clear_open_calls(); return x * 2", "g: return g")
    with log.recording(Stuck) as calls:
        Stuck.apply(leaf(2))
    assert not log.local.state.stack
    assert len(calls) == 1


def test_instrument_twice_and_as_a_decorator():
    @log.instrument
    class Mine(Fn):
        def forward(ctx, x):
            return x * 2

    entry = vars(Mine)["forward"]
    assert log.instrument(Mine) is Mine
    assert vars(Mine)["forward"] is entry
    assert Mine in log.instrumented()
    log.uninstrument(Mine)
    log.uninstrument(Mine)
    assert type(vars(Mine)["forward"]) is staticmethod


def test_recording_leaves_an_instrumented_class_instrumented():
    log.instrument(functions.Kept)
    with log.recording(functions.Kept):
        pass
    assert functions.Kept in log.instrumented()
    log.uninstrument(functions.Kept)


def test_parent_and_child_both_instrumented():
    class Child(functions.Kept):
        pass

    log.instrument(functions.Kept)
    log.instrument(Child)
    spied = vars(functions.Kept)["forward"]
    log.uninstrument(functions.Kept)
    assert vars(functions.Kept)["forward"] is spied  # the child still needs it
    with log.recording(Child) as calls:
        Child.apply(leaf(2))
        functions.Kept.apply(leaf(2))
    assert [c.function for c in calls] == ["Child"]
    log.uninstrument(Child)
    assert type(vars(functions.Kept)["forward"]) is staticmethod


def test_what_cannot_be_hooked_is_said_and_runs():
    log.instrument(functions.Strange)
    try:
        assert any("Strange.jvp" in str(sentence) for sentence in log.problems())
        assert functions.Strange.apply(leaf(2)).sum().item() == 4
    finally:
        log.uninstrument(functions.Strange)
    assert isinstance(vars(functions.Strange)["jvp"], property)
    assert not log.problems()


@pytest.mark.parametrize("wrong", [3, torch.mul, torch.nn.Linear, torch.autograd.Function])
def test_only_functions_can_be_recorded(wrong):
    for call in (log.instrument, log.uninstrument, log.calls):
        with pytest.raises(CallError, match=r"subclass of torch\.autograd\.Function"):
            call(wrong)


def test_unknown_level():
    with pytest.raises(InputError, match="no recording level 'loud'"), log.recording(functions.Kept, level="loud"):
        pass


@pytest.mark.slow
def test_calls_that_somebody_looked_at_stay_inside_the_budget(monkeypatch):
    import tracemalloc

    log.clear()
    monkeypatch.setattr(log._ring, "budget", 2**20)
    share = log._ring.budget // 8
    with log.recording(functions.Kept) as calls:
        for _ in range(75):
            functions.Kept.apply(leaf(64, 64)).sum().backward()
    records = calls.records
    oldest = calls[0]
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(2):
            assert sum(len(call.inputs) for call in calls) == len(records)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    decoded = [record for record in records if record.call is not None]
    assert 2 < len(decoded) < len(records)
    assert 0 < log._ring.used_by_decoded <= share
    assert grown < 1.2 * share
    assert calls[-1] is calls[-1]
    assert calls[0] is not oldest
    assert calls[0] == oldest
    assert log._ring.used + log._ring.used_by_decoded <= log._ring.budget
    log.clear()
    assert log._ring.used_by_decoded == 0


def test_many_calls_stay_in_the_ring_and_keep_nothing_alive():
    """At level summary; the ring is small here so that it is soon full, the garbage collector is off."""
    from nbautograd.core.recording.record import EVERY, CallRing

    ring = log._ring
    before, ring.budget = ring.budget, 2**18
    log.clear()
    gc.collect()
    gc.disable()
    try:
        with log.recording(functions.Linear) as calls:
            kept, w = [], leaf(8, 8)
            for _ in range(600):
                x = leaf(8, 8)
                out = functions.Linear.apply(x, w)
                kept += [weakref.ref(x), weakref.ref(out), weakref.ref(out.grad_fn)]
                out.sum().backward()
                del x, out
                most = EVERY * max(record.weight for record in ring.finished()[-2:])
                assert sum(record.weight for record in ring.finished()) <= ring.budget + most
            assert not any(ref() is not None for ref in kept)
            assert calls.dropped > 0
            assert len(ring.links) <= 2 * len(ring) + 1024
    finally:
        gc.enable()
        ring.budget = before
        log.clear()
    assert CallRing().budget == 16 * 2**20


def test_at_level_off_nothing_stands_in_the_way():
    as_written = dict(vars(functions.Linear))
    log.instrument(functions.Linear)
    try:
        with log.recording(functions.Linear) as calls:
            with log.recording(functions.Linear, functions.Linear, level="off") as none:
                assert {name: vars(functions.Linear)[name] for name in as_written} == as_written
                functions.Linear.apply(leaf(2, 3), leaf(3, 4))
            assert vars(functions.Linear)["forward"] is not as_written["forward"]
            functions.Linear.apply(leaf(2, 3), leaf(3, 4)).sum().backward()
        assert len(none) == 0
        assert [c.method for c in calls] == ["forward", "backward"]
        assert not log.problems()
    finally:
        log.uninstrument(functions.Linear)
    assert dict(vars(functions.Linear)) == as_written


def test_dropped_counts_the_calls_of_this_log_alone(monkeypatch):
    log.clear()
    monkeypatch.setattr(log._ring, "budget", 30_000)
    log.instrument(functions.Greedy)
    try:
        for _ in range(50):
            functions.Greedy.apply(leaf(300))
        with log.recording(functions.Kept) as calls:
            for _ in range(100):
                functions.Greedy.apply(leaf(300))
            functions.Kept.apply(leaf(2))
            log._ring.settle()
            assert (len(calls), calls.dropped) == (1, 0)
            for _ in range(40):
                functions.Greedy.apply(leaf(300))
                functions.Kept.apply(leaf(2))
        assert calls.dropped == 41 - len(calls) > 0
        assert log.calls(functions.Kept).dropped == calls.dropped
        assert log.calls(functions.Greedy).dropped == 190 - len(log.calls(functions.Greedy))
        assert log.calls().dropped == log._ring.dropped
        before = calls.dropped
        log.clear()
        assert calls.dropped == before
    finally:
        log.uninstrument(functions.Greedy)
        log.clear()


def test_level_values_keeps_all_elements_as_they_were():
    x = leaf(50, 40)
    strided, repeated = leaf(40, 50).detach().t().requires_grad_(), leaf(1, 40).detach().expand(50, 40)
    with log.recording(functions.Kept, level="values") as calls:
        functions.Kept.apply(x).sum().backward()
        functions.Kept.apply(strided).sum().backward()
        functions.Kept.apply(repeated)
        functions.Kept.apply(x.detach().float().half()[:, ::3])
    expected = [value.detach().clone() for value in (x, strided, repeated, x.half()[:, ::3])]
    with torch.no_grad():
        x.zero_()
    seen = [c.inputs[0].tensor for c in calls if c.method == "forward"]
    for summary, tensor in zip(seen, expected, strict=True):
        assert not summary.sampled
        assert summary.numel == tensor.numel()
        assert summary.norm == pytest.approx(tensor.double().norm().item(), rel=1e-12)
        assert summary.mean == pytest.approx(tensor.double().mean().item(), rel=1e-9)
    records = [record for record in calls.records if record.method == "forward"]
    for record, tensor in zip(records, expected, strict=True):
        assert (elements(record.inputs[0]) == tensor.numpy()).all()


def test_an_error_of_the_recorder_is_said_once_and_counted(monkeypatch):
    from nbautograd.core.recording import recorder

    def broken(*_):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(recorder, "snapshots", broken)
    with log.recording(functions.Kept) as calls:
        for _ in range(7):
            x = leaf(2)
            functions.Kept.apply(x).sum().backward()
            assert x.grad is not None
        said = [str(sentence) for sentence in calls.problems if "ours" in str(sentence)]
        assert len(said) == 1
        assert "14 times" in said[0]
        assert said == [str(sentence) for sentence in calls.problems if "ours" in str(sentence)]
    log._recorder.errors.clear()
    assert not log.problems()


def test_many_threads_that_switch_at_every_chance():
    """The ring takes calls from all of them, and no error of ours reaches any."""

    from nbautograd.core.recording.record import EVERY

    errors, before = [], sys.getswitchinterval()
    hook, threading.excepthook = threading.excepthook, errors.append
    sys.setswitchinterval(1e-6)
    try:
        with log.recording(functions.Kept) as calls:

            def work():
                for _ in range(4 * EVERY):
                    functions.Kept.apply(leaf(2)).sum().backward()

            workers = [threading.Thread(target=work) for _ in range(8)]
            [w.start() for w in workers]
            [w.join() for w in workers]
    finally:
        sys.setswitchinterval(before)
        threading.excepthook = hook
    assert errors == []
    assert len(calls) + calls.dropped == 8 * 4 * EVERY * 2
    assert calls.problems == ()


@pytest.mark.parametrize("other_is_recorded", [True, False])
def test_threads_that_share_an_inherited_setup_context_record_their_own(other_is_recorded, monkeypatch):
    """PyTorch looks setup_context up in one thread while another is between its forward and its setup_context."""
    from nbautograd.core.recording.spy import SetupSpy

    Base = Fn.of("Base", "x: return x * 2", "grad: return grad * 2", setup_context="inputs, output: save(*inputs)")
    Mine, Other = (type(name, (Base,), {}) for name in ("Mine", "Other"))
    recorded = [Mine, Other] if other_is_recorded else [Mine]
    both_between = threading.Barrier(2)
    hand_out = SetupSpy.hand_out

    def waiting(self, wrapper):
        hand_out(self, wrapper)
        both_between.wait()
        if not other_is_recorded:  # which runs all of its call meanwhile
            both_between.wait()

    def other():
        if other_is_recorded:
            Other.apply(leaf(2)).sum().backward()
            return
        both_between.wait()
        Other.apply(leaf(2)).sum().backward()
        both_between.wait()

    monkeypatch.setattr(SetupSpy, "hand_out", waiting)
    thread = threading.Thread(target=other)
    with log.recording(*recorded) as calls:
        thread.start()
        Mine.apply(leaf(2)).sum().backward()
        thread.join()
    monkeypatch.undo()
    seen = sorted((call.function, call.method) for call in calls)
    assert seen == sorted((cls.__name__, m) for cls in recorded for m in ("forward", "setup_context", "backward"))
    by_index = {call.index: call for call in calls}
    linked = [call for call in calls if call.method != "forward"]
    assert all(by_index[call.forward].function == call.function for call in linked)


def test_an_error_of_the_ring_stays_with_us(monkeypatch):
    def broken(self):
        raise RuntimeError("of the ring")

    with monkeypatch.context() as patch:
        patch.setattr(type(log._ring), "settle", broken)
        log.instrument(functions.Kept)
        try:
            for _ in range(40):
                functions.Kept.apply(leaf(2))
            assert any("of the ring" in str(problem) for problem in log.problems())
        finally:
            log.uninstrument(functions.Kept)
            log._recorder.errors.clear()


def test_calls_are_numbered_per_class_whatever_else_is_called():
    class First(functions.Kept):
        pass

    class Second(functions.Kept):
        pass

    with log.recording(First, Second) as calls:
        for cls in (First, Second, First):
            cls.apply(leaf(2)).sum().backward()
    numbered = [(call.function, call.method, call.number) for call in calls]
    assert [number for name, _, number in numbered if name == "First"] == [1, 2, 3, 4]
    assert [number for name, _, number in numbered if name == "Second"] == [1, 2]
    assert calls.names == {call.index: f"#{call.number}" for call in calls}


def test_a_setup_context_whose_lookup_runs_python_is_not_recorded():
    class Doubled(Fn):
        def forward(x):
            return x * 2

        @classmethod
        def setup_context(cls, ctx, inputs, output):
            ctx.factor = 2

        def backward(ctx, grad):
            return grad * ctx.factor

    original, x = vars(Doubled)["setup_context"], leaf(3)
    with log.recording(Doubled) as calls:
        assert vars(Doubled)["setup_context"] is original
        (gradient,) = torch.autograd.grad(Doubled.apply(x).sum(), x)
    assert torch.equal(gradient, torch.full_like(x, 2))
    assert [call.method for call in calls] == ["forward", "backward"]
    assert calls[1].forward == calls[0].index
    assert [problem.message_id for problem in calls.problems] == ["recording.not_static"]


@pytest.mark.parametrize("way", ["recording", "instrument"])
def test_an_interrupt_at_any_step_leaves_nothing_that_cannot_be_undone(way):
    before, files = dict(vars(functions.Linear)), {log.__file__, spy.__file__}

    def block():
        if way == "recording":
            with log.recording(functions.Linear):
                pass
        else:
            log.uninstrument(log.instrument(functions.Linear))

    steps = steps_of(block, files)
    assert steps > 50
    for at in range(1, steps + 1):
        with contextlib.suppress(KeyboardInterrupt):
            steps_of(block, files, at)
        if way == "instrument":
            log.uninstrument(functions.Linear)
        assert dict(vars(functions.Linear)) == before, at
        assert functions.Linear not in log.instrumented()
