"""Exercises of notebook 06, kinks and surrogates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise

SPIKE = {
    "wrong_unclassified": "course.n06.slope",
    "forward_value": "course.n06.not_a_step",
    "forward_dtype": "course.n06.bool",
}


def _pair_at_kinks(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    size = 3 + draw.sizes(1)[0]
    u, v = draw.normal(size), draw.normal(size)
    u[0] = u[1] = v[1] = v[2] = 0
    yield u, v


def _pair_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    rows, columns = draw.sizes(2)
    for shape in ((), (0, columns), (1, columns)):
        yield draw.uniform(0.2, 1.0, *shape), draw.uniform(-1.0, -0.2, *shape)
    yield draw.uniform(0.2, 1.0, rows, columns).t(), draw.uniform(-1.0, -0.2, rows, columns).t()


# leaky_clamp


def _clamp_inputs(draw: InputGenerator) -> tuple[Any, ...]:
    lo, hi, slope = _interval(draw)
    rows, columns = draw.sizes(2)
    x = draw.uniform(-2.0, 2.0, rows + 1, columns + 2)
    return draw.away_from(draw.away_from(x, lo, 0.1), hi, 0.1), lo, hi, slope


def _interval(draw: InputGenerator) -> tuple[float, float, float]:
    lo, hi, slope = (round(float(x), 2) for x in draw.uniform(0.4, 1.6, 3))
    return -lo, hi, round(slope / 4, 2)


def _clamp_kinks(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    lo, hi, slope = _interval(draw)
    yield torch.tensor([lo, hi, 0.0, 2.0, -2.0], dtype=torch.float64), lo, hi, slope


# round_ste


def _round_inputs(draw: InputGenerator) -> tuple[Any, ...]:
    # not near the jumps, where a difference of the last digit decides
    shape, levels = draw.sizes(2), int(draw.integers(2, 7))
    steps = draw.integers(-6, 6, *shape).double() + draw.uniform(-0.4, 0.4, *shape)
    return steps / levels, levels


# spike


def _train(spike: Callable[..., Tensor], rounds: int = 200) -> float:
    """Return the last loss of two spiking neurons that learn OR and AND: the net that the notebook shows."""
    bits = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    wanted = torch.stack((bits.amax(1), bits.amin(1)), dim=1)
    weight = torch.full((2, 2), 0.2, requires_grad=True)
    bias = torch.tensor([-0.9, 0.1], requires_grad=True)
    optimizer = torch.optim.SGD([weight, bias], lr=0.2)
    loss = torch.zeros(())
    for _ in range(rounds):
        loss = ((spike(bits @ weight + bias, 5.0) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def _learns(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    loss = _train(answer.apply)
    if not loss < 0.05:
        yield Failure(
            "does_not_learn",
            "course.n06.does_not_learn",
            {"loss": loss},
        )


# find_kinks


Point = tuple[float, float, float]  # x, slope from the left, slope from the right; none where it is smooth


@dataclass(frozen=True)
class Curve:
    """A function of one variable with kinks at known places.

    Attributes:
        name: what a sentence calls it.
        f: works element by element.
        kinks: its kinks.
        smooth: points where it has none.
    """

    name: str
    f: Callable[[Tensor], Tensor]
    kinks: tuple[Point, ...]
    smooth: tuple[float, ...]


def _curves(draw: InputGenerator) -> Iterator[Curve]:
    for side in (1, -1):
        a, b, s, t, w = (round(float(x), 2) for x in draw.uniform(0.3, 1.0, 5))
        yield from _curves_at(a, b, side * s, t, w)


def _curves_at(a: float, b: float, s: float, t: float, w: float) -> Iterator[Curve]:
    ends = ((s, 0.0, 1.0), (s + w, 1.0, 0.0))
    yield Curve(f"relu(x - {s:g})", lambda x: torch.relu(x - s), ((s, 0.0, 1.0),), (s - 1.0, s + t))
    yield Curve(f"-{a:g} |x - {s:g}|", lambda x: -a * (x - s).abs(), ((s, a, -a),), (s - t, s + 1.0))
    yield Curve(f"clamp(x, {s:g}, {s + w:g})", lambda x: x.clamp(s, s + w), ends, (s + w / 2, s - t))
    yield Curve(f"exp({5 * b:g} x)", lambda x: (5 * b * x).exp(), (), (0.0, s, 1.0))
    yield Curve(f"{a:g} x³", lambda x: a * x**3, (), (-1.0, 0.0, s, 2.0))
    yield Curve(f"{a / 4:g} |x|", lambda x: a / 4 * x.abs(), ((0.0, -a / 4, a / 4),), (s, 1.0))


def _finds_kinks(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for curve in _curves(draw):
        points = [*curve.kinks, *((at, 0.0, 0.0) for at in curve.smooth)]
        points = [points[k] for k in torch.randperm(len(points), generator=draw.generator).tolist()]
        shape = draw.choice(((1, -1), (-1,), (-1, 1), (1, -1, 1)))
        x = torch.tensor([at for at, *_ in points], dtype=torch.float64).reshape(shape)
        before = x.clone()
        found = answer(curve.f, x)
        if not torch.equal(x, before):
            yield Failure("mutates_input", "course.n06.mutates")
            return
        if not isinstance(found, Tensor) or (found.dtype, found.shape) != (torch.bool, x.shape):
            got = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            yield Failure("not_bool", "course.n06.not_bool", {"expected": tuple(x.shape), "got": got})
            return
        for (at, left, right), seen in zip(points, found.flatten().tolist(), strict=True):
            if left != right and not seen:
                yield Failure(
                    "misses_kink", "course.n06.misses", {"f": curve.name, "x": at, "left": left, "right": right}
                )
                return
            if left == right and seen:
                yield Failure("sees_kink", "course.n06.sees", {"f": curve.name, "x": at})
                return
    yield from _uses_settings(answer, draw)


def _uses_settings(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Check at x², whose slopes to both sides of 0 are 2 h apart: a kink, unless the tolerance is wide."""
    zero = torch.zeros(1, dtype=torch.float64)
    a, h = (round(float(x), 2) for x in draw.uniform(0.1, 0.3, 2))
    corner = f"{a:g} |x|"
    cases: tuple[tuple[str, Callable[[Tensor], Tensor], float, float, bool], ...] = (
        ("x²", torch.square, h, h, True),
        ("x²", torch.square, h, 3 * h, False),
        (corner, lambda x: a * x.abs(), 1e-6, 2.5 * a, False),
        (corner, lambda x: a * x.abs(), 1e-6, 1.5 * a, True),
    )
    for name, f, h, tol, expected in cases:
        if bool(answer(f, zero, h=h, tol=tol).item()) != expected:
            yield Failure("ignores_settings", "course.n06.ignores", {"f": name, "h": h, "tol": tol})
            return


EXERCISES = (
    Exercise(
        "abs_uv", "AbsUV",
        "value own_function gradient kinks edges",
        formula=lambda u, v: (u * v).abs(),
        inputs=lambda draw: tuple(draw.away_from(draw.normal(*draw.sizes(2)), 0.0, 0.1) for _ in range(2)),
        kinks=_pair_at_kinks, edges=_pair_edges,
        notes={"kink_wrong": "course.n06.abs_at_zero", "nonfinite": "course.n06.abs_at_zero"},
    ),
    Exercise(
        "leaky_clamp", "LeakyClamp", "value own_function gradient kinks edges",
        formula=lambda x, lo, hi, slope: x.clamp(lo, hi) + slope * (x - x.clamp(lo, hi)),
        vjp=lambda x, lo, hi, slope, g: torch.where((x >= lo) & (x <= hi), g, slope * g),
        inputs=_clamp_inputs, kinks=_clamp_kinks,
        edges=elementwise(-0.75, 0.5, 0.2),
        notes={"kink_convention": "course.n06.ends"},
    ),
    Exercise(
        "round_ste", "RoundSTE", "value own_function gradient edges",
        formula=lambda x, levels: (x * levels).round() / levels,
        vjp=lambda x, levels, g: g, inputs=_round_inputs, edges=elementwise(4),
    ),
    Exercise(
        "spike", "Spike", "value own_function gradient edges custom",
        formula=lambda v, k: (v > 0).to(v.dtype), vjp=lambda v, k, g: g / (1 + k * v.abs()) ** 2,
        inputs=lambda draw: (draw.away_from(draw.normal(*draw.sizes(2)), 0.0, 0.1), float(draw.uniform(1.0, 6.0))),
        edges=lambda draw: (
            *elementwise(3.0)(draw),
            (torch.tensor([-1.0, 0.5, 1.0]), 2.0), (torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64), 2.0),
        ),
        own=_learns, notes=SPIKE,
    ),
    Exercise("find_kinks", "find_kinks", "custom", own=_finds_kinks),
)  # fmt: skip
