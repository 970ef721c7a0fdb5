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


def _through_all_outputs(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Differentiate each of the three outputs alone."""
    x, g = draw.normal(*draw.sizes(1)).requires_grad_(), draw.normal(*draw.sizes(1))
    outputs, exponentials = answer.apply(x), (x.detach().exp(), (-x.detach()).exp())
    three = isinstance(outputs, tuple) and len(outputs) == 3
    if not three or not all(close(y, e, 1e-9) for y, e in zip(outputs[1:], exponentials, strict=True)):
        yield Failure("three_outputs", "course.n08.three_outputs")
        return
    for number, slope in ((2, exponentials[0]), (3, -exponentials[1])):
        told = _wrong_gradient(answer.apply(x)[number - 1], x, g, g * slope)
        if told is not None:
            yield Failure("exponential_ignored", "course.n08.exp_lost", {"number": number, **told})
            return


def _wrong_gradient(output: Tensor, x: Tensor, g: Tensor, right: Tensor) -> dict[str, float] | None:
    """Return the number of x whose gradient is furthest from right, with both, unless all are right."""
    found = torch.autograd.grad(output, x, g, allow_unused=True)[0] if output.requires_grad else None
    found = torch.zeros_like(x) if found is None else found
    k = int((found - right).abs().argmax())
    one = {name: values[k].item() for name, values in (("x", x), ("got", found), ("right", right))}
    return None if close(found, right, 1e-9) else one


# my_cube


def _uses_grad_dx(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Differentiate the second output too, which a backward without grad_dx gets wrong."""
    x, g = draw.normal(*draw.sizes(1)).requires_grad_(), draw.normal(*draw.sizes(1))
    outputs = answer.apply(x)
    if not isinstance(outputs, tuple) or len(outputs) != 2:
        yield Failure("one_output", "course.n08.one_output", {"got": type(outputs).__name__})
        return
    told = _wrong_gradient(outputs[1], x, g, g * 6 * x.detach())
    if told is not None:
        yield Failure("grad_dx_ignored", "course.n08.dx_lost", told)


# gradient_penalty


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
        return Failure("no_number", "course.n08.no_number", {"got": got})
    if not close(penalty, right, 1e-5):
        params = {"n": size[0], "d": size[1], "right": right.item(), "got": penalty.item()}
        return Failure("wrong_value", "course.n08.value", params)
    return None


def _not_differentiable(penalty: Tensor, right: Tensor, x: Tensor, w: Tensor) -> Failure | None:
    left: dict[str, Tensor | None] = {"x": x.grad, "w": w.grad}
    for who, grad in left.items():
        if grad is not None:
            return Failure("leaves_grad", "course.n08.leaves", {"who": who})
    if not penalty.requires_grad:
        return Failure("no_graph", "course.n08.no_graph")
    got: Tensor | None = torch.autograd.grad(penalty, w, allow_unused=True)[0]
    (expected,) = torch.autograd.grad(right, w)
    if got is None:
        return Failure("no_graph", "course.n08.no_graph")
    return None if close(got, expected, 1e-5) else Failure("wrong_derivative", "course.n08.derivative")


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
        notes={"ready_made": "course.n08.exp_again"},
    ),
    Exercise("silu", "Silu", "value own_function gradient double_backward edges",
        formula=lambda x: x * x.sigmoid(), inputs=normals("ab"), edges=elementwise()),
    Exercise("numpy_sin", "NumpySin", "value own_function gradient double_backward edges",
        formula=torch.sin, inputs=normals("ab"), edges=_with_dimensions),
    Exercise("gradient_penalty", "gradient_penalty", "custom", own=_penalises),
)  # fmt: skip
