"""Exercises of notebook 10, modules and old code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.layers import layer, says

# migrate_linear


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.nn.functional.linear(input, weight, bias)


def _linear_edges(draw: Draw) -> Iterable[tuple[Any, ...]]:
    """One output, one row, no row."""
    yield draw.normal(3, 4), draw.normal(1, 4), draw.normal(1)
    yield draw.normal(1, 4), draw.normal(5, 4), draw.normal(5)
    yield draw.normal(0, 4), draw.normal(5, 4), draw.normal(5)


# migrate_transpose


def _transpose(x: Tensor, first: int, second: int) -> Tensor:
    return x.transpose(first, second)


# what_died

DEATHS: dict[str, str] = {
    "Variable(torch.randn(3), requires_grad=True)": "torch.randn(3, requires_grad=True)",
    "Linear()(input, weight)": "Linear.apply(input, weight)",
    "self.needs_input_grad[0]": "ctx.needs_input_grad[0]",
    "loss.data[0]": "loss.item()",
    "Variable(x, volatile=True)": "with torch.no_grad():",
    "torch.utils.ffi": "torch.utils.cpp_extension",
}
HINTS = {
    "Variable(torch.randn(3), requires_grad=True)": (
        "Variable and Tensor are one type now.",
        "Variable 和 Tensor 如今是同一个类型。",
    ),
    "Linear()(input, weight)": ("Who calls forward today?", "如今由谁来调用 forward？"),
    "self.needs_input_grad[0]": ("Static methods have no self.", "静态方法没有 self。"),
    "loss.data[0]": ("How does a number come out of a tensor without dimensions?", "怎样从零维张量取出一个数？"),
    "Variable(x, volatile=True)": ("volatile meant: keep no graph.", "volatile 的意思是：不要记录计算图。"),
    "torch.utils.ffi": ("C++ code is built by another module now.", "如今由另一个模块来编译 C++ 代码。"),
}


def _replaced(answer: Any, draw: Draw) -> Iterator[Failure]:
    if not isinstance(answer, dict) or set(answer) != set(DEATHS):
        yield says(
            "lines_missing",
            "`today` is a dict with the six old lines as keys, as they are written above.",
            "`today` 应当是一个字典，键就是上面写好的六行旧代码。",
        )
        return
    strangers = [new for new in answer.values() if new not in DEATHS.values()]
    if strangers:
        yield says(
            "not_a_choice", "{new!r} is none of the six choices.", "{new!r} 不在六个选项之中。", new=strangers[0]
        )
        return
    for old, new in DEATHS.items():
        if answer[old] != new:
            yield says("wrong_pair", f"{{old}}: {HINTS[old][0]}", f"{{old}}：{HINTS[old][1]}", old=old)


EXERCISES = (
    Exercise("linear_module", "Linear", "custom", own=layer, points=2),
    Exercise(
        "migrate_linear",
        "LinearFunction",
        "own_function value gradient linear edges optional subsets",
        _linear,
        lambda draw: (draw.normal(3, 4), draw.normal(5, 4), draw.normal(5)),
        _linear_edges,
    ),
    Exercise(
        "migrate_transpose",
        "Transpose",
        "own_function value gradient linear arity edges",
        _transpose,
        lambda draw: (draw.normal(2, 3, 4), 0, 2),
        lambda draw: (
            (draw.normal(2, 3), 0, 1),
            (draw.normal(2, 3), 1, 1),
            (draw.normal(2, 3, 4), -1, 0),
            (draw.normal(0, 2), 0, 1),
        ),
    ),
    Exercise("repair_module", "Repaired", "custom", own=layer, points=2),
    Exercise("what_died", "today", "custom", own=_replaced),
)
