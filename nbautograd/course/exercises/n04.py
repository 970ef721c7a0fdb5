"""Exercises of notebook 04, the ctx contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, normals
from nbautograd.course.exercises.tried import backward_calls

# mul_constant


def _scaled(draw: InputGenerator) -> tuple[Tensor, float]:
    return draw.normal(*draw.sizes(2)), (-1) ** draw.turn * float(draw.uniform(2.0, 3.0))


NONE_RAISES = {
    "en": "Where no gradient flows back, `None` arrives in this backward, and it raises {error}: {said}. Who turns"
    " materialising off has to expect that.",
    "zh": "没有梯度流回来时，这个 backward 收到的是 `None`，结果抛出了 {error}：{said}。"
    "关掉全零张量之后，就要准备好收到 `None`。",
}
ZEROS_ARRIVE = {
    "en": "Where no gradient flows back, a tensor of zeros arrives in backward. Ask for `None`: set_materialize_grads.",
    "zh": "没有梯度流回来时，backward 收到的是全零张量。请声明要 `None`：set_materialize_grads。",
}
NONE_BECOMES_ZEROS = {
    "en": "`None` arrives, and a tensor goes out. No gradient in, none out: that is what saves the work.",
    "zh": "收到的是 `None`，返回的却是张量。没有梯度进来，就没有梯度出去，这样才省事。",
}


class _Stop(torch.autograd.Function):
    """The identity, from which no gradient comes back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return None


def _takes_none(answer: Any, draw: InputGenerator, calls: list[tuple[Any, Any]], *rest: Any) -> Iterator[Failure]:
    """Call it where no gradient flows back; notes what backward got and returned."""
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    try:
        with backward_calls(answer) as noted:
            outputs = _tuple(answer.apply(x, *rest))
            stopped = [_Stop.apply(y).sum() for y in outputs]  # type: ignore[no-untyped-call]
            torch.autograd.grad(stopped, x, allow_unused=True)
    except Exception as error:
        said = str(error).split("\n")[0][:120]
        yield Failure("none_raises", NONE_RAISES, {"error": type(error).__name__, "said": said})
    calls += noted


def _passes_none_on(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    calls: list[tuple[Any, Any]] = []
    failures = list(_takes_none(answer, draw, calls, 2.0))
    yield from failures
    if not failures and any(got != (None,) for got, _ in calls):
        yield Failure("materialized", ZEROS_ARRIVE)
    elif not failures and any(item is not None for _, returned in calls for item in _tuple(returned)):
        yield Failure("none_becomes_zeros", NONE_BECOMES_ZEROS)


def _tuple(returned: Any) -> tuple[Any, ...]:
    return returned if isinstance(returned, tuple) else (returned,)


# sin_cos

USED_ALONE = {
    "en": "It fails when only `{output}` is used: {error}: {said}. What arrives for an output that nobody uses?",
    "zh": "只用到 `{output}` 时它会出错：{error}：{said}。没人用的那个输出，送来的是什么？",
}
ALONE_WRONG = {
    "en": "When only `{output}` is used, the gradient is wrong. The share of the other output is zero; is that all that"
    " you leave out?",
    "zh": "只用到 `{output}` 时，梯度不对。另一个输出的那一份是零，你略去的只有这一份吗？",
}


def _one_output_only(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    rules: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (("sin", torch.cos), ("cos", lambda t: -torch.sin(t)))
    for k, (name, derivative) in enumerate(rules):
        g = draw.normal(*x.shape)
        try:
            with backward_calls(answer) as calls:
                found = torch.autograd.grad(answer.apply(x)[k], x, g, allow_unused=True)[0]
        except Exception as error:
            params = {"output": name, "error": type(error).__name__, "said": str(error).split("\n")[0][:120]}
            yield Failure("unused_output_raises", USED_ALONE, params)
            return
        if found is None or not torch.allclose(found, g * derivative(x.detach())):
            yield Failure("unused_output_wrong", ALONE_WRONG, {"output": name})
            return
        arrived = [item for grads, _ in calls for item in grads]
        if arrived and all(item is not None for item in arrived):
            yield Failure("materialized", ZEROS_ARRIVE)
            return
    yield from _takes_none(answer, draw, [])


# kill_head


def _kill_head(input: Tensor, n: int) -> Tensor:
    keep = torch.ones_like(input)
    keep[:, :n] = 0
    return input * keep


def _table(draw: InputGenerator) -> tuple[Tensor, int]:
    rows, columns = draw.sizes(2)
    return draw.normal(rows + 2, columns + 3), int(draw.integers(2, columns + 2))


def _tables(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    rows, columns = draw.sizes(2)
    yield draw.normal(1, columns), 2
    yield draw.normal(0, columns), 2
    yield torch.zeros(rows, columns, dtype=torch.float64), 1
    yield draw.normal(rows, columns), columns
    yield draw.normal(rows, columns), 0


LOSS = {
    "en": "At k = {step} of the loop the loss is {got:.4f}, and it should be {expected:.4f}. Which numbers of the"
    " input did the steps before change, and should they?",
    "zh": "循环到 k = {step} 时，损失是 {got:.4f}，应当是 {expected:.4f}。之前几步改动了输入里的哪些数？该不该改？",
}


def _losses(kill: Callable[..., Tensor], start: Tensor, target: Tensor, rounds: int = 5) -> list[float]:
    x, losses = start.clone().requires_grad_(), []
    for _ in range(rounds):  # by hand: importing torch.optim takes seconds
        loss = torch.nn.functional.mse_loss(kill(x, 2), target)
        losses.append(loss.item())
        x = (x - torch.autograd.grad(loss, x)[0]).detach().requires_grad_()
    return losses


def _follows(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    rows, columns = draw.sizes(2)
    size = rows, columns + 4
    start, target = draw.normal(*size), draw.normal(*size)
    expected, got = _losses(_kill_head, start, target), _losses(answer.apply, start, target)
    for step, (right, found) in enumerate(zip(expected, got, strict=True)):
        if step and abs(right - found) > 1e-9:  # before the first step it is forward's mistake
            yield Failure("other_loss", LOSS, {"step": step, "got": found, "expected": right})
            return


# top_k


def _top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, indices = x.topk(k, dim=-1)
    return values, torch.zeros_like(x).scatter(-1, indices, 1.0)


def _rows_and_count(draw: InputGenerator) -> tuple[Tensor, int]:
    rows, columns = draw.sizes(2)
    return draw.normal(rows + 1, columns + 2), int(draw.integers(2, min(rows, columns) + 2))


def _rows_to_choose_from(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    rows, columns = draw.sizes(2)
    yield draw.normal(rows, columns), 1
    yield draw.normal(rows, columns), columns
    yield draw.normal(1, columns), 2
    yield draw.normal(columns, rows).t(), 2


NOT_MARKED = {
    "en": "`mask.requires_grad` is True, so somebody may wait for its gradient in vain. Say that there is none.",
    "zh": "`mask.requires_grad` 是 True，别人可能会白等它的梯度。请声明它没有梯度。",
}
VALUES_MARKED = {
    "en": "`values.requires_grad` is False: the gradient ends before it gets to you. Which output is to be marked?",
    "zh": "`values.requires_grad` 是 False：梯度还没到你这里就断了。该标记的是哪一个输出？",
}


def _marked(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    values, mask = answer.apply(draw.normal(*draw.sizes(2)).requires_grad_(), 2)
    if not values.requires_grad:
        yield Failure("values_marked", VALUES_MARKED)
    elif mask.requires_grad:
        yield Failure("not_marked", NOT_MARKED)


EXERCISES = (
    Exercise(
        "mul_constant", "MulConstant",
        "value own_function gradient custom context edges",
        formula=lambda tensor, constant: tensor * constant,
        inputs=_scaled,
        own=lambda answer, draw: _takes_none(answer, draw, [], 2.0),
        edges=elementwise(-2.5),
    ),
    Exercise(
        "mul_constant_none", "MulConstant",
        "value own_function gradient custom context edges",
        formula=lambda tensor, constant: tensor * constant,
        inputs=_scaled,
        own=_passes_none_on,
        edges=elementwise(-2.5),
    ),
    Exercise(
        "sin_cos", "SinCos", "value own_function gradient custom context edges",
        formula=lambda x: (x.sin(), x.cos()), inputs=normals("ab"), own=_one_output_only,
        edges=elementwise(),
        notes={
            "undefined_grad": {
                "en": "A None and a tensor of zeros in its place give different gradients. Compare your branches with"
                " each other.",
                "zh": "送来 None 与送来全零张量，你算出的梯度不一样。把各个分支互相对照一下。",
            },
        },
    ),
    Exercise(
        "kill_head", "KillHead", "value own_function gradient custom edges",
        formula=_kill_head, inputs=_table, own=_follows, edges=_tables,
    ),
    Exercise(
        "top_k", "TopK", "value own_function custom gradient edges",
        formula=_top_k, inputs=_rows_and_count, own=_marked, edges=_rows_to_choose_from,
    ),
)  # fmt: skip
