"""Classes met at birth; prints heard on the stream itself."""

from __future__ import annotations

import io
import sys

import torch
from torch.autograd.function import FunctionMeta

from nbautograd.core.recording import api as log
from nbautograd.core.recording import prints
from nbautograd.core.recording.class_creation import ClassCreation


def define():
    class Born(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print("forward")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Born


def test_each_new_class_is_met_and_the_metaclass_restored():
    before, met = FunctionMeta.__init__, []
    with ClassCreation(met.append):
        first = define()
        second = define()
    define()
    assert met == [first, second]
    assert FunctionMeta.__init__ is before


def test_an_error_of_the_callback_is_kept():
    with ClassCreation(lambda cls: 1 / 0) as watch:
        cls = define()
    assert cls.apply(torch.ones(1)).item() == 2
    assert [type(e) for e in watch.errors] == [ZeroDivisionError]


def test_start_and_stop_can_be_repeated():
    before = FunctionMeta.__init__
    watch = ClassCreation(lambda cls: None)
    watch.start().start()
    watch.stop()
    watch.stop()
    assert FunctionMeta.__init__ is before


def test_born_classes_can_be_instrumented():
    with ClassCreation(log.instrument):
        cls = define()
    cls.apply(torch.ones(1))
    assert log.calls(cls)[-1].method == "forward"
    assert log.calls(cls)[-1].stdout == "forward\n"
    log.uninstrument(cls)
    assert log.instrumented() == []


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
    assert not prints.enabled
