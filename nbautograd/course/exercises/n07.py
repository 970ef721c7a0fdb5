"""Exercises of notebook 07, in-place operations and saved tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.shapes import elementwise, normals

# exp_in_place

NOT_IN_PLACE = {
    "en": "The result is right, but the tensor given still holds the old numbers: nothing happened in place. Which"
    " operation writes into the tensor that it is called on?",
    "zh": "结果是对的，但传入的张量里还是原来的数：并没有原地写入。哪种运算会把结果写进调用它的那个张量？",
}
OTHER_OBJECT = {
    "en": "The tensor that was given was changed, but what came back is another one. Return the very tensor that you "
    "changed, and mark it.",
    "zh": "传入的张量被改了，返回的却是另一个张量。请返回你改动的那一个，并标记它。",
}
UNMARKED = {
    "en": "After h = 1 * x; {name}.apply(h), the gradient through h itself is 1: autograd takes h for what it was "
    "before. How does it learn that h was changed?",
    "zh": "执行 h = 1 * x; {name}.apply(h) 之后，经过 h 本身的梯度是 1：自动求导以为 h 还是原来的 h。"
    "怎样才能让它知道 h 已经被改了？",
}

OLD_NUMBERS = {
    "en": "backward calls `{name}` (line {line}), and should only multiply: whoever needs the old numbers has to keep a"
    " copy, and nothing is saved. Which numbers are still there?",
    "zh": "backward 里调用了 `{name}`（第 {line} 行），而它只应当做乘法：要用到原来的数，就得另存一份，"
    "原地运算也就白做了。哪些数还在？",
}
GRAD_OUTPUT = {
    "en": "backward writes into grad_output. In place is for what forward was given and has marked; grad_output may "
    "belong to others.",
    "zh": "backward 改写了 grad_output。可以原地修改的只有 forward 收到并标记过的张量，grad_output 可能还有别人要用。",
}


def on_a_copy(answer: Any) -> Callable[..., Any]:
    """Call a Function that writes into its input on a copy of it."""
    return lambda x: answer.apply(x.clone())


def in_place(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Yield a failure unless a Function of one tensor writes its result into that tensor and says so."""
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    h = 1 * x
    y = answer.apply(h)
    if not torch.equal(h.detach(), y.detach()):
        yield Failure("not_in_place", NOT_IN_PLACE)
    elif y.data_ptr() != h.data_ptr():
        yield Failure("other_object", OTHER_OBJECT)
    elif y is not h:
        yield Failure("unmarked", UNMARKED, {"name": answer.__name__})
    else:
        grad_output = torch.ones_like(y)
        torch.autograd.grad(y, x, grad_output)
        if not bool((grad_output == 1).all()):
            yield Failure("mutates_grad_output", GRAD_OUTPUT)


# head


def _row_edges(draw: InputGenerator) -> Iterable[tuple[Any, ...]]:
    pages, rows, columns = draw.sizes(3)
    yield draw.normal(rows, columns), rows
    yield draw.normal(rows, columns), 0
    yield draw.normal(pages, rows, columns), pages - 1
    yield draw.normal(columns), 2
    yield draw.normal(columns, rows).t(), 1


VIEW = {
    "en": "A caller who changes the output in place gets an error: the output is a view of the input. Where is the "
    "memory of your output made?",
    "zh": "调用者一旦原地修改输出就会报错：输出是输入的视图。你的输出用的是谁的内存？",
}
SHARED = {
    "en": "When a caller changes the output in place, the input changes as well: the two share their memory. Which"
    " operation makes memory of its own?",
    "zh": "调用者原地修改输出时，输入也跟着变了：两者共用一块内存。哪种运算会另开一块内存？",
}


def _own_memory(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x = draw.normal(*draw.sizes(2)).requires_grad_()
    h = 1 * x
    before = h.detach().clone()
    head = answer.apply(h, 2)
    try:
        head.mul_(10)
    except RuntimeError:
        yield Failure("view_returned", VIEW)
        return
    if not torch.equal(h.detach(), before):
        yield Failure("shares_memory", SHARED)


EXERCISES = (
    Exercise(
        "exp_in_place", "ExpInPlace", "value gradient own_function custom edges",
        formula=torch.exp, inputs=normals("ab"), apply=on_a_copy, own=in_place, edges=elementwise(),
        ready_made={"backward": {"exp"}}, notes={"ready_made": OLD_NUMBERS},
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
