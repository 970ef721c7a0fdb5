"""Calls of operations of torch.library are recorded as those of a Function with the same three methods."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

import nbautograd
from nbautograd.core.recording import api
from nbautograd.core.torch_private import library
from nbautograd.errors import CallError


def forward(x: Tensor, beta: float) -> Tensor:
    print("forward")
    y = torch.sigmoid(beta * x)
    y *= x
    return y


def setup_context(ctx, inputs, output):
    x, ctx.beta = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    s = torch.sigmoid(ctx.beta * x)
    grad_x = grad * (s + ctx.beta * x * s * (1 - s))
    return grad_x, None


class Swish(torch.autograd.Function):
    pass


Swish.forward, Swish.backward = staticmethod(forward), staticmethod(backward)
Swish.setup_context = staticmethod(setup_context)


def defined(name: str):
    op = torch.library.custom_op(f"nbautograd_recorded::{name}", forward, mutates_args=())
    op.register_fake(lambda x, beta: torch.empty_like(x))
    return op


@pytest.fixture
def swish(request):
    op = defined("swish")
    op.register_autograd(backward, setup_context=setup_context)
    nbautograd.instrument(op)
    nbautograd.instrument(Swish)
    api.clear()
    yield op
    nbautograd.uninstrument(op)
    nbautograd.uninstrument(Swish)


def x_of(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.double, requires_grad=True)


def test_lines_prints_ctx_and_gradients_are_the_users(swish):
    swish(x_of(0.5, -1.0), 2.0).sum().backward()
    first, _, last = nbautograd.calls(swish)
    assert (first.line, first.stdout) == (forward.__code__.co_firstlineno, "forward\n")
    assert [value.name for value in (*first.inputs, *first.outputs)] == ["x", "beta", "y"]
    assert ([value.name for value in last.ctx.saved_tensors], last.ctx.attributes["beta"].repr) == (["x"], "2.0")
    assert (first.ctx.needs_input_grad, last.line) == ((True, False), backward.__code__.co_firstlineno)
    assert [value.name for value in last.outputs][:1] == ["grad_x"]


def test_a_forward_without_grad_is_linked_to_nothing(swish):
    with torch.no_grad():
        swish(x_of(1.0), 2.0)
    swish(torch.ones(1, device="meta", requires_grad=True), 2.0).sum().backward()  # torch runs the fake forward
    swish(x_of(1.0), 3.0).sum().backward()
    calls = nbautograd.calls(swish)
    forwards = [call.index for call in calls if call.method == "forward"]
    assert len(forwards) == 2
    of = [(call.method, call.forward) for call in calls if call.method != "forward"]
    assert of == [
        ("setup_context", None),
        ("backward", None),
        ("setup_context", forwards[1]),
        ("backward", forwards[1]),
    ]


def test_a_backward_of_one_without_setup_context_knows_its_forward():
    thrice = torch.library.custom_op(
        "nbautograd_recorded::thrice", lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    thrice.register_autograd(lambda ctx, grad: grad * 3)
    nbautograd.instrument(thrice)
    a, b = thrice(x_of(1.0)), thrice(x_of(2.0))
    b.sum().backward()
    a.sum().backward()
    one, two, of_two, of_one = nbautograd.calls(thrice)
    assert (of_two.forward, of_one.forward) == (two.index, one.index)
    nbautograd.uninstrument(thrice)


def test_a_forward_that_returns_a_list_is_linked_to_its_setup_context_and_backward():
    schema = "(Tensor x) -> Tensor[]"
    parts = torch.library.custom_op(
        "nbautograd_recorded::parts", lambda x: [x * 2, x * 3], mutates_args=(), schema=schema
    )
    parts.register_autograd(
        lambda ctx, grads: grads[0] * 2 + grads[1] * 3, setup_context=lambda ctx, inputs, output: None
    )
    nbautograd.instrument(parts)
    sum(parts(x_of(1.0))).sum().backward()
    assert not api._recorder.errors
    first, *others = nbautograd.calls(parts)
    assert [value.name for value in others[1].inputs] == ["grads[0]", "grads[1]"]
    assert [(call.method, call.forward) for call in others] == [
        ("setup_context", first.index),
        ("backward", first.index),
    ]
    nbautograd.uninstrument(parts)


def scaled(x: Tensor, power: int = 1, *, by: float, plus: float = 3.0) -> Tensor:
    return x**power * by + plus


def keep(ctx, inputs, keyword_only_inputs, output):
    ctx.by = keyword_only_inputs["by"]


def test_keyword_only_arguments_are_among_the_inputs_of_forward_and_setup_context():
    op = torch.library.custom_op("nbautograd_recorded::scaled", scaled, mutates_args=())
    op.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=keep)
    nbautograd.instrument(op)
    op(x_of(1.0), by=2.0).sum().backward()  # torch leaves out what is the default, and fills it in for setup_context
    op(x_of(1.0), 1, plus=1.0, by=2.0).sum().backward()
    calls = nbautograd.calls(op)
    inputs = [[value.name for value in call.inputs] for call in calls if call.method != "backward"]
    filled = ["x", "power", "by", "plus", "output 0"]
    assert inputs == [["x", "by"], filled, ["x", "by", "plus"], filled]
    assert [value.repr for value in calls[4].inputs[1:4]] == ["1", "2.0", "1.0"]
    assert calls[4].inputs[4].same_as == "output 0"
    assert [str(value.name) for value in calls[2].outputs] == ["gradient of x", "gradient of power"]
    assert calls[1].ctx.needs_input_grad == (True, False)
    assert not [warning for call in calls for warning in call.warnings]
    assert not api._recorder.errors
    nbautograd.uninstrument(op)


FIRST = """
import sys, torch, nbautograd
from nbautograd.core.recording.operations import OperationForwardRecorder as Recorder
begin = Recorder.begin
def noting(self, *args):
    print("torch._dynamo" in sys.modules)
    return begin(self, *args)
Recorder.begin = noting
op = torch.library.custom_op("first::op", lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor")
op.register_autograd(lambda ctx, grad: grad * 3)
nbautograd.instrument(op)
print("torch._dynamo" in sys.modules)
op(torch.ones(2, requires_grad=True))
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.slow
def test_what_torch_imports_for_the_first_call_is_not_counted_as_the_users():
    ran = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    before, begun, after = ran.stdout.split()
    assert (before, begun) == ("False", after)


def test_what_is_registered_later_is_recorded():
    op = nbautograd.instrument(defined("later"))
    op(torch.ones(2), 2.0)
    with pytest.raises(CallError):  # no gradient, no Function
        nbautograd.calls(op)
    op.register_autograd(backward, setup_context=setup_context)
    op(x_of(1.0), 2.0).sum().backward()
    assert [call.method for call in nbautograd.calls(op)] == ["forward", "setup_context", "backward"]
    op.register_autograd(lambda ctx, grad: (grad * 7, None), setup_context=setup_context)
    op.register_kernel("cpu", lambda x, beta: x * 7)
    x = x_of(1.0)
    (gradient,) = torch.autograd.grad(op(x, 2.0).sum(), x)
    again = nbautograd.calls(op)
    assert [call.method for call in again][-3:] == ["forward", "setup_context", "backward"]
    assert (again[-3].outputs[0].tensor.values, gradient.item()) == ((7.0,), 7.0)
    nbautograd.uninstrument(op)
    assert not [cls for cls in api.instrumented() if cls.__name__ == "nbautograd_recorded::later"]


def test_the_vmap_rule_is_recorded(swish):
    swish.register_vmap(lambda info, in_dims, x, beta: (swish(x, beta), in_dims[0]))
    torch.func.vmap(swish, (0, None))(torch.ones(3), 2.0)
    assert [call.method for call in nbautograd.calls(swish)] == ["vmap", "forward"]


@pytest.mark.slow
def test_nothing_stays_of_what_a_later_registration_replaced(swish):
    swish(x_of(1.0), 2.0)
    swish.register_vmap(lambda info, in_dims, x, beta: (swish(x, beta), 0))  # and no call after it
    nbautograd.uninstrument(swish)
    assert not [cls for cls in api.instrumented() if cls.__name__ == "nbautograd_recorded::swish"]


def test_a_compiled_call_records_what_runs(swish):
    torch._dynamo.reset()
    fast = torch.compile(lambda x: swish(x, 2.0), backend="aot_eager", fullgraph=True)
    fast(x_of(1.0)).sum().backward()
    assert [call.method for call in nbautograd.calls(swish)] == ["forward"]
    assert nbautograd.calls(swish).problems[0].message_id == "recording.traced"
    assert not api._recorder.errors


def test_recording_for_a_while_and_level_off(swish):
    nbautograd.uninstrument(swish)
    kind = type(swish)
    with nbautograd.recording(swish, level="values") as log:
        swish(x_of(1.0), 2.0)
    swish(x_of(1.0), 2.0)
    assert len(log) == 2
    assert type(swish) is kind
    nbautograd.instrument(swish)
    with nbautograd.recording(swish, level="off") as log:
        swish(x_of(1.0), 2.0)
    assert len(log) == 0


def test_where_torch_keeps_its_functions_elsewhere_that_is_said():
    elsewhere = SimpleNamespace(_backward_fn=backward)
    assert not library.look_before(elsewhere, lambda method, original: None)
    assert type(elsewhere) is SimpleNamespace
    assert library.leave(elsewhere) is None


def test_one_of_define_and_register_autograd_cannot_be_recorded():
    with torch.library._scoped_library("nbautograd_defined", "FRAGMENT") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        torch.library.register_autograd("nbautograd_defined::twice", lambda ctx, grad: grad * 2, lib=lib)
        with pytest.raises(CallError):
            nbautograd.instrument(torch.ops.nbautograd_defined.twice)
