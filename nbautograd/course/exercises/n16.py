"""Exercises of notebook 16, dispatch and modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.torch_private.tensors import modes_restored
from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.tried import WRONG_TYPE, WRONG_VALUE, Tried, first

# counting_wrapper


def _reset(answer: Any) -> None:
    answer.counts.clear()


def _computes(answer: Any) -> Iterator[Failure]:
    data = torch.tensor([[1.0, -2.0], [3.0, 4.0]], dtype=torch.float64)
    x = answer(data)
    cases: list[tuple[str, str, Callable[[], Any], Tensor]] = [
        ("wrong_result", "x + 1", lambda: x + 1, data + 1),
        ("wrong_result", "torch.relu(x)", lambda: torch.relu(x), data.relu()),
        ("list_left_out", "torch.stack([x, x])", lambda: torch.stack([x, x]), torch.stack([data, data])),
        ("kwargs_lost", "x.sum(dim=0, keepdim=True)", lambda: x.sum(dim=0, keepdim=True), data.sum(0, keepdim=True)),
        ("kwargs_lost", "torch.add(x, x, alpha=3)", lambda: torch.add(x, x, alpha=3), data * 4),
    ]
    for code, what, run, expected in cases:
        tried = Tried(what, run)
        yield from tried.refused(code)
        if tried.error is not None:
            return
        if not isinstance(tried.value, answer):
            got = type(tried.value).__name__
            yield Failure("result_not_wrapped", WRONG_TYPE, {"what": what, "got": got, "expected": "Counting"})
            return
        if not torch.equal(tried.value.inner, expected):
            shown = {"got": tried.value.inner.tolist(), "expected": expected.tolist()}
            yield Failure(code, WRONG_VALUE, {"what": what, **shown})
            return
    largest = torch.max(x, dim=0)
    if not all(isinstance(part, answer) for part in largest):
        got = type(largest[0]).__name__
        shown = {"what": "torch.max(x, dim=0)[0]", "got": got, "expected": "Counting"}
        yield Failure("tuple_not_wrapped", WRONG_TYPE, shown)


def _counts(answer: Any) -> Iterator[Failure]:
    x = answer(torch.ones(3, dtype=torch.float64))
    _reset(answer)
    y = x + 1
    _ = (y + 2) * x
    expected = {"aten.add.Tensor": 2, "aten.mul.Tensor": 1}
    if dict(answer.counts) != expected:
        shown = {"what": "Counting.counts", "got": dict(answer.counts), "expected": expected}
        yield Failure("counts_wrong", WRONG_VALUE, {**shown, "what": "after y = x + 1; (y + 2) * x: Counting.counts"})


def _differentiates(answer: Any) -> Iterator[Failure]:
    x = answer(torch.tensor([1.0, 2.0], dtype=torch.float64)).requires_grad_()
    _reset(answer)
    tried = Tried("(x * x).sum().backward()", lambda: (x * x).sum().backward())
    yield from tried.refused("backward_raised")
    if tried.error is None:
        got = getattr(x.grad, "inner", None)
        if got is None or not torch.equal(got, torch.tensor([2.0, 4.0], dtype=torch.float64)):
            yield Failure("backward_raised", WRONG_VALUE, {"what": "x.grad.inner", "got": got, "expected": [2.0, 4.0]})


def _counting_wrapper(answer: Any, draw: Draw) -> Iterator[Failure]:
    yield from first(_computes(answer), _counts(answer), _differentiates(answer))


# op_log

NEVER_ENDS = {
    "en": "An operation after the end of the `with` block was seen too. Leave entering and leaving to the mode.",
    "zh": "`with` 块结束之后的运算也被看到了。进入和退出请交给模式自己处理。",
}


def _right_log(run: Callable[[], Any]) -> list[str]:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reference(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    with Reference():  # type: ignore[no-untyped-call]
        run()
    return names


def _forward() -> Tensor:
    x = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    return (torch.add(x, x, alpha=3) @ x).sum()


def _logs(answer: Any) -> Iterator[Failure]:
    what = "(torch.add(x, x, alpha=3) @ x).sum().backward()"
    expected = _right_log(lambda: _forward().backward())
    with answer() as log:
        tried = Tried(what, lambda: _forward().backward())
    yield from tried.refused("op_raised")
    if log is None:
        shown = {"what": "log, after `with OpLog() as log:`,", "got": "NoneType", "expected": "OpLog"}
        yield Failure("with_gives_nothing", WRONG_TYPE, shown)
        return
    names = list(log.names)
    if tried.error is None and (names != expected or not all(isinstance(name, str) for name in names)):
        forward = _right_log(_forward)
        begins = names[: len(forward)] == forward and len(names) <= len(forward) + 1
        code = "backward_not_seen" if begins else "names_wrong" if names else "nothing_logged"
        yield Failure(code, WRONG_VALUE, {"what": f"{what}: log.names", "got": names[:9], "expected": expected[:9]})


def _behaves(answer: Any) -> Iterator[Failure]:
    x = torch.ones(2, dtype=torch.float64)
    with answer() as first_log:
        y = torch.add(x, x, alpha=3)
        with answer() as second_log:
            x.mul(2)
    x.exp()
    if not torch.equal(y, x * 4):
        yield Failure(
            "kwargs_lost", WRONG_VALUE, {"what": "torch.add(x, x, alpha=3)", "got": y.tolist(), "expected": [4.0, 4.0]}
        )
        return
    if "aten.exp.default" in [*first_log.names, *second_log.names]:
        yield Failure(
            "never_ends",
            NEVER_ENDS,
        )
        return
    if second_log.names != ["aten.mul.Tensor"]:
        yield Failure(
            "logs_shared",
            {
                "en": "Two logs, one inside the other: the inner one should hold only `aten.mul.Tensor`, and holds"
                " {got}. Whose list is `names`?",
                "zh": "两个日志，一个套着一个：里面的只应有 `aten.mul.Tensor`，实际却是 {got}。"
                "`names` 这个列表是谁的？",
            },
            {"got": list(second_log.names)[:6]},
        )
        return
    if first_log.names != ["aten.add.Tensor", "aten.mul.Tensor"]:
        yield Failure(
            "outer_log_wrong",
            {
                "en": "The outer of two logs should hold `aten.add.Tensor`, `aten.mul.Tensor`, and holds {got}.",
                "zh": "外面的日志应当有 `aten.add.Tensor`、`aten.mul.Tensor`，实际却是 {got}。",
            },
            {"got": list(first_log.names)[:6]},
        )


def _op_log(answer: Any, draw: Draw) -> Iterator[Failure]:
    with modes_restored():  # an answer that never leaves its mode must not stay in the student's kernel
        found = list(first(_logs(answer), _behaves(answer)))
    yield from found


# nan_watch

BLAMED = {
    "en": "`{what}`: `watch.first` is {got}, and nothing is to be blamed. What was infinite was so before the"
    " operation began; where did that stand among the arguments?",
    "zh": "`{what}`：`watch.first` 是 {got}，可这里没有谁该受责怪。那个无穷大在运算开始之前就有了：它在参数的哪里？",
}
MISSED = {
    "en": "`{what}`: `watch.first` is {got}; {expected} made it.",
    "zh": "`{what}`：`watch.first` 是 {got}，造成它的是 {expected}。",
}
IN_PLACE = {
    "en": "`{what}` writes its result over what it was given. When do you look at the arguments?",
    "zh": "`{what}` 把结果写在了传入的张量上。你是什么时候查看参数的？",
}
SHARED = {
    "en": "A second `NanWatch` begins with {got} of the first one.",
    "zh": "第二个 `NanWatch` 一开始就带着第一个的 {got}。",
}


def _watched_cases() -> list[tuple[str, str, Callable[[], Any], str | None]]:
    ones, inf = torch.ones(2, dtype=torch.float64), math.inf
    bad = torch.tensor([1.0, inf], dtype=torch.float64)

    def distance() -> None:
        x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        (x * x).sum().sqrt().exp().backward()

    return [
        ("blames_nobody_wrongly", "(ones + 1).log().sum()", lambda: (ones + 1).log().sum(), None),
        ("nan_missed", "(ones - 2).sqrt()", lambda: (ones - 2).sqrt(), "aten.sqrt.default"),
        ("infinity_missed", "(ones - 1).log()", lambda: (ones - 1).log(), "aten.log.default"),
        ("not_the_first", "(1000 * ones).exp().softmax(0)", lambda: (1000 * ones).exp().softmax(0),
         "aten.exp.default"),
        ("innocent_blamed", "torch.tensor([1, inf]) * 2", lambda: bad * 2, None),
        ("list_left_out", "torch.stack([ones, torch.tensor([1, inf])])", lambda: torch.stack([ones, bad]), None),
        ("number_left_out", "ones.masked_fill(ones > 0, -inf).exp()", lambda: ones.masked_fill(ones > 0, -inf).exp(),
         None),
        ("keyword_left_out", "torch.add(ones, ones, alpha=inf)", lambda: torch.add(ones, ones, alpha=inf), None),
        ("tuple_left_out", "torch.slogdet(torch.zeros(2, 2))", lambda: torch.slogdet(torch.zeros(2, 2)),
         "aten._linalg_slogdet.default"),
        ("in_place_missed", "ones.clone().div_(0)", lambda: ones.clone().div_(0), "aten.div_.Tensor"),
        ("backward_not_seen", "x = zeros(2): (x * x).sum().sqrt().exp().backward()", distance, "aten.div.Tensor"),
    ]  # fmt: skip


def _finds_the_first(answer: Any) -> Iterator[Failure]:
    for code, what, run, expected in _watched_cases():
        with answer() as watch:
            left = getattr(watch, "first", None)
            tried = Tried(what, run)
        yield from tried.refused("op_raised")
        if watch is None:
            shown = {"what": "watch, after `with NanWatch() as watch:`,", "got": "NoneType", "expected": "NanWatch"}
            yield Failure("with_gives_nothing", WRONG_TYPE, shown)
            return
        if left is not None:
            yield Failure("watch_shared", SHARED, {"got": repr(left)})
            return
        if watch.first != expected:
            named = expected is not None and watch.first is not None and code != "not_the_first"
            sentence = BLAMED if expected is None else IN_PLACE if code == "in_place_missed" and not named else MISSED
            code = "names_wrong" if named else code
            yield Failure(code, sentence, {"what": what, "got": repr(watch.first), "expected": repr(expected)})
            return


def _changes_nothing(answer: Any) -> Iterator[Failure]:
    ones = torch.ones(2, dtype=torch.float64)
    with answer() as watch:
        tried = Tried(
            "torch.add(ones, ones, alpha=3).sum().item()", lambda: torch.add(ones, ones, alpha=3).sum().item()
        )
    yield from tried.refused("op_raised")
    if tried.error is None and tried.value != 8.0:
        yield Failure("kwargs_lost", WRONG_VALUE, {"what": tried.what, "got": tried.value, "expected": 8.0})
        return
    (ones - 1).log()
    if watch.first is not None:
        yield Failure("never_ends", NEVER_ENDS)


def _nan_watch(answer: Any, draw: Draw) -> Iterator[Failure]:
    with modes_restored():  # whether it leaves comes first: modes that stay make each other's work grow without bound
        found = list(first(_changes_nothing(answer), _finds_the_first(answer)))
    yield from found


EXERCISES = (
    Exercise("counting_wrapper", "Counting", "custom", own=_counting_wrapper, points=2),
    Exercise("op_log", "OpLog", "custom", own=_op_log),
    Exercise("nan_watch", "NanWatch", "custom", own=_nan_watch, points=2),
)
