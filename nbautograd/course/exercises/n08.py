"""Exercises of notebook 08, double backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.observed import computed_by_torch
from nbautograd.course.exercises.shapes import elementwise


def _first_output(answer: Any) -> Callable[..., Any]:
    """Use the first output, as a caller does of a Function that also returns its intermediates."""

    def called(x: Tensor) -> Any:
        outputs = answer.apply(x)
        return outputs[0] if isinstance(outputs, tuple) else outputs

    return called


def _some(draw: Draw) -> tuple[Any, ...]:
    return (draw.normal(2, 3),)


# sinh

THROUGH_BOTH = {
    "en": "The gradient is right, and its own derivative is not: a second backward also goes through the saved "
    "exponentials. What comes back to them arrives as `grad_grown` and `grad_shrunk`; what is the derivative of each?",
    "zh": "梯度是对的，梯度的导数却不对：第二次反向传播还会经过保存的两个指数。回到它们的梯度就是 `grad_grown` 和 "
    "`grad_shrunk`；这两个指数各自的导数是什么？",
}

# my_cube

ONE_OUTPUT = {
    "en": "`forward` should return two tensors, x³ and dx; {got} came.",
    "zh": "`forward` 应当返回两个张量：x³ 和 dx；实际得到的是 {got}。",
}
DX_LOST = {
    "en": "A loss made of the second output, dx = 3 x², gets a wrong gradient at x = {x:.3f}: {got:.3f}, and"
    " {right:.3f} is right. What flows back into dx arrives as `grad_dx`.",
    "zh": "用第二个输出 dx = 3 x² 算损失，在 x = {x:.3f} 处得到的梯度是 {got:.3f}，正确的是 {right:.3f}。"
    "流回 dx 的梯度就是 `grad_dx`。",
}


def _uses_grad_dx(answer: Any, draw: Draw) -> Iterator[Failure]:
    """Differentiate the second output too, which a backward without grad_dx gets wrong."""
    x, g = draw.normal(4).requires_grad_(), draw.normal(4)
    outputs = answer.apply(x)
    if not isinstance(outputs, tuple) or len(outputs) != 2:
        yield Failure("one_output", ONE_OUTPUT, {"got": type(outputs).__name__})
        return
    found = torch.autograd.grad(outputs[1], x, g, allow_unused=True)[0]
    found, right = torch.zeros_like(x) if found is None else found, g * 6 * x.detach()
    if found.shape != right.shape or not torch.allclose(found, right):
        params = {"x": x[0].item(), "got": found.flatten()[0].item(), "right": right[0].item()}
        yield Failure("grad_dx_ignored", DX_LOST, params)


# numpy_sin

TRIGONOMETRIC = {"sin", "cos", "tan", "sinc", "polar", "exp"}


def _by_numpy(answer: Any, draw: Draw) -> Iterator[Failure]:
    yield from computed_by_torch(answer, draw.normal(3).requires_grad_(), TRIGONOMETRIC)


# gradient_penalty

NO_NUMBER = {
    "en": "A tensor is wanted, and a value of type {got} came: nothing can be differentiated through that.",
    "zh": "应当返回张量，实际得到的是 {got} 类型的值，无法继续求导。",
}
SHAPED = {
    "en": "The penalty is one number, so its shape is (); yours is {got}.",
    "zh": "惩罚项是一个数，形状应为 ()，你的是 {got}。",
}
VALUE = {
    "en": "For a batch of {n} rows in {d} dimensions the penalty is {right:.4f}, and yours is {got:.4f}. "
    "Go through the formula from the inside: one gradient per row, its length over the columns, the mean over rows.",
    "zh": "对 {n} 行、{d} 维的一个批次，惩罚项应为 {right:.4f}，你的是 {got:.4f}。"
    "从里到外核对公式：每行一个梯度，沿列求长度，再对各行取平均。",
}
NO_GRAPH = {
    "en": "The value is right, but nothing flows from it back to the critic's weights: training would go on as if the "
    "penalty were not there. Look at nbautograd.graph of your penalty. Where does it end?",
    "zh": "数值是对的，但没有梯度从它流回判别网络的权重：训练会照常进行，就像没有惩罚项一样。"
    "用 nbautograd.graph 看看你的惩罚项，计算图断在哪里？",
}
DERIVATIVE = {
    "en": "The value is right, but its derivative by the critic's weights is not.",
    "zh": "数值是对的，但它对判别网络权重的导数不对。",
}
LEAVES = {
    "en": "After the call there is something in .grad of {who}. An optimizer would add it to its step. "
    "torch.autograd.grad gives a gradient without leaving it anywhere.",
    "zh": "调用之后，{who} 的 .grad 里多了东西，优化器会把它一并加进更新。"
    "torch.autograd.grad 能给出梯度，又不会留在任何地方。",
}


def _penalises(answer: Any, draw: Draw) -> Iterator[Failure]:
    """The critics are x³ · w and tanh(x) · w, whose gradients are 3 x² w and (1 - tanh² x) w."""
    critics: tuple[tuple[int, int, Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]], ...] = (
        (4, 3, lambda x: x**3, lambda x: 3 * x**2),
        (2, 5, torch.tanh, lambda x: 1 - x.tanh() ** 2),
    )
    for n, d, bent, slope in critics:
        x, w = draw.away_from(draw.normal(n, d), 0.0, 0.3).requires_grad_(), draw.normal(d).requires_grad_()
        penalty = answer(lambda rows, bent=bent, weight=w: bent(rows) @ weight, x)
        right = (((slope(x) * w).norm(dim=1) - 1) ** 2).mean()
        failure = _not_the_penalty(penalty, right, (n, d)) or _not_differentiable(penalty, right, x, w)
        if failure is not None:
            yield failure
            return


def _not_the_penalty(penalty: Any, right: Tensor, size: tuple[int, int]) -> Failure | None:
    if not isinstance(penalty, Tensor):
        return Failure("no_number", NO_NUMBER, {"got": type(penalty).__name__})
    if penalty.shape != ():
        return Failure("wrong_shape", SHAPED, {"got": tuple(penalty.shape)})
    if not torch.allclose(penalty.detach(), right.detach()):
        params = {"n": size[0], "d": size[1], "right": right.item(), "got": penalty.item()}
        return Failure("wrong_value", VALUE, params)
    return None


def _not_differentiable(penalty: Tensor, right: Tensor, x: Tensor, w: Tensor) -> Failure | None:
    left: dict[str, Tensor | None] = {"x": x.grad, "w": w.grad}
    for who, grad in left.items():
        if grad is not None:
            return Failure("leaves_grad", LEAVES, {"who": who})
    if not penalty.requires_grad:
        return Failure("no_graph", NO_GRAPH)
    got: Tensor | None = torch.autograd.grad(penalty, w, allow_unused=True)[0]
    (expected,) = torch.autograd.grad(right, w)
    if got is None:
        return Failure("no_graph", NO_GRAPH)
    return None if torch.allclose(got, expected) else Failure("wrong_derivative", DERIVATIVE)


def _with_dimensions(draw: Draw) -> Iterable[tuple[Any, ...]]:
    """NumPy gives a number back for an array without dimensions, which is another lesson."""
    return list(elementwise()(draw))[1:]


EXERCISES = (
    Exercise(
        "my_cube", "MyCube", "value own_function gradient linear arity double_backward custom edges",
        formula=lambda x: x**3, inputs=_some, edges=elementwise(), apply=_first_output, own=_uses_grad_dx,
    ),
    Exercise(
        "sinh", "Sinh", "value own_function gradient linear arity double_backward edges",
        formula=torch.sinh, inputs=_some, edges=elementwise(), apply=_first_output,
        notes={"double_backward_wrong": THROUGH_BOTH},
    ),
    Exercise("silu", "Silu", "value own_function gradient linear unchanged double_backward edges",
        formula=lambda x: x * x.sigmoid(), inputs=_some, edges=elementwise()),
    Exercise("numpy_sin", "NumpySin", "value own_function gradient linear dtypes double_backward custom edges",
        formula=torch.sin, inputs=_some, edges=_with_dimensions, own=_by_numpy),
    Exercise("gradient_penalty", "gradient_penalty", "custom", own=_penalises),
)  # fmt: skip
