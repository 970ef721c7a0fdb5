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
from nbautograd.course.exercises.tried import NOT_A_FUNCTION, backward_calls, python

# linear_xw

_layer = normals("ab", "bc", "c")


def _xw(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    output = input @ weight
    return output if bias is None else output + bias


NAMES = ("input", "weight", "bias")
UNWANTED = {
    "en": "When only `{wanted}` needs a gradient, backward returns one of `{input}` as well. Which entry of"
    " `ctx.needs_input_grad` says that nobody wants it?",
    "zh": "只有 `{wanted}` 需要梯度时，backward 还返回了 `{input}` 的梯度。"
    "`ctx.needs_input_grad` 的哪一项说明没有人要它？",
}


def _wanted_only(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Check that gradients that nobody wants are not returned."""
    if not (isinstance(answer, type) and issubclass(answer, torch.autograd.Function)):
        yield Failure("not_a_function", NOT_A_FUNCTION, {"name": "LinearFunction"})
        return
    for wanted in range(3):
        given = [x.requires_grad_(k == wanted) for k, x in enumerate(_layer(draw))]
        y = answer.apply(*given).sum()
        with backward_calls(answer) as calls:
            y.backward()
        for k, gradient in enumerate(calls[0][1][:3] if calls and isinstance(calls[0][1], tuple) else ()):
            if k != wanted and gradient is not None:
                yield Failure("unwanted_gradient", UNWANTED, {"wanted": NAMES[wanted], "input": NAMES[k]})
                return


# linear_xwt


def _xwt(input: Tensor, weight: Tensor) -> Tensor:
    return input @ weight.t()


# break_squeeze

NOT_THREE = {
    "en": "Three whole numbers are wanted, such as (3, 4, 5): batch, in_features, out_features.",
    "zh": "需要三个整数，例如 (3, 4, 5)：批大小、in_features、out_features。",
}
NO_ERROR = {
    "en": "With these sizes nothing breaks: the bias gradient comes out right. Which dimension does squeeze(0) look at,"
    " once sum(0) is done?",
    "zh": "这组尺寸没有让它出错：偏置的梯度是对的。想一想，sum(0) 之后，squeeze(0) 看的是哪一维？",
}
BATCH_OF_ONE = {
    "en": "A batch of one looks like the culprit, and is not: the sum over the batch has removed that dimension before"
    " squeeze comes.",
    "zh": "批大小为 1 看起来最可疑，其实不是：轮到 squeeze 时，批的那一维已经被求和消掉了。",
}


def _breaks_squeeze(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    answer = python(answer)
    sizes = tuple(map(python, answer)) if isinstance(answer, (tuple, list)) else ()
    if len(sizes) != 3 or not all(type(n) is int and n >= 0 for n in sizes):
        yield Failure("not_three_sizes", NOT_THREE)
    elif torch.zeros(sizes[0], sizes[2]).sum(0).squeeze(0).shape != sizes[2:]:
        return
    elif sizes[0] == 1:
        yield Failure("batch_of_one", BATCH_OF_ONE)
    else:
        yield Failure("no_error", NO_ERROR)


# fool_the_sum

WRONG_WITH_ONES = {
    "en": "After y.sum().backward() the gradient of `{input}` is already wrong, so that test would catch you. With a"
    " grad_output of ones your backward has to be right.",
    "zh": "只做 y.sum().backward()，`{input}` 的梯度就已经错了，这样的测试会抓住你。"
    "上游梯度全为 1 时，你的 backward 必须正确。",
}
REALLY_RIGHT = {
    "en": "Your backward is right for every grad_output that was tried. Here it should be wrong for some: what is lost"
    " when only ones ever arrive?",
    "zh": "试过的每个上游梯度，你的 backward 都算对了。这道题要它对某些上游梯度出错："
    "如果到达的永远是 1，什么会被掩盖？",
}
FORWARD_CHANGED = {
    "en": "forward should be the honest matrix product, `input` times `weight`. The fault belongs in backward.",
    "zh": "forward 应当老老实实地算矩阵乘积：`input` 乘 `weight`。毛病要藏在 backward 里。",
}


def _fools_the_sum(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if not (isinstance(answer, type) and issubclass(answer, torch.autograd.Function)):
        yield Failure("not_a_function", NOT_A_FUNCTION, {"name": "Fooling"})
        return
    differs = False
    for turn, weight in enumerate(("ones", "random", "random", "random")):
        x, w = (t.requires_grad_() for t in _layer(InputGenerator(draw.seed, turn))[:2])
        random, ones = 10.0**turn * draw.normal(len(x), w.shape[1]), torch.ones(len(x), w.shape[1]).double()
        g = random if weight == "random" else ones
        right = (g @ w.detach().t(), x.detach().t() @ g)
        y = answer.apply(x, w)
        if not isinstance(y, Tensor) or not torch.allclose(y, x.detach() @ w.detach()):
            yield Failure("forward_changed", FORWARD_CHANGED)
            return
        found = torch.autograd.grad(y, (x, w), g, allow_unused=True)
        same = [a is not None and close(a, b, 1e-6) for a, b in zip(found, right, strict=True)]
        if weight == "ones" and not all(same):
            yield Failure("wrong_with_ones", WRONG_WITH_ONES, {"input": ("input", "weight")[same.index(False)]})
            return
        differs = differs or not all(same)
    if not differs:
        yield Failure("really_right", REALLY_RIGHT)


EXERCISES = (
    Exercise(
        "linear_xw", "LinearFunction",
        "value gradient edges own_function custom",
        formula=_xw, inputs=_layer, own=_wanted_only,
        edges=points("1b,bc,c", "ab,b1,1", "11,11,1", "0b,bc,c", "ab,cbt,c"),
        notes={
            "omitted_raised": {
                "en": "It fails when the call leaves `bias` out: LinearFunction.apply(input, weight). How long is"
                " `ctx.needs_input_grad` then?",
                "zh": "调用时不写 `bias`，即 LinearFunction.apply(input, weight)，它就出错了。"
                "这时 `ctx.needs_input_grad` 有多长？",
            },
        },
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
        notes={
            "grad_shape_reduced": {
                "en": "The values come out right, because torch sums your gradient down to the shape of the input in"
                " silence. Here you are asked to return that shape yourself.",
                "zh": "数值是对的，因为 torch 悄悄替你把梯度求和成了输入的形状。这道题要求你自己返回这个形状。",
            },
        },
    ),
)  # fmt: skip
