"""Exercises of notebook 08, double backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.attempt import close
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, normals


def _first_output(answer: Any) -> Callable[..., Any]:
    """Use the first output, as a caller does of a Function that also returns its intermediates."""

    def called(x: Tensor) -> Any:
        outputs = answer.apply(x)
        return outputs[0] if isinstance(outputs, tuple) else outputs

    return called


# sinh

THREE_OUTPUTS = {
    "en": "`forward` should return three tensors, as in the cell: the hyperbolic sine and both exponentials.",
    "zh": "`forward` 应当像格子里那样返回三个张量：双曲正弦和两个指数。",
}
EXP_LOST = {
    "en": "A loss made of the output number {number}, an exponential, gets a wrong gradient at x = {x:.3f}: {got:.3f},"
    " and {right:.3f} is right. What flows back into it arrives in backward as an argument of its own.",
    "zh": "用第 {number} 个输出（一个指数）算损失，在 x = {x:.3f} 处得到的梯度是 {got:.3f}，正确的是 {right:.3f}。"
    "流回它的梯度，是 backward 的一个单独的参数。",
}
EXP_AGAIN = {
    "en": "backward calls `{name}` (line {line}). The exponentials that forward saved are all it needs.",
    "zh": "backward 里调用了 `{name}`（第 {line} 行）。forward 保存的两个指数就够用了。",
}


def _through_all_outputs(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Differentiate each of the three outputs alone."""
    x, g = draw.normal(*draw.sizes(1)).requires_grad_(), draw.normal(*draw.sizes(1))
    outputs, exponentials = answer.apply(x), (x.detach().exp(), (-x.detach()).exp())
    three = isinstance(outputs, tuple) and len(outputs) == 3
    if not three or not all(close(y, e, 1e-9) for y, e in zip(outputs[1:], exponentials, strict=True)):
        yield Failure("three_outputs", THREE_OUTPUTS)
        return
    for number, slope in ((2, exponentials[0]), (3, -exponentials[1])):
        told = _wrong_gradient(answer.apply(x)[number - 1], x, g, g * slope)
        if told is not None:
            yield Failure("exponential_ignored", EXP_LOST, {"number": number, **told})
            return


def _wrong_gradient(output: Tensor, x: Tensor, g: Tensor, right: Tensor) -> dict[str, float] | None:
    """Return the number of x whose gradient is furthest from right, with both, unless all are right."""
    found = torch.autograd.grad(output, x, g, allow_unused=True)[0] if output.requires_grad else None
    found = torch.zeros_like(x) if found is None else found
    k = int((found - right).abs().argmax())
    one = {name: values[k].item() for name, values in (("x", x), ("got", found), ("right", right))}
    return None if close(found, right, 1e-9) else one


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


def _uses_grad_dx(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Differentiate the second output too, which a backward without grad_dx gets wrong."""
    x, g = draw.normal(*draw.sizes(1)).requires_grad_(), draw.normal(*draw.sizes(1))
    outputs = answer.apply(x)
    if not isinstance(outputs, tuple) or len(outputs) != 2:
        yield Failure("one_output", ONE_OUTPUT, {"got": type(outputs).__name__})
        return
    told = _wrong_gradient(outputs[1], x, g, g * 6 * x.detach())
    if told is not None:
        yield Failure("grad_dx_ignored", DX_LOST, told)


# gradient_penalty

NO_NUMBER = {
    "en": "The penalty is one number, a tensor of shape (), so that it can be differentiated; {got} came.",
    "zh": "惩罚项是一个数，应当是形状为 () 的张量，这样才能继续求导；实际得到的是 {got}。",
}
VALUE = {
    "en": "For a batch of {n} rows in {d} dimensions the penalty is {right:.6g}, and yours is {got:.6g}. "
    "Go through the formula from the inside: one gradient per row, its length over the columns, the mean over rows.",
    "zh": "对 {n} 行、{d} 维的一个批次，惩罚项应为 {right:.6g}，你的是 {got:.6g}。"
    "从里到外核对公式：每行一个梯度，沿列求长度，再对各行取平均。",
}
NO_GRAPH = {
    "en": "The value is right, but nothing flows from it back to the critic's weights: training would go on as if the "
    "penalty were not there. Look at nbautograd.graph of your penalty. Where does it end?",
    "zh": "数值是对的，但没有梯度从它流回判别网络的权重：训练会照常进行，就像没有惩罚项一样。"
    "用 nbautograd.graph 看看你的惩罚项，计算图断在哪里？",
}
DERIVATIVE = {
    "en": "The value is right, but its derivative by the critic's weights is not: some way from the weights to the"
    " penalty is cut, or there twice. Which of your tensors depend on the weights, and does the graph go through each?",
    "zh": "数值是对的，但它对判别网络权重的导数不对：从权重到惩罚项的路，有的断了，或者多算了一次。"
    "你的哪些张量与权重有关？计算图经过它们时都没有断吗？",
}
LEAVES = {
    "en": "After the call there is something in .grad of {who}. An optimizer would add it to its step. "
    "torch.autograd.grad gives a gradient without leaving it anywhere.",
    "zh": "调用之后，{who} 的 .grad 里多了东西，优化器会把它一并加进更新。"
    "torch.autograd.grad 能给出梯度，又不会留在任何地方。",
}


def _penalises(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Check at critics h(a u) · w for a few h, where u mixes neighbouring columns of x: none can be taken alone."""
    a = float(draw.uniform(0.5, 1.5))
    critics: tuple[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]], ...] = (
        (lambda x: (a * x) ** 3, lambda x: 3 * a**3 * x**2),
        (lambda x: (a * x).tanh(), lambda x: a * (1 - (a * x).tanh() ** 2)),
        (lambda x: (a * x).sin(), lambda x: a * (a * x).cos()),
    )
    for turn, (bent, slope) in enumerate(critics):
        n, d = InputGenerator(draw.seed, turn).sizes(2)
        x = draw.away_from(draw.normal(n, d), 0.0, 0.3).requires_grad_()
        w = draw.normal(d).requires_grad_()
        penalty = answer(_critic(bent, w), x)
        slopes = slope(x + x.roll(1, 1) / 2) * w
        right = (((slopes + slopes.roll(-1, 1) / 2).norm(dim=1) - 1) ** 2).mean()
        failure = _not_the_penalty(penalty, right, (n, d)) or _not_differentiable(penalty, right, x, w)
        if failure is not None:
            yield failure
            return


def _critic(bent: Callable[[Tensor], Tensor], w: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda rows: bent(rows + rows.roll(1, 1) / 2) @ w


def _not_the_penalty(penalty: Any, right: Tensor, size: tuple[int, int]) -> Failure | None:
    if not isinstance(penalty, Tensor) or penalty.shape != ():
        got = tuple(penalty.shape) if isinstance(penalty, Tensor) else type(penalty).__name__
        return Failure("no_number", NO_NUMBER, {"got": got})
    if not close(penalty, right, 1e-5):
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
    return None if close(got, expected, 1e-5) else Failure("wrong_derivative", DERIVATIVE)


def _with_dimensions(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    """NumPy gives a number back for an array without dimensions, which is another lesson; float32 is none."""
    return [*list(elementwise()(draw))[1:], (draw.normal(3).float(),)]


EXERCISES = (
    Exercise(
        "my_cube", "MyCube", "value own_function gradient double_backward custom edges",
        formula=lambda x: x**3, inputs=normals("ab"), edges=elementwise(), apply=_first_output, own=_uses_grad_dx,
    ),
    Exercise(
        "sinh", "Sinh", "value own_function gradient double_backward custom edges",
        formula=torch.sinh, inputs=normals("ab"), edges=elementwise(), apply=_first_output, own=_through_all_outputs,
        ready_made={"backward": {"exp", "sinh", "cosh", "tanh"}},
        notes={"ready_made": EXP_AGAIN},
    ),
    Exercise("silu", "Silu", "value own_function gradient double_backward edges",
        formula=lambda x: x * x.sigmoid(), inputs=normals("ab"), edges=elementwise()),
    Exercise("numpy_sin", "NumpySin", "value own_function gradient double_backward edges",
        formula=torch.sin, inputs=normals("ab"), edges=_with_dimensions),
    Exercise("gradient_penalty", "gradient_penalty", "custom", own=_penalises),
)  # fmt: skip
