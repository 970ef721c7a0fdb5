"""Inputs keep their names where forward is a classmethod; tensors that are read past the arguments are seen."""

from __future__ import annotations

import functools

import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.autograd import Function

import nbautograd
from nbautograd.errors import InputError


class Scaled(Function):
    @classmethod
    def forward(cls, ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @classmethod
    def backward(cls, ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x


def test_names_are_those_of_forward_also_where_it_is_a_classmethod() -> None:
    report = nbautograd.gradcheck(Scaled, (draw(4), draw(4, seed=1)), order=1)
    assert (report.verdict, report.input_names) == ("right", ("x", "weight"))
    assert report.source.inputs == ("x", "weight")
    assert report.source.grad_outputs == ("grad_output",)


@pytest.mark.parametrize(("backward", "verdict", "codes"), [
    ("g: a, b = saved; return None, g * ctx.k * b, g * ctx.k * a", "right", []),
    ("g: a, b = saved; return None, g * ctx.k * b, g * ctx.k * b", "wrong", ["wrong_derivative"]),
])  # fmt: skip
def test_inputs_beside_an_argument_that_is_bound_are_the_others(backward, verdict, codes) -> None:
    times = Fn.of("Times", "k, a, b: save(a, b); ctx.k = k; return k * a * b", backward)
    report = nbautograd.gradcheck(functools.partial(times.apply, 2.0), (draw(4), draw(4, seed=1)), order=1)
    assert (report.verdict, report.input_names, [f.code for f in report.findings]) == (verdict, ("a", "b"), codes)
    assert report.blocks[0, 0].verdict == "match"


@pytest.mark.parametrize("call", [nbautograd.gradcheck, nbautograd.jacobian], ids=["gradcheck", "jacobian"])
def test_a_function_that_reads_its_inputs_only_from_outside_is_refused(call) -> None:
    module = torch.nn.Linear(3, 2).double()
    x = draw(4, 3).detach()
    with pytest.raises(InputError) as raised:
        call(lambda *_params: module(x), tuple(module.parameters()))
    assert raised.value.message_id == "checking.reads_inputs_outside"


def test_the_way_out_for_a_module_is_one() -> None:
    module = torch.nn.Linear(3, 2).double()
    names, params = zip(*module.named_parameters(), strict=True)
    x = draw(4, 3).detach()

    def fn(*given):
        return torch.func.functional_call(module, dict(zip(names, given, strict=True)), (x,))

    assert nbautograd.gradcheck(fn, params, order=1).verdict == "right"


def test_an_input_that_is_read_from_outside_too_is_said() -> None:
    x = draw(4)
    report = nbautograd.gradcheck(lambda a: Scaled.apply(a, x), (x,), order=1)
    assert report.verdict == "right"
    assert [f.code for f in report.findings] == ["input_read_outside"]
    assert nbautograd.gradcheck(lambda a: Scaled.apply(a, a), (x,), order=1).findings == ()


def test_a_method_is_no_name_from_outside() -> None:
    """The ``t`` of ``x.t()`` is not the tensor called t."""
    turned = Fn.of("Turned", "x, index: save(index); return x.t()[index]",
        "g: (index,) = saved; return torch.zeros(3, 4).to(g).index_add(0, index, g).t(), None")  # fmt: skip
    turned.forward.__globals__["t"] = index = torch.tensor([0, 2])
    assert nbautograd.gradcheck(turned, (draw(4, 3), index), order=1).findings == ()
