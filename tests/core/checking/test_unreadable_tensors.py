"""Tensors whose entries no check can move one by one get a sentence with a way out; never a traceback of ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fn import Fn
from own_mistakes import draw
from torch.masked import masked_tensor
from torch.testing._internal.two_tensor import TwoTensor

import nbautograd
from nbautograd.core.checking.prepared_inputs import CONTENTS
from nbautograd.errors import InputError

CALLS: dict[str, Callable[..., Any]] = {
    "gradcheck": nbautograd.gradcheck,
    "jacobian": nbautograd.jacobian,
    "inspect": lambda fn, inputs: nbautograd.inspect(fn, *inputs),
    "compare": lambda fn, inputs: nbautograd.compare(fn, fn, inputs),
}


Twice = Fn.of("Twice", "x: return x * 2", "g: return g * 2")


def plain() -> torch.Tensor:
    return draw(3, 3).detach()


def quantised() -> torch.Tensor:
    return torch.quantize_per_tensor(plain().float(), 0.1, 0, torch.quint8)


def jagged(x: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, 3]))


SAID = {"masked": "subclass", "chalf": "float8"}  # a kind -> the one whose sentence says it
INPUTS = {
    "nested": lambda: torch.nested.nested_tensor([draw(2).detach(), draw(3).detach()], requires_grad=True),
    "jagged": lambda: torch.nested.nested_tensor([draw(2).detach(), draw(3).detach()], layout=torch.jagged),
    "sparse": lambda: plain().to_sparse(),
    "subclass": lambda: TwoTensor(plain(), plain()),
    "masked": lambda: masked_tensor(plain(), plain() > 0),
    "mkldnn": lambda: plain().float().to_mkldnn(),
    "float8": lambda: plain().to(torch.float8_e4m3fn),
    "chalf": lambda: torch.complex(plain(), plain()).to(torch.complex32),
    "meta": lambda: plain().to("meta"),
}
OUTPUTS = {
    "nested": lambda y: torch.nested.as_nested_tensor([y]),
    "jagged": jagged,
    "sparse": lambda y: y.to_sparse(),
    "subclass": lambda y: TwoTensor(y, y),
    "mkldnn": lambda y: y.float().to_mkldnn(),
    "float8": lambda y: y.to(torch.float8_e5m2),
    "chalf": lambda y: torch.complex(y, y).to(torch.complex32),
    "meta": lambda y: y.to("meta"),
    "quantised": lambda y: torch.quantize_per_tensor(y.float(), 0.1, 0, torch.qint8),
}
UNMOVED = {
    "sparse": lambda: plain().to_sparse(),
    "csr": lambda: plain().to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([plain()]),
    "jagged": lambda: jagged(plain()),
    "quantised": quantised,
    "float8": lambda: plain().to(torch.float8_e4m3fn),
    "meta": lambda: plain().to("meta"),
    "mkldnn": lambda: plain().float().to_mkldnn(),
    "masked": lambda: masked_tensor(plain(), plain() > 0),
}


@pytest.fixture(autouse=True)
def _without_warnings_of_prototypes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", INPUTS)
def test_an_unreadable_input_gets_its_sentence(kind: str, call: Callable[..., Any]) -> None:
    with pytest.raises(InputError) as raised:
        call(Twice, (INPUTS[kind]().requires_grad_(),))
    assert raised.value.message_id == f"checking.{SAID.get(kind, kind)}"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", OUTPUTS)
def test_an_unreadable_output_gets_its_sentence(kind: str, call: Callable[..., Any]) -> None:
    with pytest.raises(InputError) as raised:
        call(lambda x: OUTPUTS[kind](Twice.apply(x)), (draw(3, 3),))
    said = "" if kind in CONTENTS else f"_{kind}"
    assert raised.value.message_id == f"checking.output{said}"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("kind", UNMOVED)
def test_an_unreadable_argument_that_needs_no_gradient_is_handed_on(kind: str, call: Callable[..., Any]) -> None:
    report = call(lambda x, _other: Twice.apply(x), (draw(3, 3), UNMOVED[kind]()))
    assert getattr(report, "verdict", "right") == "right"


def test_a_quantised_input_is_told_that_it_has_no_gradient() -> None:
    with pytest.raises(InputError) as raised:
        nbautograd.gradcheck(Twice, (quantised(),))
    assert raised.value.message_id == "checking.quantised"


@pytest.mark.parametrize(
    ("fn", "inputs"),
    [
        (lambda values: Twice.apply(jagged(values)).values(), lambda: draw(3, 3)),
        (
            lambda *parts: (torch.nested.as_nested_tensor(list(parts)) * 2).to_padded_tensor(0.0),
            lambda: (draw(2), draw(3)),
        ),
        (lambda dense: Twice.apply(dense).to_sparse().to_dense(), lambda: draw(3, 3)),
    ],
    ids=["jagged", "nested", "sparse"],
)
def test_the_way_out_that_a_sentence_names_is_one(fn, inputs) -> None:
    assert nbautograd.gradcheck(fn, inputs(), order=1).verdict == "right"
