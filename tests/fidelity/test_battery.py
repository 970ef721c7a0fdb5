"""The battery: an instrumented Function and the bare one must give the same, in everything a check looks at."""

from __future__ import annotations

import warnings

import fidelity_behaviour
import fidelity_functions as make
import fidelity_values
import pytest
import torch
from fidelity_values import leaf, run

from nbautograd.core.recording import api as log
from nbautograd.core.recording import spy
from nbautograd.core.recording.record import CallRing, InstrumentedFunction
from nbautograd.core.recording.recorder import Recorder

CHECKS = {**fidelity_values.CHECKS, **fidelity_behaviour.CHECKS}


def bare(cls):
    return cls


@pytest.fixture
def wrap():
    """Instrument what a check asks for; all of it is undone after."""
    done = []

    def instrument(cls):
        before = dict(vars(cls))
        log.instrument(cls)
        done.append((cls, before))
        return cls

    yield instrument
    errors = dict(log._recorder.errors)
    log._recorder.errors.clear()
    for cls, _ in done:
        log.uninstrument(cls)
    assert errors == {}


@pytest.mark.parametrize("name", CHECKS)
def test_same_as_bare(name, request):
    check = CHECKS[name]
    expected = check(bare)
    assert check(bare) == expected, "the check itself cannot be repeated"
    if name == "class_freed":  # the fixture's list would hold the class
        assert check(log.instrument) == expected
        return
    assert check(request.getfixturevalue("wrap")) == expected


@pytest.mark.parametrize("factory", [make.mul, make.cube, make.class_methods, make.plain_methods])
def test_restored_object_by_object(factory):
    cls = factory()
    before, hidden = dict(vars(cls)), dict(vars(cls._backward_cls))
    spy.install(cls, InstrumentedFunction(cls), Recorder(CallRing()))
    spy.remove(cls)
    assert list(vars(cls)) == list(before)
    assert all(vars(cls)[name] is entry for name, entry in before.items())
    assert dict(vars(cls._backward_cls)) == hidden


@pytest.mark.parametrize("factory", [make.mul, make.cube, make.once, make.class_methods])
def test_the_calls_of_a_step_are_recorded_and_linked(factory):
    """The calls of a training step, linked as they should be; a class that is not recorded leaves none."""
    cls, other = factory(), factory()
    ring = CallRing()
    spy.install(cls, InstrumentedFunction(cls), Recorder(ring))
    try:
        for function in (cls, other):
            out = function.apply(leaf(3), leaf(3, seed=1)) if factory is make.mul else function.apply(leaf(3))
            (out[0] if isinstance(out, tuple) else out).sum().backward()
    finally:
        spy.remove(cls)
    records = ring.finished()
    assert [r.method for r in records] == ["forward"] + ["setup_context"] * (factory is make.cube) + ["backward"]
    assert {r.forward for r in records[1:]} == {records[0].index}
    assert records[0].caller is not None
    assert records[0].caller[0].co_name == "test_the_calls_of_a_step_are_recorded_and_linked"


def test_a_check_can_fail():
    """The guard trips: a wrapper that rounds is told apart from the bare class."""
    cls = make.mul()
    forward = cls.forward
    cls.forward = staticmethod(lambda ctx, x, y, scale=1.0: forward(ctx, x, y, scale).float().double())
    assert run(cls, leaf(3), leaf(3, seed=1)) != run(make.mul(), leaf(3), leaf(3, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("fullgraph", [True, pytest.param(False, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("factory", [make.mul, make.keeping, make.once, make.cube])
def test_torch_compile_runs_the_same_and_says_so(factory, fullgraph, wrap):
    def train(cls):
        torch._dynamo.reset()
        x = leaf(3)

        def f(x):
            out = cls.apply(x, x.sin()) if factory is make.mul else cls.apply(x)
            return (out[0] if isinstance(out, tuple) else out) * 2

        try:
            out = torch.compile(f, backend="aot_eager", fullgraph=fullgraph)(x)
        except torch._dynamo.exc.Unsupported as error:
            return str(error).splitlines()[0]
        return fidelity_values.bits((out, torch.autograd.grad(out.sum(), x)))

    expected = train(factory())
    cls = wrap(factory())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert train(cls) == expected
    assert not [w for w in said if "nbautograd" in str(w.message) or "_data_address" in str(w.message)]
    assert any("torch.compile" in str(sentence) for sentence in log.problems())
