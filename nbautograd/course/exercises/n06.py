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

ABS_AT_ZERO = {
    "en": "Where u or v is exactly 0, the gradient is NaN or outside the slopes to both sides. Put u = 0 into each "
    "step of your backward.",
    "zh": "在 u 或 v 恰好为 0 的地方，梯度是 NaN，或者超出了两侧斜率的范围。把 u = 0 代入 backward 的每一步看看。",
}
ENDS = {
    "en": "In between all is right, but exactly at an end of the interval the gradient is not the one agreed on. To "
    "which side do lo and hi belong?",
    "zh": "区间内外都对，但恰好在端点上，梯度与约定的不一致。lo 和 hi 应当算在哪一边？",
}
SLOPE = {
    "en": "What comes back is not grad_output times the declared slope. Work it out by hand for v = -1 and k = 2: the "
    "slope is 1/9 there.",
    "zh": "返回的不是 grad_output 乘以声明的斜率。取 v = -1、k = 2 手算一遍：那里的斜率是 1/9。",
}
NOT_A_STEP = {
    "en": "What goes forward should be 1 where v > 0, and 0 elsewhere. The surrogate belongs in backward alone.",
    "zh": "前向传出去的应当是：v > 0 的地方为 1，其余为 0。替代函数只属于 backward。",
}
BOOL = {
    "en": "Output 1 is {got}; it should be {expected}, as v is. A comparison "
    "gives True and False; the next layer wants numbers of one dtype.",
    "zh": "第 1 个输出是 {got}，应当和 v 一样是 {expected}。"
    "比较运算给出的是 True 和 False，而下一层要的是同一种 dtype 的数。",
}
SPIKE = {"wrong_unclassified": SLOPE, "forward_value": NOT_A_STEP, "forward_dtype": BOOL}


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
            {
                "en": "The net of two neurons ends with a loss of {loss:.3f}; it should fall below 0.05. All that it"
                " learns from is what your Function gives: 0 or 1 forward, the slope backward. Are both right?",
                "zh": "两个神经元的网络训练完后损失为 {loss:.3f}，应当降到 0.05 以下。它只能从你的 Function 学："
                "前向的 0 和 1，反向的斜率。两样都对吗？",
            },
            {"loss": loss},
        )


# find_kinks

MISSES = {
    "en": "{f} has a kink at x = {x:g}, where the slope goes from {left:g} to {right:g}; you do not report it. How far"
    " apart are your two slopes there?",
    "zh": "{f} 在 x = {x:g} 处有折点，斜率从 {left:g} 变为 {right:g}，你没有报告它。你算出的两个斜率在那里相差多少？",
}
SEES = {
    "en": "{f} is smooth at x = {x:g}, and you report a kink there. Compare what your two slopes are at this point.",
    "zh": "{f} 在 x = {x:g} 处是光滑的，你却报告了折点。看看你算出的两个斜率在这一点各是多少。",
}
NOT_BOOL = {
    "en": "One answer for each element is wanted, so torch.bool of shape {expected}; {got} came.",
    "zh": "每个元素都要有一个答案，应当是形状为 {expected} 的 torch.bool，实际得到的是 {got}。",
}
MUTATES = {
    "en": "x is changed after the call. It belongs to the caller: compute with new tensors.",
    "zh": "调用之后 x 被改动了。x 属于调用者，请用新的张量来计算。",
}
IGNORES = {
    "en": "With h = {h:g} and tol = {tol:g} the answer for {f} should be another. Are both arguments used?",
    "zh": "取 h = {h:g}、tol = {tol:g} 时，对 {f} 的回答应当不同。两个参数都用上了吗？",
}

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
            yield Failure("mutates_input", MUTATES)
            return
        if not isinstance(found, Tensor) or (found.dtype, found.shape) != (torch.bool, x.shape):
            got = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            yield Failure("not_bool", NOT_BOOL, {"expected": tuple(x.shape), "got": got})
            return
        for (at, left, right), seen in zip(points, found.flatten().tolist(), strict=True):
            if left != right and not seen:
                yield Failure("misses_kink", MISSES, {"f": curve.name, "x": at, "left": left, "right": right})
                return
            if left == right and seen:
                yield Failure("sees_kink", SEES, {"f": curve.name, "x": at})
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
            yield Failure("ignores_settings", IGNORES, {"f": name, "h": h, "tol": tol})
            return


EXERCISES = (
    Exercise(
        "abs_uv", "AbsUV",
        "value own_function gradient kinks edges",
        formula=lambda u, v: (u * v).abs(),
        inputs=lambda draw: tuple(draw.away_from(draw.normal(*draw.sizes(2)), 0.0, 0.1) for _ in range(2)),
        kinks=_pair_at_kinks, edges=_pair_edges,
        notes={"kink_wrong": ABS_AT_ZERO, "nonfinite": ABS_AT_ZERO},
    ),
    Exercise(
        "leaky_clamp", "LeakyClamp", "value own_function gradient kinks edges",
        formula=lambda x, lo, hi, slope: x.clamp(lo, hi) + slope * (x - x.clamp(lo, hi)),
        vjp=lambda x, lo, hi, slope, g: torch.where((x >= lo) & (x <= hi), g, slope * g),
        inputs=_clamp_inputs, kinks=_clamp_kinks,
        edges=elementwise(-0.75, 0.5, 0.2),
        notes={"kink_convention": ENDS},
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
