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
        yield Failure("none_raises", "course.n04.none_raises", {"error": type(error).__name__, "said": said})
    calls += noted


def _passes_none_on(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    calls: list[tuple[Any, Any]] = []
    failures = list(_takes_none(answer, draw, calls, 2.0))
    yield from failures
    if not failures and any(got != (None,) for got, _ in calls):
        yield Failure("materialized", "course.n04.zeros_arrive")
    elif not failures and any(item is not None for _, returned in calls for item in _tuple(returned)):
        yield Failure("none_becomes_zeros", "course.n04.none_becomes_zeros")


def _tuple(returned: Any) -> tuple[Any, ...]:
    return returned if isinstance(returned, tuple) else (returned,)


# sin_cos


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
            yield Failure("unused_output_raises", "course.n04.used_alone", params)
            return
        if found is None or not torch.allclose(found, g * derivative(x.detach())):
            yield Failure("unused_output_wrong", "course.n04.alone_wrong", {"output": name})
            return
        arrived = [item for grads, _ in calls for item in grads]
        if arrived and all(item is not None for item in arrived):
            yield Failure("materialized", "course.n04.zeros_arrive")
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
            yield Failure("other_loss", "course.n04.loss", {"step": step, "got": found, "expected": right})
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


def _marked(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    values, mask = answer.apply(draw.normal(*draw.sizes(2)).requires_grad_(), 2)
    if not values.requires_grad:
        yield Failure("values_marked", "course.n04.values_marked")
    elif mask.requires_grad:
        yield Failure("not_marked", "course.n04.not_marked")


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
        notes={"undefined_grad": "course.n04.undefined_grad"},
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
