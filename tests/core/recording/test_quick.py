"""Calls that are written down as what differs from an earlier one read as those that are written down whole."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import Function

from nbautograd.core.recording import log, quick, quick_forward, short, unrolled
from nbautograd.core.torch_private import tensors as internals


class Combined(Function):
    @staticmethod
    def forward(ctx, x, y, scale):
        ctx.save_for_backward(x, None, y)
        ctx.scale = scale
        return x * y * (1.0 if scale is None else scale), x + y

    @staticmethod
    def backward(ctx, g, h):
        x, _, y = ctx.saved_tensors
        k = 1.0 if ctx.scale is None else ctx.scale
        return g * y * k + h, g * x * k + h, None


class SavesMore(Function):
    @staticmethod
    def forward(ctx, x):
        half = x / 2
        ctx.save_for_backward(half, x)
        return half * x

    @staticmethod
    def backward(ctx, g):
        half, x = ctx.saved_tensors
        return g * (half + x / 2)


class SetUp(Function):
    @staticmethod
    def forward(x, y, scale):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, y, _ = inputs
        ctx.save_for_backward(y, output, x)

    @staticmethod
    def backward(ctx, g):
        y, _, x = ctx.saved_tensors
        return g * y, g * x, None


class Prints(Function):
    @staticmethod
    def forward(ctx, x, loud):
        if loud:
            print("heard")
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


FUNCTIONS = (Combined, SavesMore, SetUp)
wrapping = pytest.mark.skipif(log.engine() == "in place", reason="only wrappers write short records")


def arguments(function, x, y, scale):
    return (x,) if function is SavesMore else (x, y, scale)


def run(function, program, level):
    """Run some calls and tell what was recorded of them; and how many records are short."""
    with log.recording(function, level=level) as calls:
        for x, y, scale, twice in program:
            out = function.apply(*arguments(function, x, y, scale))
            out = out if isinstance(out, tuple) else (out,)
            if any(o.requires_grad for o in out):
                wanted = [t for t in (x, y) if t.requires_grad]
                for _ in range(1 + twice):
                    torch.autograd.grad(out, wanted, [torch.ones_like(o) for o in out],
                                        retain_graph=True, allow_unused=True)  # fmt: skip
        shorts = sum(map(short.is_short, calls._packed()))
        told = [told_of(call) for call in calls]
    return told, shorts


def told_of(call):
    """A call without what no two runs have in common."""
    plain = {f.name: getattr(call, f.name) for f in dataclasses.fields(call)}
    for moving in ("seconds", "caller_line", "index", "forward", "first"):
        plain.pop(moving)
    return {name: repr(value) if name == "warnings" else value for name, value in plain.items()}


def whole(monkeypatch):
    """From here on every call is written down whole."""
    monkeypatch.setattr(quick, "pair", lambda writer: (writer.begin, writer.end))


SHAPES = [(), (1,), (3,), (2, 3), (40, 50)]


@st.composite
def programs(draw):
    """Calls that look alike, mixed with calls that do not."""
    torch.manual_seed(draw(st.integers(0, 99)))
    program = []
    for _ in range(draw(st.integers(2, 6))):
        shape = draw(st.sampled_from(SHAPES))
        dtype = draw(st.sampled_from([torch.float32, torch.float64]))
        x = torch.randn(shape, dtype=dtype, requires_grad=draw(st.booleans()))
        x = x * 1 if draw(st.booleans()) and x.requires_grad else x  # a node made it
        x = torch.nn.Parameter(x.detach()) if draw(st.integers(0, 4)) == 0 else x
        x = x.expand(4, *shape) if draw(st.integers(0, 4)) == 0 else x
        same = draw(st.integers(0, 4)) == 0
        y = x if same else torch.randn(shape, dtype=dtype, requires_grad=True)
        scale = draw(st.sampled_from([None, 2.0, 2, 3.0]))
        program += [(x, y, scale, draw(st.booleans()))] * draw(st.integers(1, 3))
    return program


@pytest.mark.parametrize("level", ["shapes", "summary"])
@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=12, deadline=None)
@given(program=programs())
def test_short_records_read_as_whole_ones(function, level, program):
    quickly, _ = run(function, program, level)
    with pytest.MonkeyPatch.context() as patch:
        whole(patch)
        slowly, shorts = run(function, program, level)
    assert shorts == 0
    assert quickly == slowly


@wrapping
@pytest.mark.parametrize("function", FUNCTIONS)
def test_calls_that_look_alike_are_short(function):
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    _, shorts = run(function, [(x, y, 2.0, False)] * 5, "summary")
    per_call = 3 if function is SetUp else 2
    assert shorts >= per_call * 3


def test_a_list_that_forward_fills_is_recorded_as_it_was_given():
    class Fills(Function):
        @staticmethod
        def forward(ctx, x, seen):
            if seen is not None:
                seen.append(1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x = torch.randn(3)
    with log.recording(Fills) as calls:
        for seen in (None, None, []):
            Fills.apply(x, seen)
        assert calls[2].inputs[1].repr == "[]"


@wrapping
def test_what_was_printed_is_kept_and_the_next_call_is_short_again(capsys):
    x = torch.randn(3, requires_grad=True)
    with log.recording(Prints) as calls:
        for loud in (False, False, True, False):
            Prints.apply(x, loud)
        assert [c.stdout for c in calls] == ["", "", "heard\n", ""]
        assert [short.is_short(p) for p in calls._packed()][1:] == [True, False, True]
    assert capsys.readouterr().out == "heard\n"


@wrapping
def test_versions_and_elements_are_those_of_each_call():
    x = torch.zeros(3, requires_grad=True)
    with log.recording(SavesMore) as calls:
        for _ in range(4):
            SavesMore.apply(x)
            with torch.no_grad():
                x.add_(1)
        seen = [c.inputs[0].tensor for c in calls]
        assert [short.is_short(p) for p in calls._packed()] == [False, True, True, True]
    assert [t.mean for t in seen] == [0.0, 1.0, 2.0, 3.0]
    assert [t.version for t in seen] == [0, 1, 2, 3]


@wrapping
def test_what_stays_the_same_is_kept_once():
    x = torch.randn(500, requires_grad=True)
    with log.recording(SavesMore) as calls:
        for _ in range(3):
            SavesMore.apply(x)
        one, two = (packed[short.TAKEN][2] for packed in calls._packed()[1:])
    assert one is two


def test_a_short_record_keeps_no_tensor_ctx_or_class_alive():
    class Mine(SavesMore):
        pass

    gc.collect()
    gc.disable()
    try:
        log.instrument(Mine)
        x = torch.randn(3, requires_grad=True)
        for _ in range(3):
            out = Mine.apply(x)
            torch.autograd.grad(out.sum(), x)
        kept = [weakref.ref(x), weakref.ref(out)]
        packed = log.calls(Mine)
        assert len(packed) == 6
        log.uninstrument(Mine)
        del x, out
        assert [one() for one in kept] == [None, None]
        gone = weakref.ref(Mine)
        del Mine
    finally:
        gc.enable()
    gc.collect()
    assert gone() is None


@wrapping
def test_an_error_while_a_short_record_is_made_stays_ours(monkeypatch):
    x = torch.randn(3, requires_grad=True)
    with log.recording(SavesMore) as calls:
        SavesMore.apply(x)
        monkeypatch.setattr(quick_forward, "beside_saved", lambda *_: 1 / 0)
        out = SavesMore.apply(x)
        assert torch.equal(out, x * x / 2)
        assert [bool(c.missing) for c in calls] == [False, True]
    assert any("division" in error for error in log._recorder.errors)
    log._recorder.errors.clear()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("guards", [True, False])
def test_a_traced_call_after_short_ones_leaves_the_trace_alone(guards, monkeypatch):
    if not guards:
        monkeypatch.setattr(internals, "_GUARDS", None)
    x = torch.randn(3)

    def traced():
        trace = torch.jit.trace(lambda t: SavesMore.apply(t) + 1, (x,), check_trace=False)
        return str(trace.graph)

    bare = traced()
    with log.recording(SavesMore) as calls:
        SavesMore.apply(x)
        SavesMore.apply(x)
        assert traced() == bare
    assert len(calls) == 2


@pytest.mark.parametrize("raises", [ValueError, KeyboardInterrupt])
def test_a_call_that_raises_after_short_ones_is_recorded_whole(raises):
    class Fragile(Function):
        @staticmethod
        def forward(ctx, x, fail):
            if fail:
                raise raises("no")
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x = torch.randn(3)
    with log.recording(Fragile) as calls:
        Fragile.apply(x, False)
        Fragile.apply(x, False)
        with pytest.raises(raises):
            Fragile.apply(x, True)
        Fragile.apply(x, False)
        last = calls[2]
    assert last.exception == f"{raises.__name__}: no"
    assert last.inputs[0].tensor.mean == pytest.approx(x.double().mean().item())
    assert [c.exception for c in calls][3] is None


OTHERS = {
    "shape": lambda x: x[:1].clone(),
    "strides": lambda x: x.t().contiguous().t(),
    "dtype": lambda x: x.double(),
    "requires grad": lambda x: x.clone().requires_grad_(),
    "Parameter": lambda x: torch.nn.Parameter(x),
    "lazily negated": lambda x: torch._neg_view(x),
    "meta": lambda x: x.to("meta"),
    "None": lambda x: None,
    "number": lambda x: 2.0,
}


@pytest.mark.parametrize("guards", [True, False])
@pytest.mark.parametrize("other", OTHERS)
def test_what_looks_different_is_told_apart(other, guards, monkeypatch):
    if not guards:  # a torch without Dynamo's guards
        monkeypatch.setattr(internals, "_GUARDS", None)
    x, y = torch.randn(3, 2), torch.randn(4)
    same = internals.same_as([x, y])
    assert same(x, y)
    assert same(torch.zeros(3, 2), torch.ones(4))
    assert not same(OTHERS[other](x), y)


def test_guards_that_do_not_tell_apart_are_not_used(monkeypatch):
    class Blind:
        def __init__(self, *tensors, **sizes):
            pass

        def check(self, *tensors):
            return True

    assert internals._tensor_guards() is not None
    with monkeypatch.context() as another:
        another.setattr(torch, "__version__", "2.12.1")  # where nobody has tried them
        assert internals._tensor_guards() is None
    monkeypatch.setattr(torch._C._dynamo.guards, "TensorGuards", Blind)
    assert internals._tensor_guards() is None


@given(st.lists(st.sampled_from(["tensor", "None", "plain"]), min_size=1, max_size=9), st.booleans())
def test_a_pattern_takes_what_it_was_made_of_and_nothing_else(pattern, copies):
    if "tensor" not in pattern:
        pattern = ["tensor", *pattern]
    made = {"tensor": lambda: torch.ones(2), "None": lambda: None, "plain": lambda: 1.5}
    values = [made[one]() for one in pattern]
    at = [i for i, one in enumerate(pattern) if one == "tensor"]
    same = internals.same_as([values[i] for i in at])
    make = unrolled.compiled(tuple(pattern), (), copies)
    fill = {"address": internals.memory, "join": b"".join, "copies": [internals.CHARS[8]] * len(at)} if copies else {}
    take = make("told", 1, same, [float] * pattern.count("plain"), **fill)
    told, size, data, *facts = take(*values)
    assert (told, size) == ("told", 1 + len(at) * 8 * copies)
    assert data == (b"\0\0\x80?" * 2 * len(at) if copies else None)
    assert facts == [0] * len(at) + [1.5] * pattern.count("plain")
    for i in range(len(pattern)):
        assert take(*values[:i], "else", *values[i + 1 :]) is None
    if len(at) > 1:
        values[at[-1]] = values[at[0]]
        assert take(*values) is None


@pytest.mark.slow
def test_a_hundred_thousand_calls_stay_inside_the_budget():
    x = torch.randn(300, requires_grad=True)
    log.clear()
    with log.recording(SavesMore) as calls:
        for i in range(50_000):
            if not i % 7:
                with torch.no_grad():
                    x.add_(1e-3)
            torch.autograd.grad(SavesMore.apply(x), x, torch.ones(300))
        log._ring.settle()
        assert log._ring.used <= log._ring.budget == 16 * 2**20
        assert len(calls) + calls.dropped == 100_000
        assert calls.dropped > 0
        ref = weakref.ref(x)
        del x
        assert ref() is None
    log.clear()
