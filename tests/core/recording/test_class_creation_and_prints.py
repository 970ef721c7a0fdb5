"""Classes met at birth; prints heard on the stream itself."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import sys
import threading
import weakref

import pytest
import torch
from fn import Fn
from torch.autograd.function import FunctionMeta

from nbautograd.core.recording import api as log
from nbautograd.core.recording.class_creation import ClassCreation


def define():
    return Fn.of("Born", 'x: print("forward"); return x * 2', "g: return g * 2")


def test_an_error_of_the_callback_is_kept():
    with ClassCreation(lambda cls: 1 / 0) as watch:
        cls = define()
    assert cls.apply(torch.ones(1)).item() == 2
    assert [type(e) for e in watch.errors] == [ZeroDivisionError]


def test_born_classes_can_be_instrumented():
    others = log.instrumented()
    with ClassCreation(log.instrument):
        cls = define()
    cls.apply(torch.ones(1))
    assert log.calls(cls)[-1].method == "forward"
    assert log.calls(cls)[-1].stdout == "forward\n"
    log.uninstrument(cls)
    assert log.instrumented() == others


class Picky:
    """A stream that takes no attributes."""

    __slots__ = ("text",)

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text


def heard(stream, monkeypatch):
    monkeypatch.setattr(sys, "stdout", stream)
    cls = define()
    with log.recording(cls) as calls:
        cls.apply(torch.ones(1))
    return calls[0].stdout


def test_streams(monkeypatch):
    stream = io.StringIO()
    assert heard(stream, monkeypatch) == "forward\n"
    assert stream.getvalue() == "forward\n"
    assert "write" not in vars(stream)


def test_a_stream_that_cannot_be_heard_still_prints(monkeypatch):
    stream = Picky()
    assert heard(stream, monkeypatch) == ""
    assert stream.text == "forward\n"


def test_no_stream_at_all(monkeypatch):
    assert heard(None, monkeypatch) == ""


def test_a_tee_of_somebody_else_on_top(monkeypatch):
    """As a notebook shell does per cell: it wraps write and puts back what it found."""
    stream, other = io.StringIO(), []
    monkeypatch.setattr(sys, "stdout", stream)
    cls = define()
    with log.recording(cls) as calls:
        before = stream.write
        stream.write = lambda text: other.append(text) or before(text)
        cls.apply(torch.ones(1))
        stream.write = before
    assert calls[0].stdout == "forward\n"
    assert "".join(other) == "forward\n"
    assert stream.getvalue() == "forward\n"


class Proxy:
    """A stream that stands for another one, as a web framework's does; unbound, it raises whatever is asked."""

    def __getattr__(self, name):
        raise RuntimeError("no stream here")


class Guarded(io.StringIO):
    def __setattr__(self, name, value):
        raise SystemExit(name)


class Computed:
    @property
    def write(self):
        raise SystemExit("looked at")


class Deleted:
    """Takes ``sys.stdout`` away altogether."""


@pytest.mark.parametrize("stream", [Proxy(), Guarded(), Computed(), Deleted()], ids=lambda one: type(one).__name__)
def test_an_odd_stream_never_raises_into_the_call(stream, monkeypatch):
    Silent = Fn.of("Silent", "x: return x * 2")
    if isinstance(stream, Deleted):
        monkeypatch.delattr(sys, "stdout")
    else:
        monkeypatch.setattr(sys, "stdout", stream)
    with log.recording(Silent) as calls:
        assert Silent.apply(torch.ones(1)).item() == 2
    assert len(calls) == 1
    assert log.problems() == ()


def test_a_stream_that_was_printed_to_is_let_go_of_and_flushed(tmp_path):
    """``redirect_stdout(open(...))`` around calls: each file was kept open, until there were too many."""
    cls, files = define(), []
    with log.recording(cls):
        for number in range(3):
            with contextlib.redirect_stdout(open(tmp_path / f"{number}", "w")) as file:
                files.append(weakref.ref(file))
                cls.apply(torch.ones(1))
            del file
            assert files[-1]() is None
            assert (tmp_path / f"{number}").read_text() == "forward\n"


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))])
def test_a_captured_stream_is_copied_and_pickled_as_bare(twin):
    stream, cls = io.StringIO(), define()
    with log.recording(cls), contextlib.redirect_stdout(stream):
        cls.apply(torch.ones(1))
        second = twin(stream)
        second.write("more")
        assert (stream.getvalue(), second.getvalue()) == ("forward\n", "forward\nmore")


def test_prints_of_calls_in_several_threads_are_their_own_and_nothing_stays_on_the_stream(monkeypatch):
    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print(threading.current_thread().name)
            meet.wait(20)
            print(threading.current_thread().name)
            return x * 2

    meet, stream = threading.Barrier(4), io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with log.recording(Named) as calls:
        threads = [threading.Thread(target=Named.apply, args=(torch.ones(1),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(call.stdout == f"{call.thread}\n" * 2 for call in calls)
    assert vars(stream) == {}


def test_prints_of_a_stream_that_forward_itself_puts_in_place_are_heard_by_the_calls_inside(monkeypatch):
    inner = define()

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print("outer")
            with contextlib.redirect_stdout(io.StringIO()):
                out = inner.apply(x)
            print("after")
            return out

    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with log.recording(Outer, inner) as calls:
        Outer.apply(torch.ones(1))
    assert [call.stdout for call in calls] == ["outer\nafter\n", "forward\n"]
    assert vars(sys.stdout) == {}


def test_an_interrupt_while_a_call_prints_leaves_nothing_on_the_stream(monkeypatch):
    class Stopped(io.StringIO):
        def write(self, text):
            raise KeyboardInterrupt

    stream, cls = Stopped(), define()
    monkeypatch.setattr(sys, "stdout", stream)
    with log.recording(cls), pytest.raises(KeyboardInterrupt) as caught:
        cls.apply(torch.ones(1))
    assert vars(stream) == {}
    assert [entry.name for entry in caught.traceback][-2:] == ["forward", "write"]


def test_start_and_stop_can_be_repeated():
    before = FunctionMeta.__init__
    watch = ClassCreation(lambda cls: None)
    watch.start().start()
    watch.stop()
    watch.stop()
    assert FunctionMeta.__init__ is before
