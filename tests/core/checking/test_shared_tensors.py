"""What forward and backward write outside their arguments neither leaks between evaluations nor outlives a check."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from fn import Fn
from own_mistakes import draw
from said import says
from torch import Tensor, nn

import nbautograd
from nbautograd.core.checking.outside_state import SharedTensors

D = torch.float64
MEAN = torch.zeros(3, dtype=D)
COUNT = torch.zeros((), dtype=torch.int64)
HISTORY = {"means": [torch.zeros(3, dtype=D)]}


CountsCalls = Fn.of("CountsCalls", "x: COUNT.add_(1); return x * 2", "g: return g * 2")
KeepsAMean = Fn.of("KeepsAMean", "x: MEAN.mul_(0.9).add_(x.mean(0), alpha=0.1); return x * 2", "g: return g * 2")
# The output reads the buffer after it was moved towards this very input.
SubtractsTheMean = Fn.of("SubtractsTheMean", "x: MEAN.mul_(0.9).add_(x.mean(0), alpha=0.1); return x - MEAN",
    "g: return g - 0.1 * g.mean(0)")  # fmt: skip
InADictionary = Fn.of("InADictionary", 'x: HISTORY["means"][0].copy_(x.mean(0)); return x + HISTORY["means"][0]',
    "g: return g + g.mean(0)")  # fmt: skip


class OnTheClass(Fn):
    largest = torch.zeros(3, dtype=D)

    def forward(ctx, x):
        OnTheClass.largest.copy_(torch.maximum(OnTheClass.largest, x.detach().abs().amax(0)))
        return x * 3

    def backward(ctx, g):
        return g * 3


# As a batch norm: the running mean is an argument, and neither output nor gradient depends on it.
Batch = Fn.of("Batch", "x, mean: mean.mul_(0.9).add_(x.mean(0), alpha=0.1); return x - x.mean(0)",
    "g: return g - g.mean(0), None")  # fmt: skip


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3, dtype=D))
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x):
        self.count += 1
        return Batch.apply(x, self.mean)


class Holder:
    def __init__(self) -> None:
        self.mean = torch.zeros(3, dtype=D)

    def call(self, x):
        self.mean.add_(x.detach().mean(0))
        return Batch.apply(x, self.mean)


def _enclosed():
    seen = torch.zeros(3, dtype=D)

    def call(x):
        seen.add_(x.detach().mean(0))
        return Batch.apply(x, seen)

    return call, lambda: [seen]


def _module():
    module = Normalised()
    return module, lambda: [module.mean, module.count]


def _of_torch():
    module = nn.BatchNorm1d(3).double()
    return module, lambda: [module.running_mean, module.running_var, module.num_batches_tracked]


def _holder():
    holder = Holder()
    return holder.call, lambda: [holder.mean]


WRITERS = {
    "a counter": lambda: (CountsCalls, lambda: [COUNT]),
    "a global": lambda: (KeepsAMean, lambda: [MEAN]),
    "a global that is read": lambda: (SubtractsTheMean, lambda: [MEAN]),
    "in a dictionary": lambda: (InADictionary, lambda: HISTORY["means"]),
    "on the class": lambda: (OnTheClass, lambda: [OnTheClass.largest]),
    "a module": _module,
    "a module of torch": _of_torch,
    "an object": _holder,
    "a closure": _enclosed,
}


@pytest.fixture(autouse=True)
def _clean():
    yield
    for tensor in (MEAN, COUNT, HISTORY["means"][0], OnTheClass.largest, WEIGHT):
        tensor.detach().zero_()
    WEIGHT.grad = None


@pytest.mark.parametrize("check", [nbautograd.gradcheck, lambda fn, x: nbautograd.inspect(fn, x).gradcheck])
@pytest.mark.parametrize("name", WRITERS)
def test_buffers_are_as_they_were_and_the_function_is_right(name, check) -> None:
    fn, buffers = WRITERS[name]()
    before = [(id(b), b.clone(), b.requires_grad) for b in buffers()]
    report = check(fn, draw(4, 3))
    assert report.verdict == "right", report.reason
    assert [f for f in report.findings if f.kind == "bug"] == []
    for (key, value, needs), now in zip(before, buffers(), strict=True):
        assert id(now) == key
        assert now.requires_grad == needs
        assert torch.equal(now, value)


ReadsTheBuffer = Fn.of("ReadsTheBuffer",
    "x, scale: scale.mul_(0.9).add_(x.detach().abs().mean(0), alpha=0.1); ctx.scale = scale; "
    "save(x); return x.sin()",
    "g: (x,) = saved; "
    "return g * x.cos() * (ctx.scale / ctx.scale.mean()) ** 0 + 0 * g * ctx.scale, None")  # fmt: skip
# Straight through the scale, which is read again in backward: by then another call may have moved it.
ScalesByTheBuffer = Fn.of("ScalesByTheBuffer", "x, scale: scale.add_(1.0); ctx.scale = scale; return x * scale",
    "g: return g * ctx.scale, None")  # fmt: skip
CopiesTheBuffer = ScalesByTheBuffer.of("CopiesTheBuffer",
    "x, scale: scale.add_(1.0); ctx.scale = scale.clone(); return x * scale")  # fmt: skip
# Torch itself refuses the backward where another call has moved it.
SavesTheBuffer = ScalesByTheBuffer.of("SavesTheBuffer", "x, scale: scale.add_(1.0); save(scale); return x * scale",
    "g: return g * ctx.saved_tensors[0], None")  # fmt: skip


def test_a_buffer_that_backward_reads_is_state_that_another_call_reaches() -> None:
    scale = torch.ones(3, dtype=D)
    found = nbautograd.gradcheck(ScalesByTheBuffer, (draw(4, 3), scale), order=1).findings
    assert [(f.code, f.params["name"]) for f in found if f.kind == "bug"] == [("shared_state", "scale")]
    assert "`scale`" in found[0].message
    assert scale.tolist() == [1, 1, 1]


# ---- .grad of tensors that backward fills in by itself ----

WEIGHT = draw(3, seed=3)


class AddsToGrad(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * WEIGHT

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gradient = (g * x).sum(0)
        if WEIGHT.grad is None:
            WEIGHT.grad = gradient.detach().clone()
        else:
            with torch.no_grad():
                WEIGHT.grad += gradient
        return g * WEIGHT


OfALayer = Fn.of("OfALayer", "x, layer: ctx.layer = layer; save(x); return x * layer.weight",
    "g: (x,) = saved; weight = ctx.layer.weight; gradient = (g * x).sum(0).detach(); "
    "weight.grad = gradient if weight.grad is None else weight.grad + gradient; "
    "return g * weight, None")  # fmt: skip


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=D))

    def forward(self, x):
        return OfALayer.apply(x, self)


def _checks():
    yield "gradcheck", lambda fn, *inputs: nbautograd.gradcheck(fn, inputs)
    yield "second order", lambda fn, *inputs: nbautograd.gradcheck(fn, inputs, order=2)
    yield "jacobian", lambda fn, *inputs: nbautograd.jacobian(fn, inputs)
    yield "inspect", lambda fn, *inputs: nbautograd.inspect(fn, *inputs)
    yield "compare", lambda fn, *inputs: nbautograd.compare(fn, lambda x, *_: x * 1.0, inputs)


@pytest.mark.parametrize(
    ("check", "grad"), [(check, grad) for name, check in _checks() for grad in (None, 5.0) if grad or name != "compare"]
)
def test_grad_is_the_users_after_a_check(check, grad) -> None:
    WEIGHT.grad = mine = None if grad is None else torch.full((3,), grad, dtype=D)
    check(AddsToGrad, draw(4, 3))
    assert WEIGHT.grad is mine
    assert mine is None or mine.tolist() == [grad] * 3
    layer = Layer()
    layer.weight.grad = mine = None if grad is None else torch.full((3,), grad, dtype=D)
    for fn, inputs in ((OfALayer, (draw(4, 3), layer)), (layer, (draw(4, 3),))):
        check(fn, *inputs)
        assert layer.weight.grad is mine
        assert mine is None or mine.tolist() == [grad] * 3


def test_it_is_a_risk_and_the_finding_says_that_it_was_put_back() -> None:
    report = nbautograd.gradcheck(AddsToGrad, draw(4, 3))
    assert report.verdict == "right"
    (found,) = [f for f in report.findings if f.code == "writes_grad"]
    assert (found.kind, found.params["name"]) == ("lint", "WEIGHT")
    assert "put `WEIGHT.grad` back" in found.message
    layer = Layer()
    names = [f.params["name"] for f in nbautograd.gradcheck(layer, draw(4, 3)).findings if f.code == "writes_grad"]
    assert names == ["weight"]


HELD = nn.Linear(3, 3, bias=False).double()
Delivers = Fn.of("Delivers",
    "x, held, factor: save(x); ctx.held, ctx.factor = held or HELD, factor; return ctx.held(x).relu() ** 2",
    "g: (x,) = saved; weight = ctx.held.weight; d = 2 * g * (x @ weight.t()).relu(); "
    "weight.grad += ctx.factor * d.t() @ x; return d @ weight, None, None")  # fmt: skip


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "right"), (2.0, "cannot tell")])
@pytest.mark.parametrize("way", ["argument", "global", "callable", "function", "expanded"])
def test_a_gradient_that_backward_adds_to_a_grad_counts(way, factor, verdict) -> None:
    held = HELD if way == "global" else nn.Linear(3, 3, bias=False).double()
    if way == "expanded":  # one element of memory, that nothing can be written into
        held.weight = nn.Parameter(torch.ones(1, 1, dtype=D).expand(3, 3))
    held.weight.grad = torch.ones_like(held.weight)
    before, pending = held.weight.detach().clone(), held(draw(4, 3)).exp().sum()

    def layer(x):
        return Delivers.apply(x, held, factor)

    if way in ("callable", "function"):
        report = nbautograd.gradcheck(layer if way == "callable" else lambda x: layer(x), draw(4, 3))
    else:
        report = nbautograd.gradcheck(Delivers, (draw(4, 3), None if way == "global" else held, factor))
    assert (report.verdict, says(report, "causes.writes_grad_unconfirmed.what")) == (verdict, factor != 1)
    assert torch.equal(held.weight, before)
    assert torch.equal(held.weight.grad, torch.ones_like(before))
    pending.backward()  # the graph of the program's own may have saved the weight


# under vmap it leaves a tensor that cannot be read afterwards
Collects = Fn.of("Collects", "x, layer: save(x); ctx.weight = layer.weight; return (x @ ctx.weight).tanh()",
    "g: (x,) = saved; w = ctx.weight; g = g * (1 - (x @ w).tanh() ** 2); new = x.t() @ g; "
    "w.grad = new if w.grad is None else w.grad + new; return g @ w.t(), None")  # fmt: skip
Refuses = Fn.of("Refuses", "x, layer: save(x); ctx.weight = layer.weight; assert bool((ctx.weight == 1).all()); "
    "return x * 1", "g: (x,) = saved; ctx.weight.grad = (g * x).sum(0); return g, None")  # fmt: skip
TooMuch = Fn.of("TooMuch", "x, layer: save(x); ctx.weight = layer.weight; return x * ctx.weight.double()",
    "g: (x,) = saved; w = ctx.weight; new = 1.3 * (g * x).sum(0, True).float(); "
    "w.grad = new if w.grad is None else w.grad + new; return g * w.double(), None")  # fmt: skip
ForwardWrites = Fn.of("ForwardWrites", "x, layer: layer.weight.grad = x.detach().sum(0); return x * 1",
    "g: return g, None")  # fmt: skip
WRITTEN = [
    (Collects, nn.Linear(40, 40).double(), "right", True), (Refuses, Layer(), "cannot tell", True),
    (TooMuch, nn.Linear(4, 1), "cannot tell", True), (ForwardWrites, Layer(), "right", False)]  # fmt: skip


@pytest.mark.parametrize(("cls", "layer", "verdict", "told"), WRITTEN)
def test_who_writes_a_grad_and_that_it_cannot_be_confirmed(cls, layer, verdict, told) -> None:
    report = nbautograd.gradcheck(cls, (draw(3, layer.weight.shape[-1]), layer))
    assert (report.verdict, "writes_grad" in [f.code for f in report.findings]) == (verdict, told)
    assert layer.weight.grad is None


SEEN = set[float]()
Looks = Fn.of("Looks",
    "x, layer: save(x); ctx.weight = layer.weight; SEEN.add(float(ctx.weight[0])); return x * ctx.weight",
    "g: (x,) = saved; w = ctx.weight; new = (g * x).sum(0); w.grad = new if w.grad is None else w.grad + new; "
    "return g * w, None")  # fmt: skip


def test_other_threads_see_no_weight_that_moves() -> None:
    report = nbautograd.gradcheck(Looks, (draw(4, 3), Layer()))
    assert "causes.writes_grad" in [f.message_id for f in report.findings]
    assert {1.0} == SEEN


def test_a_backward_that_leaves_grad_alone_is_not_said_to_write_it() -> None:
    linear = nn.Linear(3, 2).double()
    linear.weight.grad = torch.ones_like(linear.weight)
    assert nbautograd.gradcheck(linear, draw(4, 3)).findings == ()


# ---- what backward writes on ctx: scratch space and caches are its own ----


Remembers = Fn.of("Remembers", "x: save(x); ctx.cache = {}; return x.exp()",
    'g: (x,) = saved; if "slope" not in ctx.cache: ctx.cache["slope"] = x.exp(); '
    'return g * ctx.cache["slope"]')  # fmt: skip
WritesScratch = Fn.of("WritesScratch", "x: save(x); ctx.scratch = torch.empty_like(x); return x.sin()",
    "g: (x,) = saved; torch.cos(x.detach(), out=ctx.scratch); return g * ctx.scratch")  # fmt: skip
SortsItsList = Fn.of("SortsItsList", "x: ctx.parts = [x.cos(), torch.ones_like(x)]; return x.sin()",
    "g: total = torch.ones_like(g); for part in ctx.parts: total = total * part; "
    "ctx.parts.reverse(); return g * total")  # fmt: skip
TimesItself = Fn.of("TimesItself", "x: ctx.times = []; return x * 2",
    "g: ctx.times.append(len(ctx.times)); return g * 2")  # fmt: skip
ReadsItsSet = Fn.of("ReadsItsSet", "x: ctx.powers = {1, 2}; save(x); return x + x**2",
    "g: (x,) = saved; return sum(g * n * x ** (n - 1) for n in ctx.powers)")  # fmt: skip
CollectsShapes = Fn.of("CollectsShapes", 'x: ctx.shapes = {"x": tuple(x.shape)}; return x.reshape(-1) * 1.0',
    'g: ctx.shapes["g"] = tuple(g.shape); return g.reshape(ctx.shapes["x"])')  # fmt: skip


class QueuesParts(Fn):
    def forward(ctx, *xs):
        ctx.sizes = [len(x) for x in xs]
        return torch.cat(xs)

    def backward(ctx, g):
        sizes = list(ctx.sizes)
        out = []
        while sizes:
            part, g = g[: sizes[0]], g[sizes.pop(0) :]
            out.append(part)
        return tuple(out)


# Changes it by rounding at most.
NormalisesItsCopy = Fn.of("NormalisesItsCopy",
    "x: ctx.direction = x.detach() / x.detach().norm(); save(x); return x.norm()",
    "g: ctx.direction /= ctx.direction.norm(); (x,) = saved; return g * x / x.norm()")  # fmt: skip


ALONE = (Remembers, WritesScratch, SortsItsList, TimesItself, ReadsItsSet, CollectsShapes, NormalisesItsCopy)
BUFFERED = (CopiesTheBuffer, SavesTheBuffer, ReadsTheBuffer, Batch)  # of which backward keeps a copy


@pytest.mark.parametrize("cls", [*ALONE, *BUFFERED])
def test_what_a_second_backward_does_not_feel_is_no_mistake(cls) -> None:
    inputs = (draw(4, low=0.5),) if cls in ALONE else (draw(4, 3), torch.ones(3, dtype=D))
    report = nbautograd.gradcheck(cls, inputs, order=1)
    assert report.verdict == "right"
    assert [f.code for f in report.findings if f.kind == "bug"] == []


class PopsParts(QueuesParts):
    @staticmethod
    def backward(ctx, g):
        out = []
        while ctx.sizes:
            part, g = g[: ctx.sizes[0]], g[ctx.sizes.pop(0) :]
            out.append(part)
        return tuple(out) or (None, None)


SumsScratch = WritesScratch.of("SumsScratch", "x: save(x); ctx.scratch = torch.zeros_like(x); return x.sin()",
    "g: (x,) = saved; ctx.scratch += x.detach().cos(); return g * ctx.scratch")  # fmt: skip


@pytest.mark.parametrize(
    ("cls", "inputs", "name"), [(PopsParts, (draw(2), draw(3)), "ctx.sizes"), (SumsScratch, (draw(4),), "ctx.scratch")]
)
def test_what_a_second_backward_does_feel_is_named(cls, inputs: tuple[Tensor, ...], name: str) -> None:
    found = nbautograd.gradcheck(cls, inputs, order=1).findings
    assert ("mutates_saved", name) in [(f.code, f.params.get("name")) for f in found]


class Noise:
    """Draws from a generator that is one of its attributes."""

    def __init__(self, generator):
        self.generator = generator

    def __call__(self, like):
        own = self.generator
        if isinstance(own, torch.Generator):
            return torch.randn(like.shape, generator=own, dtype=like.dtype)
        if isinstance(own, random.Random):
            return torch.tensor([own.gauss(0, 1) for _ in range(like.numel())], dtype=like.dtype).view(like.shape)
        return torch.as_tensor(own.normal(size=like.shape))


OWN_GENERATORS = {
    "torch": lambda: torch.Generator().manual_seed(5),
    "NumPy": lambda: np.random.default_rng(5),
    "older NumPy": lambda: np.random.RandomState(5),
    "Python": lambda: random.Random(5),
}


@pytest.mark.parametrize("kind", OWN_GENERATORS)
@pytest.mark.parametrize("held", ["given", "in a list", "in a closure"])
def test_a_generator_of_the_users_own_begins_each_forward_from_its_state(kind, held):
    generator, following = OWN_GENERATORS[kind](), OWN_GENERATORS[kind]()

    class Sampled(Fn):
        def forward(ctx, mean, log_scale, own):
            own = generator if held == "in a closure" else own
            e = Noise(own[0] if isinstance(own, list) else own)(mean)
            ctx.save_for_backward(e * log_scale.exp())
            return mean + e * log_scale.exp()

        def backward(ctx, g):
            (moved,) = ctx.saved_tensors
            return g, g * moved, None

    class WithoutItsScale(Sampled):
        @staticmethod
        def backward(ctx, g):
            return g, g, None

    inputs = (
        draw(3, 4),
        draw(3, 4, seed=1),
        {"given": generator, "in a list": [generator], "in a closure": None}[held],
    )
    assert nbautograd.gradcheck(Sampled, inputs).verdict == "right"
    assert nbautograd.gradcheck(WithoutItsScale, inputs).verdict == "wrong"
    x = torch.zeros(2, dtype=D)
    assert torch.equal(Noise(generator)(x), Noise(following)(x)), "a check used up numbers of the user's generator"


def test_a_generator_without_a_state_is_passed_over():
    Doubled = Fn.of("Doubled", "x, generator: return 2 * x", "g: return 2 * g, None")
    assert nbautograd.gradcheck(Doubled, (draw(3), random.SystemRandom())).verdict == "right"


def test_generators_that_are_not_put_back_are_noticed(monkeypatch):
    monkeypatch.setattr("nbautograd.core.checking.quiet.GENERATORS", ())

    Draws = Fn.of(
        "Draws",
        "x, generator: return x + torch.randn(x.shape, generator=generator, dtype=x.dtype)",
        "g: return g, None",
    )
    report = nbautograd.gradcheck(Draws, (draw(3), torch.Generator()))
    assert report.verdict == "cannot tell"
    assert [f.code for f in report.findings] == ["nondeterministic_forward"]


@pytest.mark.parametrize("before", [None, torch.ones(3)], ids=["none", "some"])
def test_of_two_checks_at_once_the_later_puts_back_what_the_earlier_found(before: Tensor | None) -> None:
    w, buffer = torch.ones(3, requires_grad=True), torch.zeros(3)
    w.grad = before
    named = [("w", w), ("buffer", buffer)]
    first = SharedTensors(named)
    w.grad = w * 2  # with a graph, as backward writes it in second order
    buffer.add_(1)
    second = SharedTensors(named)
    first.put_back()
    w.grad, _ = w * 3, buffer.add_(1)
    second.put_back()
    assert w.grad is before
    assert not buffer.any()
    w.grad = torch.zeros(3)
    third = SharedTensors(named)
    assert not third.changed_gradients()  # nothing of them is left
    third.put_back()
