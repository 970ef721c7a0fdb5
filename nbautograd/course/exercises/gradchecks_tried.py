"""Ten right and ten wrong backwards: what the exercise "write your own gradcheck" is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercises.shapes import normals

Forward = Callable[..., Tensor]
Backward = Callable[..., Any]


@dataclass(frozen=True)
class TriedGradcheck:
    """A Function and inputs for it.

    Attributes:
        name: what a sentence calls it.
        function: its ``apply``.
        inputs: float64 tensors.
        group: what a check must do to see its mistake: ``"second_input"``, ``"upstream_ones"``, or nothing
            in particular.
    """

    name: str
    function: Callable[..., Tensor]
    inputs: Callable[[InputGenerator], tuple[Tensor, ...]]
    group: str = ""


def _case(name: str, forward: Forward, backward: Backward, *shapes: str, group: str = "") -> TriedGradcheck:
    class Tried(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Tensor) -> Tensor:
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            return backward(*grads, *ctx.saved_tensors)

    return TriedGradcheck(name, Tried.apply, normals(*shapes), group)


def _softmax(g: Tensor, x: Tensor) -> Tensor:
    y = x.softmax(0)
    return y * (g - (g * y).sum())


def _spoiled(gradient: Tensor) -> Tensor:
    gradient[..., -1] = 0
    return gradient


S, V, ONE = "a", "aa", "1"  # shapes, as `normals` takes them
RIGHT = (
    _case("sin", torch.sin, lambda g, x: g * x.cos(), S),
    _case("exp", torch.exp, lambda g, x: g * x.exp(), S),
    _case("x ** 3", lambda x: x**3, lambda g, x: g * 3 * x * x, S),
    _case("a * b", torch.mul, lambda g, a, b: (g * b, g * a), S, S),
    _case("a @ b", torch.mm, lambda g, a, b: (g @ b.t(), a.t() @ g), "ab", "bc"),
    _case("x.sum(0)", lambda x: x.sum(0), lambda g, x: g.expand_as(x), "ab"),
    _case("tanh", torch.tanh, lambda g, x: g * (1 - x.tanh() ** 2), V),
    _case("softmax", lambda x: x.softmax(0), _softmax, S),
    _case("cumsum", lambda x: x.cumsum(0), lambda g, x: g.flip(0).cumsum(0).flip(0), S),
    _case("1000 * x", lambda x: 1000 * x, lambda g, x: 1000 * g, S),
)
WRONG = (
    _case("sin with a minus", torch.sin, lambda g, x: -g * x.cos(), ONE),
    _case("x ** 3 with 2 for 3", lambda x: x**3, lambda g, x: g * 2 * x * x, ONE),
    _case("a * b, gradients exchanged", torch.mul, lambda g, a, b: (g * a, g * b), ONE, ONE),
    _case("a * b, second gradient zero", torch.mul, lambda g, a, b: (g * b, 0 * g), S, S, group="second_input"),
    _case(
        "a @ b without a transpose", torch.mm, lambda g, a, b: (g @ b.t(), a @ g), V, V, group="second_input"
    ),
    _case("exp that ignores g", torch.exp, lambda g, x: x.exp(), S, group="upstream_ones"),
    _case("cumsum for cumsum", lambda x: x.cumsum(0), lambda g, x: g.cumsum(0), S),
    _case("softmax, element by element", lambda x: x.softmax(0), lambda g, x: g * x.softmax(0), S),
    _case("sin with one entry zero", torch.sin, lambda g, x: _spoiled(g * x.cos()), S),
    _case("x ** 3 with one entry zero", lambda x: x**3, lambda g, x: _spoiled(g * 3 * x * x), S),
)  # fmt: skip
