"""Exercises of notebook 01, the first Function and the tape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure, Texts
from nbautograd.course.exercises.shapes import elementwise, normals, points
from nbautograd.course.exercises.tried import in_turn, python

# reverse_by_hand

FIVE = {
    "en": "Five numbers are wanted, in the order w1 to w5; {got} came.",
    "zh": "应当返回五个数，顺序从 w1 到 w5；实际得到的是 {got}。",
}
SEED = {
    "en": "Start at the end: the derivative of the result with respect to itself is not {got:.4g}.",
    "zh": "从末端出发：结果对它自己的导数不是 {got:.4g}。",
}
LOST_PATH = {
    "en": "w1 is used twice, and only one of its two paths back is counted.",
    "zh": "w1 被用了两次，回去的路有两条，你只算了其中一条。",
}
BAR = {
    "en": "The bar of {name} is not right at w1 = {w1:.3g}, w2 = {w2:.3g}: {got:.4g}. Multiply the bar of the node"
    " after it by the local derivative.",
    "zh": "在 w1 = {w1:.3g}、w2 = {w2:.3g} 处，{name} 的 w̄ 不对：{got:.4g}。用后一个节点的 w̄ 乘以局部导数。",
}


def _reversed(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for _ in range(3):
        w1, w2 = (float(x) for x in draw.uniform(0.5, 2.0, 2))
        found = answer(w1, w2)
        several = isinstance(found, (tuple, list, np.ndarray, Tensor))
        if not several or len(found) != 5 or not all(isinstance(python(x), (int, float)) for x in found):
            got = f"{type(found).__name__}" + (f" ({len(found)})" if several else "")
            yield Failure("not_five", FIVE, {"got": got})
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
        return Failure("wrong_seed", SEED, {"got": bars[4]})
    if k == 0 and any(math.isclose(bars[0], path, rel_tol=1e-4) for path in (w2, math.cos(w1))):
        return Failure("lost_path", LOST_PATH)
    return Failure("wrong_bar", BAR, {"name": f"w{k + 1}", "w1": w1, "w2": w2, "got": bars[k]})


# engine

NO_CLASS = {
    "en": "`Value` should be a class whose objects have data, grad, parents and backward, as in the cell.",
    "zh": "`Value` 应当是一个类，对象带有 data、grad、parents 和 backward，就像格子里给出的那样。",
}
NO_SEED = {
    "en": "After y.backward(), y.grad is {got:.4g}. How fast does the result change with itself?",
    "zh": "y.backward() 之后，y.grad 是 {got:.4g}。结果随它自己变化得多快？",
}
OVERWRITTEN = {
    "en": "For {program}, x.grad is {got:.4g}. Two arrows lead to x; does the second contribution replace the first?",
    "zh": "对 {program}，x.grad 是 {got:.4g}。有两个箭头指向 x；后到的那一份是不是把先到的盖掉了？",
}
STEP = {
    "en": "For {program} at x = {x:.3g}, x.grad is {got:.4g}. One node sends one number on: made of which two?",
    "zh": "对 {program}，在 x = {x:.3g} 处，x.grad 是 {got:.4g}。一个节点往回传一个数，这个数由哪两个数得来？",
}
TOO_EARLY = {
    "en": "For {program}, x.grad is {got:.4g}. `u` is used twice, near the end and further back: has everything arrived"
    " in it when it sends its bar on?",
    "zh": "对 {program}，x.grad 是 {got:.4g}。`u` 用了两次，一次靠近末端，一次隔得更远：它往回传的时候，"
    "该到的都到齐了吗？",
}
PROGRAM = {
    "en": "For {program}, with the last one as the result, {value}.grad is {got:.4g}, and {right:.4g} is right:"
    " every value that the result was computed from is to hold its bar.",
    "zh": "对 {program}，以最后一个值为结果，{value}.grad 是 {got:.4g}，正确的是 {right:.4g}："
    "算出结果所用到的每个值都应当带着自己的 w̄。",
}
EVERY_PATH = {
    "en": "A number squared {depth} times in a row took {got} multiplications, and backward needs two a node. Do you"
    " walk every path, or the whole graph once for each value? How often should a node send its bar on?",
    "zh": "把一个数连续平方 {depth} 次，一共用了 {got} 次乘法，而 backward 每个节点两次就够。"
    "你是不是把每条路都走了一遍，或者为每个值把整个图走了一遍？一个节点应当往回传几次？",
}
DEPTH = 14  # squarings in a row: 2 * 14 contributions, 2^14 paths


def _is_value(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    backward: Any = getattr(answer, "backward", None)
    if not (isinstance(answer, type) and hasattr(backward, "__code__")):
        yield Failure("no_class", NO_CLASS)


def _bars_of_programs(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = float(draw.uniform(0.5, 1.5))
    factor = answer(3.0)
    result = answer(x) * factor
    result.backward()
    if not math.isclose(result.grad, 1.0):
        yield Failure("no_seed", NO_SEED, {"got": float(result.grad)})
        return
    programs: list[tuple[str, Texts, str, Callable[[Any], Any]]] = [
        ("wrong_step", STEP, "y = x.sin()", lambda x: x.sin()),
        ("wrong_step", STEP, "y = x * c", lambda x: x * _like(x, 3.0)),
        ("overwritten", OVERWRITTEN, "y = x + x", lambda x: x + x),
        ("overwritten", OVERWRITTEN, "y = x * x", lambda x: x * x),
        ("wrong_step", STEP, "y = (x * c).sin()", lambda x: (x * _like(x, 3.0)).sin()),
        ("too_early", TOO_EARLY, "u = x * x; y = u.sin() * u.sin() + u", lambda x: _shared(x * x, last=True)),
        ("too_early", TOO_EARLY, "u = x * x; y = u + u.sin() * u.sin()", lambda x: _shared(x * x, last=False)),
    ]
    for code, sentence, program, run in programs:
        leaf, same = answer(x), torch.tensor(x, dtype=torch.float64, requires_grad=True)
        run(leaf).backward()
        (right,) = torch.autograd.grad(run(same), same)
        if not math.isclose(leaf.grad, right.item(), rel_tol=1e-6):
            yield Failure(code, sentence, {"program": program, "x": x, "got": float(leaf.grad)})
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
        yield Failure("every_path", EVERY_PATH, {"depth": DEPTH, "got": multiplications})


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
                return Failure("program_wrong", PROGRAM, known)
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

SAVED_INPUT = {
    "en": "`save_for_backward` did not get the output. Which tensor makes it unnecessary to compute exp a second time?",
    "zh": "交给 `save_for_backward` 的不是输出。保存哪一个张量，就不必再算一次 exp？",
}
EXP_AGAIN = {
    "en": "backward calls `{name}` (line {line}), and should only multiply. Which tensor has the numbers already?",
    "zh": "backward 里调用了 `{name}`（第 {line} 行），而它只应当做乘法。哪一个张量里已经有这些数了？",
}


def _keeps_output(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    y = answer.apply(x)
    kept = y.grad_fn.saved_tensors
    if not kept and any(item is y for item in vars(y.grad_fn).values()):
        return  # it keeps the output, in the wrong place: the check of ctx says so
    elif not kept or kept[0] is None or kept[0].data_ptr() != y.data_ptr():
        yield Failure("saved_input", SAVED_INPUT)


# multiply

CLASS_ITSELF = {
    "en": "`multiply` is the class itself, and `multiply(a, b)` would try to make an object of it. Which of its methods"
    " is it that a caller uses?",
    "zh": "`multiply` 就是那个类本身，`multiply(a, b)` 会去创建它的对象。调用者用的，应当是它的哪个方法？",
}


def _class_itself(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if isinstance(answer, type):
        yield Failure("class_itself", CLASS_ITSELF)


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
            "forward_raised": {
                "en": "multiply(a, b) raised {error}: {said}. If an argument is missing: who hands `ctx` to forward?"
                " You never do.",
                "zh": "multiply(a, b) 抛出了 {error}：{said}。如果说缺了参数，想一想：`ctx` 是谁传给 forward 的？"
                "反正不是你。",
            },
            "not_through_function": {
                "en": "The values are right, but no node of yours is in the graph: backward would never be called."
                " Which of a Function's methods enters it in the graph?",
                "zh": "数值是对的，但计算图里没有你的节点，backward 永远不会被调用。"
                "通过 Function 的哪个方法调用，才会记入计算图？",
            },
        },
    ),
    Exercise(
        "exp", "Exp", "value own_function gradient custom context edges",
        formula=torch.exp, inputs=normals("ab"), edges=elementwise(), own=_keeps_output, inside=True,
        saved_bytes=lambda x: 8 * x.numel(),
        ready_made={"backward": {"exp"}}, notes={"ready_made": EXP_AGAIN},
    ),
    Exercise("engine", "Value", "custom", own=in_turn(_is_value, _bars_of_programs)),
)  # fmt: skip
