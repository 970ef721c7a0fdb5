"""Check of a layer with parameters: ``linear_module`` and ``repair_module``."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from nbautograd.core.torch_private.nodes import graph_nodes
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Failure


def says(code: str, **params: Any) -> Failure:
    """Return a failure with the sentence of its code."""
    return Failure(code, f"course.layers.{code}", params)


def layer(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Linear layers of a few sizes, with and without bias: the first thing that is wrong."""
    for sizes in ((4, 3), *((draw.choice(range(1, 8)), draw.choice(range(1, 8))) for _ in range(3))):
        make = _Maker(answer, *sizes)
        for check in CHECKS:
            for failure in check(make, draw):
                yield failure
                return


@dataclass(frozen=True)
class _Maker:
    """The class of the answer, and the numbers of inputs and outputs of its layers."""

    answer: Any
    ins: int
    outs: int

    def __call__(self, seed: int = 0, **options: Any) -> Any:
        torch.manual_seed(seed)
        return self.answer(self.ins, self.outs, **options)


def _is_module(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    answer = make.answer
    if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
        yield says("not_a_module")
        return
    try:
        make()
    except Exception as error:
        missing = "before Module.__init__" in str(error)
        yield says(
            "no_super_init" if missing else "cannot_be_made",
            call=f"{answer.__name__}({make.ins}, {make.outs})",
            kind=type(error).__name__,
            error=f"{error}".partition("\n")[0],
        )


def _registers(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    shapes = {name: tuple(p.shape) for name, p in make().named_parameters()}
    if set(shapes) != {"weight", "bias"}:
        yield says("not_registered", got=", ".join(shapes) or "[]")
    elif shapes != {"weight": (make.outs, make.ins), "bias": (make.outs,)}:
        yield says(
            "wrong_shape",
            ins=make.ins,
            outs=make.outs,
            want=f"({make.outs}, {make.ins})",
            one=f"({make.outs},)",
            got=shapes,
        )


def _runs(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Call a layer with a bias, so that what is said of one without is about the bias."""
    try:
        make()(draw.normal(2, make.ins).float())
    except Exception as error:
        yield says(
            "forward_raised",
            call=f"{make.answer.__name__}({make.ins}, {make.outs})(torch.randn(2, {make.ins}))",
            kind=type(error).__name__,
            error=str(error).splitlines()[0].rstrip("."),
        )


def _may_do_without_bias(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    try:
        without = make(bias=False)
        without(draw.normal(2, make.ins).float())
    except Exception as error:
        yield says("bias_false_raises", kind=type(error).__name__, error=str(error).splitlines()[0])
        return
    if set(without.state_dict()) != {"weight"} or getattr(without, "bias", 0) is not None:
        yield says(
            "bias_false_ignored",
            got=", ".join(without.state_dict()),
            kind=type(getattr(without, "bias", None)).__name__,
        )


def _computes(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Check the output, and every gradient of it."""
    for bias in (True, False):
        made = make(bias=bias)
        x = draw.normal(draw.choice(range(1, 7)), make.ins).float().requires_grad_()
        got, expected = made(x), nn.functional.linear(x, made.weight, made.bias)
        if not isinstance(got, Tensor) or got.shape != expected.shape or not torch.allclose(got, expected, atol=1e-5):
            yield says("output_wrong")
            return
        leaves = dict(made.named_parameters()) | {"input": x}
        weights = torch.randn_like(expected)
        right = torch.autograd.grad(expected, list(leaves.values()), weights)
        found: tuple[Any, ...] = (None,) * len(leaves)
        if got.requires_grad:
            found = torch.autograd.grad(got, list(leaves.values()), weights, allow_unused=True)
        for name, mine, one in zip(leaves, found, right, strict=True):
            if mine is None:
                yield says("no_gradient", name=name)
                return
            if not torch.allclose(mine, one, atol=1e-5):
                yield says("gradient_wrong", name=name)
                return


def _goes_through(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Check that a Function of Python gets the weight itself."""
    made, x = make(), draw.normal(5, make.ins).float()
    own = (node for node in graph_nodes((made(x),)) if hasattr(node, "_forward_cls"))
    if not any(getattr(node, "variable", None) is made.weight for one in own for node, _ in one.next_functions):
        yield says("not_through_function")


def _converts(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    made = copy.deepcopy(make()).double()
    try:
        got = str(made(draw.normal(2, make.ins)).dtype)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
    if got != "torch.float64":
        yield says("not_converted", got=got)


def _starts_well(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    """Small numbers of both signs, other ones for each layer; told at a layer that is large enough to tell."""
    large = _Maker(make.answer, draw.choice(range(40, 60)), draw.choice(range(30, 50)))
    weight, other = large().weight.detach(), large(1).weight.detach()
    low, high, spread = float(weight.min()), float(weight.max()), float(weight.std())
    small = bool(weight.isfinite().all()) and spread > 1e-3 and max(-low, high) < 10
    varied = float((weight - other).std()) >= spread and len(weight.unique()) >= weight.numel() / 2
    if not (small and varied) or abs(float(weight.mean())) > spread / 2:
        yield says("badly_initialised", low=low, high=high)


def _speaks(make: _Maker, draw: InputGenerator) -> Iterator[Failure]:
    for bias in (False, True):
        shown = repr(make(bias=bias))
        wanted = (f"input_features={make.ins}", f"output_features={make.outs}", f"bias={bias}")
        missing = [words for words in wanted if words not in shown.replace(" = ", "=")]
        if missing:
            yield says("repr_silent", got=shown.replace("\n", " "), words=missing[0])
            return


CHECKS = (
    _is_module, _registers, _runs, _may_do_without_bias, _computes, _converts, _goes_through, _starts_well, _speaks,
)  # fmt: skip
