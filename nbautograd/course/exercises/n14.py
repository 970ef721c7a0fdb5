"""Exercises of notebook 14, saving memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from nbautograd.core.checking.problem import functions_of
from nbautograd.core.user_source import function_class
from nbautograd.course.checks.context import saved_bytes
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.n05 import classified
from nbautograd.course.exercises.n07 import in_place, on_a_copy
from nbautograd.course.exercises.shapes import elementwise, normals, points

# lean_cross_entropy


def _classified_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield torch.tensor([[0.0, 1000.0], [-1000.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1]), 0.25
    yield draw.normal(3, 4) + 1000, draw.integers(0, 4, 3), 0.0
    yield draw.normal(1, 2), torch.tensor([1]), 0.5
    yield draw.normal(3, 1), torch.zeros(3, dtype=torch.int64), 0.1
    yield draw.normal(4, 3).t(), torch.tensor([3, 3, 0]), 0.9


# recomputed_norm


def _image_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    yield from points("1244,3233", "3145,1111", "2343,2323")(draw)
    yield draw.normal(2, 5, 4, 2).permute(0, 3, 1, 2), draw.normal(2, 2, 3, 2).transpose(2, 3)
    yield torch.ones(2, 1, 3, 3, dtype=torch.float64), draw.normal(2, 1, 2, 2)  # no variance at all


# checkpoint

ROWS, COLUMNS, HIDDEN = 20, 8, 100
BESIDES = 8192  # bytes: of the state of torch's random numbers, and a little more


def _block(x: Tensor, weight: Tensor) -> Tensor:
    return torch.tanh(x @ weight).exp().sin()


def _dropping(x: Tensor, weight: Tensor) -> Tensor:
    return functional.dropout(_block(x, weight), 0.5)


def _picking(x: Tensor, index: Tensor) -> Tensor:
    return torch.tanh(x[index])


def _error(error: Exception) -> dict[str, str]:
    return {"error": type(error).__name__, "said": str(error).split("\n")[0][:160]}


def _is_own(answer: Any, inputs: tuple[Tensor, ...]) -> Failure | None:
    own, recording = function_class(answer), []
    if own is None or any(base.__module__.startswith("torch.utils") for base in own.__mro__):
        return Failure("not_a_function", "course.not_a_function", {"name": "Checkpoint"})

    def block(*given: Tensor) -> Tensor:
        recording.append(torch.is_grad_enabled())
        return _block(*given)

    in_graph = functions_of((answer.apply(block, *inputs),))
    if own not in in_graph:
        return Failure("not_a_function", "course.not_a_function", {"name": "Checkpoint"})
    return Failure("graph_in_forward", "course.n14.graph") if any(recording) else None


def _checkpoints(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    rows = draw.choice(range(ROWS, 2 * ROWS))
    inputs = draw.normal(rows, COLUMNS).requires_grad_(), draw.normal(COLUMNS, HIDDEN).requires_grad_()
    failure = (  # the first; a later check would only say the same again
        _is_own(answer, inputs)
        or _same_value(answer, inputs, draw)
        or _few_bytes(answer, inputs)
        or _same_gradients(answer, _block, inputs, draw)
        or _same_gradients(answer, _dropping, inputs, draw)
        or _called_twice(answer, inputs)
        or _whole_numbers(answer, draw)
    )
    if failure is not None:
        yield failure


@contextlib.contextmanager
def _random_numbers(draw: InputGenerator) -> Iterator[Callable[[], None]]:
    """Put torch's random numbers into a drawn state, which no seed gives; yield what puts them back into it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(draw.choice(range(10**6)))
        torch.rand(draw.choice(range(1, 9)))
        yield partial(torch.set_rng_state, torch.get_rng_state())


def _same_value(answer: Any, inputs: tuple[Tensor, ...], draw: InputGenerator) -> Failure | None:
    with _random_numbers(draw) as again:
        expected = _dropping(*inputs)
        again()
        found = answer.apply(_dropping, *inputs)
    same = isinstance(found, Tensor) and found.shape == expected.shape and torch.allclose(found, expected)
    return None if same else Failure("other_value", "course.n14.value")


def _few_bytes(answer: Any, inputs: tuple[Tensor, ...]) -> Failure | None:
    least = sum(x.numel() * x.element_size() for x in inputs)
    got = saved_bytes(lambda *given: answer.apply(_block, *given), inputs)
    return (
        Failure("keeps_too_much", "course.n14.bytes", {"got": got, "least": least}) if got > least + BESIDES else None
    )


def _same_gradients(
    answer: Any, function: Callable[..., Tensor], inputs: tuple[Tensor, ...], draw: InputGenerator
) -> Failure | None:
    cotangent = draw.normal(len(inputs[0]), HIDDEN)
    with _random_numbers(draw) as again:
        expected = torch.autograd.grad(function(*inputs), inputs, cotangent)
        again()
        y = answer.apply(function, *inputs)
        torch.rand(3)  # somebody else draws in between
        before = torch.get_rng_state()
        try:
            found = list[Tensor | None](torch.autograd.grad(y, inputs, cotangent.clone(), allow_unused=True))
        except Exception as error:
            return Failure("backward_raises", "course.n14.raises", _error(error))
        moved = not torch.equal(torch.get_rng_state(), before)
    for number, (got, right) in enumerate(zip(found, expected, strict=True), 1):
        if got is None:
            return Failure("no_gradient", "course.n14.none", {"number": number})
        if not torch.allclose(got, right):
            code, sentence = (
                ("gradient", "course.n14.gradient")
                if function is _block
                else ("other_random_numbers", "course.n14.other_numbers")
            )
            return Failure(code, sentence, {"number": number})
    return Failure("random_state_moved", "course.n14.moved") if moved else None


def _called_twice(answer: Any, inputs: tuple[Tensor, ...]) -> Failure | None:
    calls: list[int] = []

    def counted(*given: Tensor) -> Tensor:
        calls.append(1)
        return _block(*given)

    y = answer.apply(counted, *inputs)
    forward = len(calls)
    torch.autograd.grad(y.sum(), inputs)
    backward = len(calls) - forward
    if (forward, backward) != (1, 1):
        return Failure("runs_too_often", "course.n14.calls", {"forward": forward, "backward": backward})
    return None


def _whole_numbers(answer: Any, draw: InputGenerator) -> Failure | None:
    x, index = draw.normal(4).requires_grad_(), torch.tensor([2, 0])
    try:
        (found,) = torch.autograd.grad(answer.apply(_picking, x, index).sum(), x)
        (right,) = torch.autograd.grad(_picking(x, index).sum(), x)
    except Exception as error:
        return Failure("backward_raises", "course.n14.raises", _error(error))
    return None if torch.allclose(found, right) else Failure("gradient", "course.n14.gradient", {"number": 1})


EXERCISES = (
    Exercise(
        "lean_cross_entropy", "LeanCrossEntropy", "value own_function gradient context edges",
        formula=lambda logits, target, smoothing: functional.cross_entropy(logits, target, label_smoothing=smoothing),
        inputs=lambda draw: (*classified(draw), draw.choice((0.1, 0.2, 0.3))),
        edges=_classified_edges,
        saved_bytes=lambda logits, target, smoothing: 8 * (logits.numel() + 2 * len(target)),
    ),
    Exercise(
        "recomputed_norm", "ConvNorm", "value own_function gradient context edges",
        formula=lambda x, weight: functional.batch_norm(functional.conv2d(x, weight), None, None, training=True),
        inputs=normals("ab55", "cb22"), edges=_image_edges,
        saved_bytes=lambda x, weight: 8 * (x.numel() + weight.numel() + 2 * len(weight)),
    ),
    Exercise(
        "softplus_in_place", "SoftplusInPlace", "value own_function gradient custom context edges",
        formula=functional.softplus, inputs=normals("ab"), apply=on_a_copy, own=in_place,
        edges=lambda draw: (
            *elementwise()(draw), (torch.tensor([-1000.0, -30.0, 0.0, 30.0, 1000.0], dtype=torch.float64),),
        ),
        saved_bytes=lambda x: 8 * x.numel(),
    ),
    Exercise("checkpoint", "Checkpoint", "custom", own=_checkpoints),
)  # fmt: skip
