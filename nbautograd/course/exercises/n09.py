"""Exercises of notebook 09, forward mode, vmap and torch.func."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nbautograd.course.attempt import close
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, linear, linear_edges, linear_inputs, normals, points

JVP_RAISED = {
    "en": "Your jvp could not be used. It gets ctx and one tangent per input, and returns one tangent per output; what "
    "it takes from ctx.saved_tensors must have been saved for forward.",
    "zh": "你的 jvp 没能用起来。它接收 ctx 和每个输入的一个切向量，为每个输出返回一个切向量；"
    "它从 ctx.saved_tensors 里取的东西，必须事先为前向模式保存过。",
}

IN_PLACE = {
    "en": "One of your methods fails under vmap. Try it with only bias batched: does forward then write a batched "
    "tensor into one that is not?",
    "zh": "你的某个方法在 vmap 下会出错。设想只有 bias 带批次：forward 是不是把带批次的张量写进了不带批次的张量？",
}
WHERE = {
    "en": "Your rule gives other values than one sample after another. For each input: which dimension is the batch, "
    "and what if there is none? And for the output: is the batch where your second return value says?",
    "zh": "你的规则与逐个样本计算的结果不同。逐个输入检查：哪一维是批次，没有批次时怎么办？"
    "再看输出：批次真的在你第二个返回值所说的那一维吗？",
}

# per_sample

NUMBER = {
    "en": "Two gradients are wanted, of weight and of bias, as a tuple; a value of type {got} came.",
    "zh": "需要两个梯度：weight 的和 bias 的，放在元组里；实际得到的是 {got} 类型的值。",
}
SUMMED = {
    "en": "For a batch of {n} the gradient of {who} has the shape {got}, without a dimension for the samples. One for "
    "each sample is wanted. Is yours the sum over the batch, or a dimension of size 1 squeezed away?",
    "zh": "批次里有 {n} 个样本，而 {who} 的梯度形状是 {got}，没有样本那一维。需要的是每个样本一个。"
    "是把整个批次加在一起了，还是把大小为 1 的那一维去掉了？",
}
PARAMETER = {
    "en": "Where the gradient of {who}, of shape {expected}, is wanted, one of shape {got} came. By which "
    "arguments do you differentiate, and does the batch come first in the result?",
    "zh": "这里应当是 {who} 的梯度，形状为 {expected}，实际得到的形状是 {got}。你是对哪几个参数求导的？"
    "结果里批次是第一维吗？",
}
VALUE = {
    "en": "The gradient of {who} has the right shape, but for sample 0 it is {got}, and should be {expected}. Write"
    " down the loss of that sample alone: is it what you differentiate?",
    "zh": "{who} 的梯度形状对了，但样本 0 的值是 {got}，应为 {expected}。把这一个样本的损失单独写出来："
    "你求导的是不是它？",
}


def _for_each_sample(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for samples in (draw.choice(range(4, 9)), 1, draw.choice(range(9, 20))):
        for failure in _for_samples(answer, draw, samples, draw.choice(range(2, 6))):
            yield failure
            return


def _for_samples(answer: Any, draw: InputGenerator, samples: int, features: int) -> Iterator[Failure]:
    weight, bias = draw.normal(features), draw.normal()
    inputs, targets = draw.normal(samples, features), draw.normal(samples)
    residual = 2 * (inputs @ weight + bias - targets)
    right = {"weight": residual[:, None] * inputs, "bias": residual}
    found = answer(weight, bias, inputs, targets)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        got = f"{type(found).__name__} ({len(found)})" if isinstance(found, (tuple, list)) else type(found).__name__
        yield Failure("wrong_number", NUMBER, {"got": got})
        return
    for (who, expected), got in zip(right.items(), found, strict=True):
        failure = _sample_gradient(who, got, expected)
        if failure is not None:
            yield failure
            return


def _sample_gradient(who: str, got: Any, expected: Tensor) -> Failure | None:
    shape = tuple(got.shape) if isinstance(got, Tensor) else type(got).__name__
    if shape == tuple(expected.shape[1:]):
        return Failure("summed", SUMMED, {"who": who, "n": len(expected), "got": shape})
    if shape != tuple(expected.shape):
        return Failure("wrong_parameter", PARAMETER, {"who": who, "got": shape, "expected": tuple(expected.shape)})
    if close(got, expected, 1e-6):
        return None
    shown = [(_short(got[0], digits), _short(expected[0], digits)) for digits in (3, 14)]
    mine, right = next((pair for pair in shown if pair[0] != pair[1]), shown[0])
    return Failure("wrong_value", VALUE, {"who": who, "got": mine, "expected": right})


def _short(tensor: Tensor, digits: int) -> str:
    numbers = [f"{value:.{digits}g}" for value in tensor.detach().reshape(-1).tolist()]
    return numbers[0] if tensor.dim() == 0 else f"[{', '.join(numbers)}]"


# hessian_of

NO_TENSOR = {
    "en": "A matrix is wanted, and a value of type {got} came. A transform gives a function; has it been called on x?",
    "zh": "应当返回矩阵，实际得到的是 {got} 类型的值。变换返回的是函数：它作用到 x 上了吗？",
}
SHAPED = {
    "en": "For a vector of {n} numbers the Hessian has the shape {expected}; yours is {got}. How often is f "
    "differentiated, and what of?",
    "zh": "对含 {n} 个数的向量，黑塞矩阵形状应为 {expected}，你的是 {got}。f 被求了几次导，又是对什么求的？",
}
HESSIAN = {
    "en": "For f(x) = {f} the entry ({i}, {j}) of the Hessian is {expected:.10g}, and yours is {got:.10g}. What is"
    " differentiated in your second step, and is it done by a transform or by differences?",
    "zh": "对 f(x) = {f}，黑塞矩阵的 ({i}, {j}) 元素应为 {expected:.10g}，你的是 {got:.10g}。"
    "第二步求导的对象是什么？用的是变换，还是差分？",
}


class _Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        product: Tensor = grad_output * 3 * x**2
        return product

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        product: Tensor = t * 3 * x**2
        return product


def _cube(x: Tensor) -> Tensor:
    cubed: Tensor = _Cube.apply(x)  # type: ignore[no-untyped-call]
    return cubed


def _functions(draw: InputGenerator) -> dict[str, Callable[[Tensor], Tensor]]:
    """Draw the numbers in a few functions of a vector."""
    a, b, k = (round(float(draw.uniform(0.5, 2.0)), 2) for _ in range(3))
    fast = draw.choice(range(20, 40))
    return {
        f"{a} (Σ x)³ + {b} Σ x³": lambda x: a * _cube(x.sum()) + b * _cube(x).sum(),
        f"{a} x₀³ · sin({k} x₁ x₀)": lambda x: a * _cube(x[0]) * (k * x[1] * x[0]).sin(),
        f"(Σ sin({fast} x))³": lambda x: _cube((fast * x).sin().sum()),
        f"exp(x₀ − {b} x₁) + {k} x₁³": lambda x: (x[0] - b * x[1]).exp() + k * _cube(x[1]),
    }


def _hessian(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for name, f in _functions(draw).items():
        x = draw.uniform(0.3, 1.5, draw.choice(range(2, 6)))
        expected = torch.func.hessian(f)(x)
        found = answer(f, x)
        if not isinstance(found, Tensor):
            yield Failure("no_tensor", NO_TENSOR, {"got": type(found).__name__})
        elif found.shape != expected.shape:
            params = {"n": len(x), "expected": tuple(expected.shape), "got": tuple(found.shape)}
            yield Failure("wrong_shape", SHAPED, params)
        elif not close(found, expected, 1e-6):
            i, j = divmod(int((found.detach() - expected).abs().argmax()), len(expected))
            entry = {"f": name, "i": i, "j": j, "expected": expected[i, j].item(), "got": found[i, j].item()}
            yield Failure("wrong_value", HESSIAN, entry)
        else:
            continue
        return


EXERCISES = (
    Exercise(
        "forward_cube", "ForwardCube", "own_function value gradient forward_mode double_backward edges",
        formula=lambda x: x**3, inputs=normals("ab"), edges=elementwise(),
        notes={"jvp_raised": JVP_RAISED},
    ),
    Exercise(
        "linear_ported", "LinearPorted", "own_function value gradient vmap edges",
        formula=linear, inputs=linear_inputs, edges=linear_edges, notes={"vmap_raised": IN_PLACE},
    ),
    Exercise(
        "mat_vec", "MatVec", "own_function value gradient vmap edges",
        formula=lambda A, x: A @ x, inputs=normals("ab", "b"), edges=points("13,3", "21,1", "03,3"),
        notes={"vmap_wrong": WHERE},
    ),
    Exercise("per_sample", "per_sample", "custom", own=_for_each_sample),
    Exercise("hessian_of", "hessian_of", "custom", own=_hessian),
)  # fmt: skip
