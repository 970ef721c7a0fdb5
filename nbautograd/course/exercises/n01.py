"""Exercises of notebook 01, the first Function and the tape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, normals, points
from nbautograd.course.exercises.tried import in_turn, python

# reverse_by_hand


def _reversed(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for _ in range(3):
        w1, w2 = (float(x) for x in draw.uniform(0.5, 2.0, 2))
        found = answer(w1, w2)
        several = isinstance(found, (tuple, list, np.ndarray, Tensor))
        if not several or len(found) != 5 or not all(isinstance(python(x), (int, float)) for x in found):
            got = f"{type(found).__name__}" + (f" ({len(found)})" if several else "")
            yield Failure("not_five", "course.n01.five", {"got": got})
            return
        failure = _bars_wrong(w1, w2, [float(x) for x in found])
        if failure is not None:
            yield failure
            return


def _bars_wrong(w1: float, w2: float, bars: list[float]) -> Failure | None:
    """Return the first wrong one, from the end."""
    right = w2 + math.cos(w1), w1, 1.0, 1.0, 1.0
    close = [math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-9) for a, b in zip(bars, right, strict=True)]
    if all(close):
        return None
    k = max(k for k in range(5) if not close[k])
    if k == 4:
        return Failure("wrong_seed", "course.n01.seed", {"got": bars[4]})
    if k == 0 and any(math.isclose(bars[0], path, rel_tol=1e-4) for path in (w2, math.cos(w1))):
        return Failure("lost_path", "course.n01.lost_path")
    return Failure("wrong_bar", "course.n01.bar", {"name": f"w{k + 1}", "w1": w1, "w2": w2, "got": bars[k]})


# engine

DEPTH = 14  # squarings in a row: 2 * 14 contributions, 2^14 paths


def _is_value(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    backward: Any = getattr(answer, "backward", None)
    if not (isinstance(answer, type) and hasattr(backward, "__code__")):
        yield Failure("no_class", "course.n01.no_class")


def _bars_of_programs(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = float(draw.uniform(0.5, 1.5))
    factor = answer(3.0)
    result = answer(x) * factor
    result.backward()
    if not math.isclose(result.grad, 1.0):
        yield Failure("no_seed", "course.n01.no_seed", {"got": float(result.grad)})
        return
    programs: list[tuple[str, str, Callable[[Any], Any]]] = [
        ("wrong_step", "y = x.sin()", lambda x: x.sin()),
        ("wrong_step", "y = x * c", lambda x: x * _like(x, 3.0)),
        ("overwritten", "y = x + x", lambda x: x + x),
        ("overwritten", "y = x * x", lambda x: x * x),
        ("wrong_step", "y = (x * c).sin()", lambda x: (x * _like(x, 3.0)).sin()),
        ("too_early", "u = x * x; y = u.sin() * u.sin() + u", lambda x: _shared(x * x, last=True)),
        ("too_early", "u = x * x; y = u + u.sin() * u.sin()", lambda x: _shared(x * x, last=False)),
    ]
    for code, program, run in programs:
        leaf, same = answer(x), torch.tensor(x, dtype=torch.float64, requires_grad=True)
        run(leaf).backward()
        (right,) = torch.autograd.grad(run(same), same)
        if not math.isclose(leaf.grad, right.item(), rel_tol=1e-6):
            yield Failure(code, f"course.n01.{code}", {"program": program, "x": x, "got": float(leaf.grad)})
            return
    wrong = _any_program(answer, draw)
    if wrong is not None:
        yield wrong
        return
    Counted.count = 0
    y = answer(Counted(1.0))
    for _ in range(DEPTH):
        y = y * y
    y.backward()
    multiplications = Counted.count
    if multiplications > 10 * DEPTH:
        yield Failure("every_path", "course.n01.every_path", {"depth": DEPTH, "got": multiplications})


def _any_program(answer: Any, draw: InputGenerator) -> Failure | None:
    """Run a few programs of random steps, and compare the bar of every value that leads to the result."""
    for _ in range(40):
        steps = [_step(draw, k + 2) for k in range(9)]
        starts = [float(x) for x in draw.uniform(0.5, 1.5, 2)]
        tensors = _values(steps, [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in starts])
        right = torch.autograd.grad(tensors[-1], tensors, allow_unused=True)
        values = _values(steps, [answer(x) for x in starts])
        values[-1].backward()
        for k, (value, bar) in enumerate(zip(values, right, strict=True)):
            if bar is not None and not math.isclose(value.grad, float(bar), rel_tol=1e-9, abs_tol=1e-12):
                written = [f"v{n + 2} = {_written(*step)}" for n, step in enumerate(steps)]
                known = {"program": "; ".join(written), "value": f"v{k}", "got": float(value.grad), "right": float(bar)}
                return Failure("program_wrong", "course.n01.program", known)
    return None


def _step(draw: InputGenerator, known: int) -> tuple[str, int, int]:
    """Return an operation on two of the last five values that are known by then."""
    one, other = draw.integers(max(0, known - 5), known, 2).tolist()
    return draw.choice("++*s"), one, other


def _values(steps: list[tuple[str, int, int]], values: list[Any]) -> list[Any]:
    for kind, a, b in steps:
        one, other = values[a], values[b]
        values.append(one + other if kind == "+" else one * other if kind == "*" else one.sin())
    return values


def _written(kind: str, a: int, b: int) -> str:
    return f"v{a}.sin()" if kind == "s" else f"v{a} {kind} v{b}"


def _shared(u: Any, last: bool) -> Any:
    far = u.sin() * u.sin()
    return far + u if last else u + far


def _like(x: Any, number: float) -> Any:
    return torch.tensor(number, dtype=torch.float64) if isinstance(x, torch.Tensor) else type(x)(number)


class Counted(float):
    """A number that counts the multiplications in which it or its products are a factor."""

    count = 0

    def __mul__(self, other: float) -> Counted:
        """Count one and multiply."""
        Counted.count += 1
        return Counted(float(self) * float(other))

    __rmul__ = __mul__


# exp


def _keeps_output(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    y = answer.apply(x)
    kept = y.grad_fn.saved_tensors
    if not kept and any(item is y for item in vars(y.grad_fn).values()):
        return  # it keeps the output, in the wrong place: the check of ctx says so
    elif not kept or kept[0] is None or kept[0].data_ptr() != y.data_ptr():
        yield Failure("saved_input", "course.n01.saved_input")


# multiply


def _class_itself(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if isinstance(answer, type):
        yield Failure("class_itself", "course.n01.class_itself")


def _multiply_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    _, columns = draw.sizes(2)
    yield from points(",", "0b,0b", "bat,ab")(draw)
    yield draw.normal(columns) * torch.eye(columns, dtype=torch.float64), draw.normal(columns, columns)
    yield draw.normal(columns, columns), draw.normal(columns) * torch.eye(columns, dtype=torch.float64)


EXERCISES = (
    Exercise("reverse_by_hand", "bars", "custom", own=_reversed),
    Exercise(
        "multiply", "multiply", "custom value own_function gradient edges",
        formula=torch.mul, edges=_multiply_edges, own=_class_itself,
        inputs=normals("ab", "ab"),
        notes={
            "forward_raised": "course.n01.forward_raised",
            "not_through_function": "course.n01.not_through_function",
        },
    ),
    Exercise(
        "exp", "Exp", "value own_function gradient custom context edges",
        formula=torch.exp, inputs=normals("ab"), edges=elementwise(), own=_keeps_output, inside=True,
        saved_bytes=lambda x: 8 * x.numel(),
        ready_made={"backward": {"exp"}}, notes={"ready_made": "course.n01.exp_again"},
    ),
    Exercise("engine", "Value", "custom", own=in_turn(_is_value, _bars_of_programs)),
)  # fmt: skip
