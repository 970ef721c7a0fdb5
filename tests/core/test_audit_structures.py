"""Audited Functions that take modules, methods, closures and objects: each check reads copies of what these hold."""

from __future__ import annotations

import collections
import functools
import random
import threading
import types
import weakref

import numpy as np
import pytest
import torch
from fn import Fn
from said import says
from torch import nn

import nbautograd
from nbautograd.core.recording.argument_copies import NotKept, copied, is_structure

LONG = {"budget": 3600.0, "per_function": 3600.0}


class Recomputed(Fn):
    """Runs code without a graph and again in backward; the weights that the code reads stand beside it."""

    factor = 1.0

    @classmethod
    def run(cls, code, x):
        return code(x)

    def forward(ctx, code, x, *weights):
        ctx.code, ctx.weights = code, weights
        ctx.save_for_backward(x)
        with torch.no_grad():
            return code(x)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.code(x)
        gradients = torch.autograd.grad(y, (x, *ctx.weights), grad)
        return None, gradients[0], *(g * Recomputed.factor for g in gradients[1:])


# The same with half the gradient of the weights.
Halved = Recomputed.of("Halved", backward="grad: none, x, *weights = Recomputed.backward(ctx, grad); "
    "return none, x, *(g / 2 for g in weights)")  # fmt: skip


class Coupling:
    """An object that is no module."""

    def __init__(self, inner):
        self.inner, self.calls = inner, 0

    def __call__(self, x):
        self.calls += 1
        return self.inner(x) + x

    def method(self, x):
        return self(x)


def code_of(kind):
    layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    weights = tuple(layer.parameters())
    coupling = Coupling(layer)
    made = {
        "module": layer,
        "method": layer.forward,
        "closure": lambda x: layer(x) * 2,
        "partial": functools.partial(lambda scale, inner, x: inner(x) * scale, 2.0, layer),
        "object": coupling,
        "method of an object": coupling.method,
    }
    return made[kind], weights


KINDS = ("module", "method", "closure", "partial", "object", "method of an object")


@pytest.mark.parametrize("kind", KINDS)
def test_code_reads_the_weights_that_stand_beside_it(kind):
    code, weights = code_of(kind)
    before = [w.detach().clone() for w in weights]
    with nbautograd.audit(**LONG) as audit:
        for function in (Recomputed, Halved):
            function.apply(code, torch.randn(2, 3, requires_grad=True) * 1, *weights)
    report = audit.report()
    assert {f.name: f.verdict for f in report.functions} == {"Recomputed": "right", "Halved": "wrong"}
    assert says(report, "views.audit.other_grads")  # its backward fails for frozen weights
    assert says(report, "audit.wrong_with_objects")
    assert all(torch.equal(a, b) and a.grad is None for a, b in zip(before, weights, strict=True))


def test_weights_that_forward_does_not_read_make_no_verdict():
    layer = nn.Linear(3, 3)
    copies = [w.detach().clone().requires_grad_() for w in layer.parameters()]

    Elsewhere = Fn.of(
        "Elsewhere",
        "layer, x, weight, bias: ctx.layer = layer; save(x); return layer(x)",
        "grad: (x,) = saved; return None, grad @ ctx.layer.weight, grad.mT @ x, grad.sum(0)",
    )
    with nbautograd.audit(**LONG) as audit:
        Elsewhere.apply(layer, torch.randn(2, 3, requires_grad=True), *copies)
    report = audit.report()
    assert report.verdict == "cannot tell"
    assert "`weight`" in str(report)


def test_closures_that_are_made_anew_are_one_situation():
    layer = nn.Linear(3, 3)
    with nbautograd.audit(**LONG) as audit:
        for _ in range(4):
            Recomputed.apply(lambda x: layer(x), torch.randn(2, 3, requires_grad=True), *layer.parameters())
    [function] = audit.report().functions
    assert [s.calls for s in function.situations] == [4]
    assert "0x" not in str(function.situations[0].inputs[0])


def test_one_object_in_several_places_stays_one():
    layer = nn.Linear(2, 2)
    one, other, weight = copied((layer, [layer], layer.weight), torch.clone)
    assert one is other[0]
    assert one is not layer
    assert one.weight is weight
    assert one.weight.data_ptr() != layer.weight.data_ptr()
    assert list(copied((layer.state_dict().keys(),), torch.clone)[0]) == ["weight", "bias"]


def test_a_function_that_holds_itself_and_an_empty_cell_are_copied():
    scale = torch.ones(2)

    def recursive(n):
        return scale if n == 0 else recursive(n - 1)

    def later():
        return value, scale

    (made, other) = copied((recursive, later), torch.clone)
    assert made(2) is not scale
    assert torch.equal(made(2), scale)
    with pytest.raises(NameError):
        other()
    if scale is None:
        value = 0


def test_code_that_holds_nothing_stays_itself():
    sentinel = object()
    assert copied((torch.tanh, code_of, sentinel, len), torch.clone) == (torch.tanh, code_of, sentinel, len)
    assert not any(
        is_structure(item) for item in (torch.tanh, code_of, sentinel, 3, "x", torch.ones(1), [torch.ones(1)])
    )


def test_what_is_one_by_itself_is_handed_on():
    group, node = torch.distributed.ProcessGroup(0, 1), torch.ones(2, requires_grad=True).exp().grad_fn
    items = (group, node, np.add, [node])
    copies = copied(items, torch.clone)
    assert copies[:3] == items[:3]
    assert copies[3][0] is node
    report = nbautograd.audit(Consuming, torch.ones(2, requires_grad=True), (group, node))
    assert report.functions[0].verdict == "right"


class Slotted:
    __slots__ = ("x",)

    def __init__(self):
        self.x = torch.ones(1)


class Words(dict):
    """A container with code of its own."""


@pytest.mark.parametrize("make", [Slotted, Words, lambda: iter([1])])
def test_what_holds_more_than_its_attributes_is_not_copied(make):
    with pytest.raises(NotKept):
        copied((types.SimpleNamespace(inner=make()),), torch.clone)


class Counter:
    """Works once."""

    def __init__(self):
        self.calls = []

    def count(self):
        assert not self.calls
        self.calls.append(1)


DRAWS = {
    random.Random: lambda draw: draw.random(),
    np.random.RandomState: lambda draw: draw.rand(),
    np.random.Generator: lambda draw: draw.random(),
    torch.Generator: lambda draw: torch.rand((), generator=draw).item(),
}


def seeded(kind):
    return np.random.default_rng(3) if kind is np.random.Generator else kind()


class Consuming(Fn):
    """Takes what it uses out of its arguments, as a forward with a dict of options does."""

    scale = 1.0

    @staticmethod
    def use(item):
        kind = type(item)
        if kind is dict:
            return item.pop("inner")["scale"].pop()
        if kind in (list, collections.deque):
            return item.pop()
        if kind is collections.defaultdict:
            return item["never"] + item.pop("scale")
        if isinstance(item, weakref.ref):
            return Consuming.use(item())
        if kind is Counter:
            item.count()
        if kind in (type(threading.Lock()), type(threading.RLock())):
            assert item.acquire(blocking=False)
        if kind in DRAWS:
            return 1.5 + DRAWS[kind](item)
        return 2.0 if item is float else 1.0

    def forward(ctx, x, item):
        ctx.save_for_backward(x)
        ctx.scale = Consuming.use(item)
        return ctx.scale * x.exp()

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.scale * x.exp(), None


ConsumingOff = Consuming.of("ConsumingOff", backward="grad: return 3 * Consuming.backward(ctx, grad)[0], None")
counter = Counter()
CONSUMED = {
    "dict in a dict": lambda: {"inner": {"scale": [2.0]}},
    "list": lambda: [3.0],
    "list of tensors": lambda: [torch.tensor(3.0)],
    "deque": lambda: collections.deque([3.0], maxlen=2),
    "defaultdict": lambda: collections.defaultdict(float, scale=2.0),
    "type": lambda: float,
    "function": lambda: Consuming.use,
    "object": Counter,
    "weak reference": lambda: weakref.ref(counter),
    "lock": threading.Lock,
    "lock of a thread": threading.RLock,
    **{kind.__name__ + " " + kind.__module__: lambda kind=kind: seeded(kind) for kind in DRAWS},
}


@pytest.mark.parametrize("kind", CONSUMED)
def test_each_call_gets_its_arguments_anew(kind):
    counter.calls.clear()
    with nbautograd.audit(**LONG) as audit:
        for function in (Consuming, ConsumingOff):
            counter.calls.clear()
            function.apply(torch.randn(3, requires_grad=True), CONSUMED[kind]())
    report = audit.report()
    assert {f.name: f.verdict for f in report.functions} == {"Consuming": "right", "ConsumingOff": "wrong"}
    assert report.functions[0].situations[0].cause.code in ("missing_factor", "constant_factor")
    assert counter.calls in ([], [1])


def test_containers_are_anew_in_a_check_of_one_function_too():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    options = {"inner": {"scale": [2.0]}}
    assert nbautograd.gradcheck(Consuming, (x, options)).verdict == "right"
    assert nbautograd.gradcheck(lambda x, item: ConsumingOff.apply(x, item), (x, options)).verdict == "wrong"
    assert options == {"inner": {"scale": [2.0]}}


def test_a_weak_reference_to_what_is_gone_stays_one():
    gone = weakref.ref(Counter())
    assert copied((gone,), torch.clone) == (gone,)


def test_a_backward_that_refuses_grad_is_no_wrong_one():
    class OnlyBackward(Recomputed):
        def backward(ctx, grad):
            if not torch.autograd._is_checkpoint_valid():
                raise RuntimeError("use .backward()")
            return Recomputed.backward(ctx, grad)

    layer = nn.Linear(3, 3)
    with nbautograd.audit(**LONG) as audit:
        OnlyBackward.apply(layer, torch.randn(2, 3, requires_grad=True), *layer.parameters()).sum().backward()
    report = audit.report()
    assert report.verdict == "cannot tell"
    assert says(report, "checking.only_backward.what")


FREED = Fn.of("Freed", "x: ctx.y = x.exp(); return ctx.y.clone()", "grad: y, ctx.y = ctx.y, None; return grad * y")
OVERWRITTEN = Fn.of("Overwritten", "x: y = x.exp(); save(y); return y.clone()", "grad: y, = saved; return y.mul_(grad)")


@pytest.mark.parametrize("shape", [(3,), (32, 128)], ids=["entry by entry", "along directions"])
@pytest.mark.parametrize("function", [FREED, OVERWRITTEN])
def test_a_backward_that_runs_once_for_each_call_is_no_wrong_one(function, shape):
    with nbautograd.audit(**LONG) as audit:
        function.apply(torch.randn(shape, requires_grad=True)).sum().backward()
    assert audit.report().verdict == "right"


class Scale:
    """Holds what was computed from an argument, whose copy is connected with nothing."""

    def __init__(self, log_scale):
        self.scale = log_scale.exp()

    def multiply(self, x):
        return x * self.scale


class Inverse(Fn):
    def forward(ctx, function, y, log_scale):
        ctx.function = function
        with torch.no_grad():
            x = y / function(torch.ones_like(y))
        ctx.save_for_backward(x, log_scale)
        return x

    def backward(ctx, grad):
        x, log_scale = ctx.saved_tensors
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = ctx.function(x)
        (slope,) = torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)
        return None, grad / slope, *torch.autograd.grad(y, log_scale, -grad / slope, retain_graph=True)


# Returns what the engine refuses, in the program as well.
Refused = Inverse.of("Refused", backward="grad: return None, grad.new_zeros(5), None")
RefusedComplex = Inverse.of("RefusedComplex", backward="grad: return None, grad * 1j, None")
Raising = Inverse.of("Raising", backward="grad: raise ValueError('in the program too')")


@pytest.mark.parametrize(
    ("function", "verdict"),
    [(Inverse, "cannot tell"), (Refused, "wrong"), (RefusedComplex, "wrong"), (Raising, "wrong")],
)
def test_an_error_that_only_copies_raise_is_no_wrong_gradient(function, verdict):
    log_scale = torch.randn(3, requires_grad=True)
    with nbautograd.audit(**LONG) as audit:
        x = function.apply(Scale(log_scale).multiply, torch.randn(3, requires_grad=True), log_scale)
        try:
            x.sum().backward()
        except (RuntimeError, ValueError):
            assert function is not Inverse
    [situation] = audit.report().functions[0].situations
    assert situation.verdict == verdict
    assert verdict == "wrong" or situation.reason.message_id == "audit.only_run_again"


@pytest.mark.parametrize(
    ("lost", "ends", "verdict"),
    [
        (lambda ctx: [][0], True, "cannot tell"),
        (lambda ctx: ctx.missing, True, "cannot tell"),
        (lambda ctx: missing, True, "cannot tell"),  # noqa: F821
        (lambda ctx: [][0], False, "wrong"),
    ],
)
def test_an_error_that_the_programs_own_backward_had_not_is_no_wrong_gradient(lost, ends, verdict):
    """Without objects: the backward needs what the program set up beside it, and has taken away since."""
    around = [1.0]

    class Around(Fn):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, grad):
            return grad * 2 if around else lost(ctx)

    with nbautograd.audit(**LONG) as audit:
        y = Around.apply(torch.randn(3, requires_grad=True))
        if ends:
            y.sum().backward()
        around.clear()
    [situation] = audit.report().functions[0].situations
    assert situation.verdict == verdict
    assert situation.message


# A parameter shift without its factor.
Shifted = Fn.of("Shifted", "x, code, shift: ctx.code, ctx.shift = code, shift; save(x); return code(x.detach()).sin()",
    "grad: (x,) = saved; "
    "return (ctx.code(x + ctx.shift).sin() - ctx.code(x - ctx.shift).sin()) * grad, None, None")  # fmt: skip


def test_a_function_that_takes_objects_is_not_called_inside_of_itself():
    with nbautograd.audit(**LONG) as audit:
        Shifted.apply(torch.randn(4, requires_grad=True), Coupling(torch.zeros_like), 1.5)
    [situation] = audit.report().functions[0].situations
    assert situation.verdict == "wrong"
    assert all(finding.code != "wrong_inside" for finding in situation.findings)
