"""Exercises of notebook 07, in-place operations and saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, normals

# exp_in_place


def on_a_copy(answer: Any) -> Callable[..., Any]:
    """Call a Function that writes into its input on a copy of it."""
    return lambda x: answer.apply(x.clone())


def in_place(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Yield a failure unless a Function of one tensor writes its result into that tensor and says so."""
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    h = 1 * x
    y = answer.apply(h)
    if not torch.equal(h.detach(), y.detach()):
        yield Failure("not_in_place", "course.n07.not_in_place")
    elif y.data_ptr() != h.data_ptr():
        yield Failure("other_object", "course.n07.other_object")
    elif y is not h:
        yield Failure("unmarked", "course.n07.unmarked", {"name": answer.__name__})
    else:
        grad_output = torch.ones_like(y)
        torch.autograd.grad(y, x, grad_output)
        if not bool((grad_output == 1).all()):
            yield Failure("mutates_grad_output", "course.n07.grad_output")


# head


def _row_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    pages, rows, columns = draw.sizes(3)
    yield draw.normal(rows, columns), rows
    yield draw.normal(rows, columns), 0
    yield draw.normal(pages, rows, columns), pages - 1
    yield draw.normal(columns), 2
    yield draw.normal(columns, rows).t(), 1


def _own_memory(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    h = 1 * x
    before = h.detach().clone()
    head = answer.apply(h, 2)
    try:
        head.mul_(10)
    except RuntimeError:
        yield Failure("view_returned", "course.n07.view")
        return
    if not torch.equal(h.detach(), before):
        yield Failure("shares_memory", "course.n07.shared")


EXERCISES = (
    Exercise(
        "exp_in_place", "ExpInPlace", "value gradient own_function custom edges",
        formula=torch.exp, inputs=normals("ab"), apply=on_a_copy, own=in_place, edges=elementwise(),
        ready_made={"backward": {"exp"}}, notes={"ready_made": "course.n07.old_numbers"},
    ),
    Exercise(
        "scale_by", "ScaleBy", "value own_function gradient edges",
        formula=lambda x, s: x * s, inputs=lambda draw: (draw.normal(*draw.sizes(2)), float(draw.normal())),
        edges=elementwise(-2.5),
    ),
    Exercise("tanh", "Tanh", "value own_function gradient double_backward context edges",
        formula=torch.tanh, inputs=normals("ab"), edges=elementwise()),
    Exercise(
        "head", "Head", "value own_function gradient custom edges",
        formula=lambda x, n: x[:n].clone(), own=_own_memory, inside=True, edges=_row_edges,
        inputs=lambda draw: (draw.normal(*draw.sizes(2)), int(draw.integers(1, *draw.sizes(1)))),
    ),
)  # fmt: skip
