"""Exercises of notebook 05, reductions and normalisation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.observed import TorchCalls, with_backward_watched

INF = float("inf")
READY_MADE = {
    "en": "`torch.{name}` computes what you are to write here. exp, log, sums and a maximum are enough.",
    "zh": "`torch.{name}` 算的正是这里要你写的东西。用 exp、log、求和与取最大就够了。",
}
SUBTRACT = {
    "en": "Not right at inputs of shapes {shapes}. Some of what is tried here holds numbers near 1000 and near -1000:"
    " how large do your exponents become?",
    "zh": "输入形状为 {shapes} 时不对。这里试的数，有些接近 1000 或 -1000：你取指数的那些数，最大会到多少？",
}
LAST_ONE = {
    "en": "A row of the table that was taken several times has not got the sum of what came back for it. What does an"
    " assignment by index do with the second of two equal indices?",
    "zh": "表里被取了好几次的那一行，没有得到各次送回的梯度之和。按下标赋值时，遇到重复的下标会怎样？",
}


def _from_scratch(inputs: Callable[[Draw], tuple[Any, ...]], refused: set[str]) -> Callable[..., Iterator[Failure]]:
    """Refuse torch's ready-made version, in forward and in backward."""

    def own(answer: Any, draw: Draw) -> Iterator[Failure]:
        names: list[str] = []
        watched = with_backward_watched(answer, lambda _got, _returned, called: names.extend(called))
        x, *rest = inputs(draw)
        with TorchCalls() as calls:
            y = watched.apply(x.requires_grad_(), *rest)
        if y.requires_grad:
            torch.autograd.grad(y.sum(), x)
        for name in (*calls.names, *names):
            if name in refused:
                yield Failure("ready_made", READY_MADE, {"name": name})
                return

    return own


def _mean_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    yield draw.normal(3, 3), 0, False
    yield draw.normal(3, 4), 1, True
    yield draw.normal(2, 3, 4), 1, False
    yield draw.normal(2, 3, 4), -2, False
    yield draw.normal(3, 1), -1, False
    yield draw.normal(4, 3).t(), 0, True
    yield draw.normal(5), 0, False


def _max_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    yield draw.normal(3, 3), 0
    yield draw.normal(2, 3, 4), 1
    yield draw.normal(2, 3, 4), -1
    yield draw.normal(2, 3, 4), -3
    yield draw.normal(4, 3).t(), 0
    yield draw.normal(5), 0
    yield draw.normal(0, 3), 1


def _logits(draw: Draw) -> tuple[Tensor]:
    return (draw.normal(3, 4),)


def _logsumexp_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    yield (draw.normal(2, 3) + torch.tensor([[1000.0], [-1000.0]], dtype=torch.float64),)
    yield (torch.tensor([[0.0, 1000.0, -1000.0], [-INF, 0.5, 1.0]], dtype=torch.float64),)
    yield (draw.normal(5),)
    yield (draw.normal(2, 3, 4),)
    yield (draw.normal(3, 1),)
    yield (draw.normal(4, 3).t(),)
    yield (draw.normal(0, 3),)


def _classified(draw: Draw) -> tuple[Tensor, Tensor]:
    return draw.normal(5, 3), draw.integers(0, 3, 5)


def _classified_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    yield torch.tensor([[0.0, 1000.0], [-1000.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1])
    yield draw.normal(3, 4) + 1000, draw.integers(0, 4, 3)
    yield draw.normal(1, 2), torch.tensor([1])
    yield draw.normal(3, 1), torch.zeros(3, dtype=torch.int64)
    yield draw.normal(4, 3).t(), torch.tensor([3, 3, 0])


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, weight.shape, weight, bias, 1e-5)


def _rows_to_norm(draw: Draw) -> tuple[Tensor, ...]:
    return draw.normal(5, 4) + 2, draw.uniform(0.5, 2.0, 4), draw.normal(4)


def _norm_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    weight, bias = draw.uniform(0.5, 2.0, 4), draw.normal(4)
    yield draw.normal(2, 3, 4), weight, bias
    yield draw.normal(4), weight, bias
    yield draw.normal(1, 4), weight, bias
    yield draw.normal(4, 3).t(), weight, bias
    yield torch.ones(2, 4, dtype=torch.float64), weight, bias


def _taken(draw: Draw) -> tuple[Tensor, Tensor]:
    return draw.normal(5, 3), draw.integers(0, 5, 8)  # 8 of 5: some are taken twice


def _taken_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    yield draw.normal(5, 3), draw.integers(0, 5, 2, 4)
    yield draw.normal(5, 3), torch.zeros(0, dtype=torch.int64)
    yield draw.normal(5, 3), torch.tensor(2)
    yield draw.normal(3, 5).t(), torch.tensor([4, 4, 4])


def _added(answer: Any, draw: Draw) -> Iterator[Failure]:
    table = draw.normal(3, 2).requires_grad_()
    (found,) = torch.autograd.grad(answer.apply(table, torch.tensor([1, 0, 1, 1])).sum(), table)
    if found.shape == table.shape and found.tolist() == [[1, 1], [1, 1], [0, 0]]:
        yield Failure("last_one", LAST_ONE)


EXERCISES = (
    Exercise(
        "mean_over", "Mean", "value own_function gradient linear arity shapes unchanged edges",
        formula=lambda x, dim, keepdim: x.mean(dim, keepdim=keepdim),
        inputs=lambda draw: (draw.normal(3, 3), 1, False), edges=_mean_edges,
    ),
    Exercise(
        "max_over", "Max", "value own_function gradient linear arity shapes unchanged context edges",
        formula=lambda x, dim: tuple(torch.max(x, dim)), inputs=lambda draw: (draw.normal(3, 4), 1), edges=_max_edges,
        saved_bytes=lambda x, dim: 8 * x.numel() // x.shape[dim],
    ),
    Exercise(
        "logsumexp", "LogSumExp", "value own_function gradient linear custom arity shapes unchanged edges",
        formula=lambda x: torch.logsumexp(x, -1), inputs=_logits, edges=_logsumexp_edges,
        own=_from_scratch(_logits, {"logsumexp", "softmax", "log_softmax", "logcumsumexp", "logaddexp"}),
        notes={"edge_value": SUBTRACT, "edge_gradient": SUBTRACT},
    ),
    Exercise(
        "cross_entropy", "CrossEntropy", "value own_function gradient linear custom arity shapes unchanged edges",
        formula=functional.cross_entropy, inputs=_classified, edges=_classified_edges,
        own=_from_scratch(
            _classified, {"logsumexp", "softmax", "log_softmax", "cross_entropy", "nll_loss", "cross_entropy_loss"}
        ),
        notes={"edge_value": SUBTRACT, "edge_gradient": SUBTRACT},
    ),
    Exercise(
        "layer_norm", "LayerNorm", "value own_function gradient linear arity shapes unchanged edges",
        formula=_layer_norm, inputs=_rows_to_norm, edges=_norm_edges,
    ),
    Exercise(
        "take_rows", "TakeRows", "value own_function gradient linear custom arity shapes unchanged edges",
        formula=lambda table, index: table[index], inputs=_taken, edges=_taken_edges, own=_added,
    ),
)  # fmt: skip
