"""Exercises of notebook 02, vector-Jacobian products and the linear layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.attempt import close
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import normals, points
from nbautograd.course.exercises.tried import backward_calls, python

# linear_xw

_layer = normals("ab", "bc", "c")


def _xw(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    output = input @ weight
    return output if bias is None else output + bias


NAMES = ("input", "weight", "bias")


def _wanted_only(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Check that gradients that nobody wants are not returned."""
    if not (isinstance(answer, type) and issubclass(answer, torch.autograd.Function)):
        yield Failure("not_a_function", "course.not_a_function", {"name": "LinearFunction"})
        return
    for wanted in range(3):
        given = [x.requires_grad_(k == wanted) for k, x in enumerate(_layer(draw))]
        y = answer.apply(*given).sum()
        with backward_calls(answer) as calls:
            y.backward()
        for k, gradient in enumerate(calls[0][1][:3] if calls and isinstance(calls[0][1], tuple) else ()):
            if k != wanted and gradient is not None:
                yield Failure("unwanted_gradient", "course.n02.unwanted", {"wanted": NAMES[wanted], "input": NAMES[k]})
                return


# linear_xwt


def _xwt(input: Tensor, weight: Tensor) -> Tensor:
    return input @ weight.t()


# break_squeeze


def _breaks_squeeze(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    answer = python(answer)
    sizes = tuple(map(python, answer)) if isinstance(answer, (tuple, list)) else ()
    if len(sizes) != 3 or not all(type(n) is int and n >= 0 for n in sizes):
        yield Failure("not_three_sizes", "course.n02.not_three")
    elif torch.zeros(sizes[0], sizes[2]).sum(0).squeeze(0).shape != sizes[2:]:
        return
    elif sizes[0] == 1:
        yield Failure("batch_of_one", "course.n02.batch_of_one")
    else:
        yield Failure("no_error", "course.n02.no_error")


# fool_the_sum


def _fools_the_sum(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not (isinstance(answer, type) and issubclass(answer, torch.autograd.Function)):
        yield Failure("not_a_function", "course.not_a_function", {"name": "Fooling"})
        return
    differs = False
    for turn, weight in enumerate(("ones", "random", "random", "random")):
        x, w = (t.requires_grad_() for t in _layer(InputGenerator(draw.seed, turn))[:2])
        random, ones = 10.0**turn * draw.normal(len(x), w.shape[1]), torch.ones(len(x), w.shape[1]).double()
        g = random if weight == "random" else ones
        right = (g @ w.detach().t(), x.detach().t() @ g)
        y = answer.apply(x, w)
        if not isinstance(y, Tensor) or not torch.allclose(y, x.detach() @ w.detach()):
            yield Failure("forward_changed", "course.n02.forward_changed")
            return
        found = torch.autograd.grad(y, (x, w), g, allow_unused=True)
        same = [a is not None and close(a, b, 1e-6) for a, b in zip(found, right, strict=True)]
        if weight == "ones" and not all(same):
            yield Failure(
                "wrong_with_ones", "course.n02.wrong_with_ones", {"input": ("input", "weight")[same.index(False)]}
            )
            return
        differs = differs or not all(same)
    if not differs:
        yield Failure("really_right", "course.n02.really_right")


EXERCISES = (
    Exercise(
        "linear_xw", "LinearFunction",
        "value gradient edges own_function custom",
        formula=_xw, inputs=_layer, own=_wanted_only,
        edges=points("1b,bc,c", "ab,b1,1", "11,11,1", "0b,bc,c", "ab,cbt,c"),
        notes={"omitted_raised": "course.n02.omitted_raised"},
    ),
    Exercise(
        "linear_xwt", "LinearT", "value gradient edges own_function",
        formula=_xwt, inputs=normals("abc", "dc"),
        edges=points("a,ba", "ca,ba", "c1da,ba", "cdea,ba", "cde2a,ba", "0a,ba", "cdea,1a"),
    ),
    Exercise("break_squeeze", "sizes", "custom", own=_breaks_squeeze),
    Exercise("fool_the_sum", "Fooling", "custom", own=_fools_the_sum),
    Exercise(
        "broadcast_add", "Add", "value gradient edges own_function",
        formula=torch.add, inputs=normals("a1c", "b1"),
        edges=points(",b", "bc,bc", "b1,1c", "c,abc", "a1c,b1", "0c,1c", "1a1c,21b1"),
        notes={"grad_shape_reduced": "course.n02.grad_shape_reduced"},
    ),
)  # fmt: skip
