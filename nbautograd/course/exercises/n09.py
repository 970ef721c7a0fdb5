"""Exercises of notebook 09, forward mode, vmap and torch.func."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from nbautograd.course.attempt import close
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, linear, linear_edges, linear_inputs, normals, points

# per_sample


def _for_each_sample(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for samples in (draw.choice(range(4, 9)), 1, draw.choice(range(9, 20))):
        for failure in _for_samples(answer, draw, samples, draw.choice(range(2, 6))):
            yield failure
            return


def _for_samples(answer: Any, draw: InputGenerator, samples: int, features: int) -> Iterator[Failure]:
    weight, bias = draw.normal(features), draw.normal()
    inputs, targets = draw.normal(samples, features), draw.normal(samples)
    residual = 2 * (inputs @ weight + bias - targets)
    right = {"weight": residual[:, None] * inputs, "bias": residual}
    found = answer(weight, bias, inputs, targets)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        got = f"{type(found).__name__} ({len(found)})" if isinstance(found, (tuple, list)) else type(found).__name__
        yield Failure("wrong_number", "course.n09.number", {"got": got})
        return
    for (who, expected), got in zip(right.items(), found, strict=True):
        failure = _sample_gradient(who, got, expected)
        if failure is not None:
            yield failure
            return


def _sample_gradient(who: str, got: Any, expected: Tensor) -> Failure | None:
    shape = tuple(got.shape) if isinstance(got, Tensor) else type(got).__name__
    if shape == tuple(expected.shape[1:]):
        return Failure("summed", "course.n09.summed", {"who": who, "n": len(expected), "got": shape})
    if shape != tuple(expected.shape):
        return Failure(
            "wrong_parameter", "course.n09.parameter", {"who": who, "got": shape, "expected": tuple(expected.shape)}
        )
    if close(got, expected, 1e-6):
        return None
    shown = [(_short(got[0], digits), _short(expected[0], digits)) for digits in (3, 14)]
    mine, right = next((pair for pair in shown if pair[0] != pair[1]), shown[0])
    return Failure("wrong_value", "course.n09.value", {"who": who, "got": mine, "expected": right})


def _short(tensor: Tensor, digits: int) -> str:
    numbers = [f"{value:.{digits}g}" for value in tensor.detach().reshape(-1).tolist()]
    return numbers[0] if tensor.dim() == 0 else f"[{', '.join(numbers)}]"


# hessian_of


class _Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        product: Tensor = grad_output * 3 * x**2
        return product

    @staticmethod
    def jvp(ctx: Any, t: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        product: Tensor = t * 3 * x**2
        return product


def _cube(x: Tensor) -> Tensor:
    cubed: Tensor = _Cube.apply(x)  # type: ignore[no-untyped-call]
    return cubed


def _functions(draw: InputGenerator) -> dict[str, Callable[[Tensor], Tensor]]:
    """Draw the numbers in a few functions of a vector."""
    a, b, k = (round(float(draw.uniform(0.5, 2.0)), 2) for _ in range(3))
    fast = draw.choice(range(20, 40))
    return {
        f"{a} (Σ x)³ + {b} Σ x³": lambda x: a * _cube(x.sum()) + b * _cube(x).sum(),
        f"{a} x₀³ · sin({k} x₁ x₀)": lambda x: a * _cube(x[0]) * (k * x[1] * x[0]).sin(),
        f"(Σ sin({fast} x))³": lambda x: _cube((fast * x).sin().sum()),
        f"exp(x₀ − {b} x₁) + {k} x₁³": lambda x: (x[0] - b * x[1]).exp() + k * _cube(x[1]),
    }


def _hessian(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for name, f in _functions(draw).items():
        x = draw.uniform(0.3, 1.5, draw.choice(range(2, 6)))
        expected = torch.func.hessian(f)(x)
        found = answer(f, x)
        if not isinstance(found, Tensor):
            yield Failure("no_tensor", "course.n09.no_tensor", {"got": type(found).__name__})
        elif found.shape != expected.shape:
            params = {"n": len(x), "expected": tuple(expected.shape), "got": tuple(found.shape)}
            yield Failure("wrong_shape", "course.n09.shaped", params)
        elif not close(found, expected, 1e-6):
            i, j = divmod(int((found.detach() - expected).abs().argmax()), len(expected))
            entry = {"f": name, "i": i, "j": j, "expected": expected[i, j].item(), "got": found[i, j].item()}
            yield Failure("wrong_value", "course.n09.hessian", entry)
        else:
            continue
        return


EXERCISES = (
    Exercise(
        "forward_cube", "ForwardCube", "own_function value gradient forward_mode double_backward edges",
        formula=lambda x: x**3, inputs=normals("ab"), edges=elementwise(),
        notes={"jvp_raised": "course.n09.jvp_raised"},
    ),
    Exercise(
        "linear_ported", "LinearPorted", "own_function value gradient vmap edges",
        formula=linear, inputs=linear_inputs, edges=linear_edges, notes={"vmap_raised": "course.n09.in_place"},
    ),
    Exercise(
        "mat_vec", "MatVec", "own_function value gradient vmap edges",
        formula=lambda A, x: A @ x, inputs=normals("ab", "b"), edges=points("13,3", "21,1", "03,3"),
        notes={"vmap_wrong": "course.n09.where"},
    ),
    Exercise("per_sample", "per_sample", "custom", own=_for_each_sample),
    Exercise("hessian_of", "hessian_of", "custom", own=_hessian),
)  # fmt: skip
