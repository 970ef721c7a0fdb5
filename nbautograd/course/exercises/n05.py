"""Exercises of notebook 05, reductions and normalisation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise
from nbautograd.course.exercises.shapes import normals, points

INF = float("inf")
LARGE = {"ready_made": "course.n05.ready_made"} | dict.fromkeys(("edge_value", "edge_gradient"), "course.n05.subtract")
_READY = {"logsumexp", "logaddexp", "softmax", "log_softmax", "nll_loss", "cross_entropy"}
FROM_SCRATCH = {"forward": _READY, "backward": _READY}


def _logsumexp_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield (draw.normal(2, draw.sizes(3)[2]) + torch.tensor([[1000.0], [-1000.0]], dtype=torch.float64),)
    yield (torch.tensor([[0.0, 1000.0, -1000.0], [-INF, 0.5, 1.0]], dtype=torch.float64),)
    yield from points("c", "abc", "b1", "cbt", "0c")(draw)


def classified(draw: InputGenerator) -> tuple[Tensor, Tensor]:
    """Logits, and the class of each row."""
    rows, classes = draw.sizes(2)
    return draw.normal(rows, classes), draw.integers(0, classes, rows)


def _classified_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield torch.tensor([[0.0, 1000.0], [-1000.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1])
    rows, classes = draw.sizes(2)
    yield draw.normal(rows, classes) + 1000, draw.integers(0, classes, rows)
    yield draw.normal(1, 2), torch.tensor([1])
    yield draw.normal(rows, 1), torch.zeros(rows, dtype=torch.int64)
    yield draw.normal(classes, rows).t(), draw.integers(0, classes, rows)


def _rows_to_norm(draw: InputGenerator) -> tuple[Tensor, ...]:
    pages, rows, columns = draw.sizes(3)
    columns += 2  # of two numbers only the sign is left
    return draw.normal(pages, rows, columns) + 2, draw.uniform(0.5, 2.0, columns), draw.normal(columns)


def _norm_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    rows, columns = draw.sizes(2)
    weight, bias = draw.uniform(0.5, 2.0, columns), draw.normal(columns)
    yield draw.normal(rows, columns), weight, bias
    yield draw.normal(columns), weight, bias
    yield draw.normal(1, columns), weight, bias
    yield draw.normal(columns, rows).t(), weight, bias
    yield torch.ones(rows, columns, dtype=torch.float64), weight, bias


def _taken(draw: InputGenerator) -> tuple[Tensor, Tensor]:
    rows, columns = draw.sizes(2)
    return draw.normal(rows, columns), draw.integers(0, rows, rows + 3)  # more than there are: some are taken twice


def _taken_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    rows, columns, many = draw.sizes(3)
    yield draw.normal(rows, columns), draw.integers(0, rows, 2, many)
    yield draw.normal(rows, columns), draw.integers(0, rows, 2, 1, many)
    yield draw.normal(rows, columns), torch.zeros(0, dtype=torch.int64)
    yield draw.normal(rows, columns), draw.integers(0, rows)
    yield draw.normal(columns, rows).t(), torch.full((many,), rows - 1)


EXERCISES = (
    Exercise(
        "mean_over", "Mean", "value own_function gradient edges",
        formula=lambda x, dim, keepdim: x.mean(dim, keepdim=keepdim),
        inputs=normals("aa", 1, False),
        edges=points(
            ("bb", 0, False), ("bc", 1, True), ("abc", 1, False), ("abc", -2, False), ("b1", -1, False),
            ("cbt", 0, True), ("c", 0, False),
        ),
    ),
    Exercise(
        "max_over", "Max", "value own_function gradient context edges",
        formula=lambda x, dim: tuple(torch.max(x, dim)), inputs=normals("ab", 1),
        edges=points(("bb", 0), ("abc", 1), ("abc", -1), ("abc", -3), ("cbt", 0), ("c", 0), ("0c", 1)),
        saved_bytes=lambda x, dim: 16 * x.numel() // x.shape[dim],  # the values too, which the caller has
    ),
    Exercise(
        "logsumexp", "LogSumExp", "value own_function gradient edges",
        formula=lambda x: torch.logsumexp(x, -1), inputs=normals("ab"), edges=_logsumexp_edges,
        ready_made=FROM_SCRATCH, notes=LARGE,
    ),
    Exercise(
        "cross_entropy", "CrossEntropy", "value own_function gradient edges",
        formula=functional.cross_entropy, inputs=classified, edges=_classified_edges,
        ready_made=FROM_SCRATCH, notes=LARGE,
    ),
    Exercise(
        "layer_norm", "LayerNorm", "value own_function gradient edges",
        formula=lambda x, weight, bias: functional.layer_norm(x, weight.shape, weight, bias, 1e-5),
        inputs=_rows_to_norm, edges=_norm_edges,
    ),
    Exercise(
        "take_rows", "TakeRows", "value own_function gradient edges",
        formula=lambda table, index: table[index], inputs=_taken, edges=_taken_edges,
    ),
)  # fmt: skip
