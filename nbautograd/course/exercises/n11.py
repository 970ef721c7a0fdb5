"""Exercises of notebook 11, code that is not PyTorch and numerical backwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import normals, points

# numpy_softplus


def _softplus_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    """Yield no dimensions, empty, transposed, float32, far out: there a careless exp overflows."""
    yield from points("", "03", "34t")(draw)
    yield (draw.normal(3).float(),)
    yield (torch.tensor([-800.0, -30.0, 0.0, 30.0, 800.0], dtype=torch.float64),)


def _numpy_once(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x, g = draw.normal(3).requires_grad_(), draw.normal(3).requires_grad_()
    (slope,) = torch.autograd.grad(answer.apply(x), x, g, create_graph=True)
    try:
        slope.sum().backward()
    except RuntimeError:
        return
    yield Failure("second_derivative_given", "course.n11.gives_second")


# numpy_correlate


# numerical_backward


_INSIDE: WeakKeyDictionary[Callable[..., Any], tuple[float, float]] = WeakKeyDictionary()  # box -> a, b


def _black_box(draw: InputGenerator) -> Callable[..., Any]:
    """Draw y_i = sin(a x_i) + b x_i times the mean of x, in NumPy: every output depends on every input."""
    a, b = (float(draw.uniform(0.5, 1.5)) for _ in range(2))

    def box(x: Any) -> Any:
        return np.sin(a * x) + b * x * np.mean(x)

    _INSIDE[box] = a, b
    return box


def _opened(box: Any, x: Tensor) -> Tensor:
    a, b = _INSIDE[box]
    return torch.sin(a * x) + b * x * x.mean()


def _central(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Check at a kink, where the mean of both slopes is what no other difference gives."""
    for dimensions in (1, 2):
        x = draw.normal(*draw.sizes(dimensions)).requires_grad_()
        here = x.detach().numpy().copy()
        (found,) = torch.autograd.grad(answer.apply(partial(_tip, here), x), x, draw.uniform(0.5, 1.0, *x.shape))
        if not float(found.abs().max()) < 1e-3:
            yield Failure(
                "not_central", "course.n11.not_central", {"got": float(found.flatten()[found.abs().argmax()])}
            )
            return


def _tip(here: Any, at: Any) -> Any:
    moved = at - here
    return np.abs(moved) if np.count_nonzero(moved) < 2 else np.full(here.shape, np.nan)


# library_op


def _library_op(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Check that opcheck passes the operation in both dtypes."""
    if not hasattr(answer, "register_autograd"):
        yield Failure("no_operation", "course.n11.plain_function", {"got": type(answer).__name__})
        return
    for dtype in (torch.float64, torch.float32):
        x = draw.normal(3, 4).to(dtype).requires_grad_()
        for test, outcome in torch.library.opcheck(answer, (x,), raise_exception=False).items():
            if outcome != "SUCCESS":
                said = re.sub(r" \(with implementation in <.*?>\)", "", " ".join(str(outcome).split()))[:160]
                params = {"dtype": str(dtype)[6:], "test": test, "said": said}
                yield Failure(test.replace("test_", "opcheck_"), "course.n11.opcheck", params)
                return


EXERCISES = (
    Exercise(
        "numpy_softplus", "Softplus", "value gradient own_function custom edges",
        formula=torch.nn.functional.softplus, inputs=normals("ab"), edges=_softplus_edges, own=_numpy_once,
    ),
    Exercise(
        "numpy_correlate", "Correlate", "value gradient edges own_function",
        formula=lambda signal, kernel: torch.nn.functional.conv1d(signal[None, None], kernel[None, None])[0, 0],
        inputs=lambda draw: (draw.normal(sum(draw.sizes(2))), draw.normal(*draw.sizes(1))),
        edges=lambda draw: (*points("6,1", "5,5")(draw), (draw.normal(14)[::2], draw.normal(3))),
    ),
    Exercise(
        "numerical_backward", "Numerical", "value gradient cost own_function custom edges",
        formula=_opened, own=_central, forward_calls=lambda box, x: 2 * x.numel() + 1,
        inputs=lambda draw: (_black_box(draw), draw.normal(*draw.sizes(1))),
        edges=lambda draw: (
            (_black_box(draw), x) for x in (draw.normal(1), draw.normal(2, 3), draw.normal(8)[::2])
        ),
    ),
    Exercise(
        "library_op", "softplus", "value gradient own_function custom edges",
        formula=torch.nn.functional.softplus, inputs=normals("ab"), edges=_softplus_edges, own=_library_op,
    ),
)  # fmt: skip
