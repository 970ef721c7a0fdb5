"""Exercises of notebook 12, extending torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.torch_private.tensors import modes_kept
from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.scalar_tensors import dense_fallback, scalar_tensor
from nbautograd.course.exercises.tried import NO_ERROR, WRONG_TYPE, WRONG_VALUE, Tried, first, plain

# unit_tensor

LOST = {
    "en": "`{what}` has lost its unit: {got}.",
    "zh": "`{what}` 丢了单位：{got}。",
}


def _unit(value: Any) -> str:
    return repr(getattr(value, "unit", None)) if isinstance(value, Tensor) else type(value).__name__


def _keeps_units(answer: Any) -> Iterator[Failure]:
    data = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    x, y = answer(data, "m"), answer(data * 2, "m")
    cases: list[tuple[str, Callable[[], Any], Tensor]] = [
        ("x + y", lambda: x + y, data * 3),
        ("x[1:]", lambda: x[1:], data[1:]),
        ("x * 2", lambda: x * 2, data * 2),
        ("x.sum()", lambda: x.sum(), data.sum()),
        ("torch.stack([x, y])", lambda: torch.stack([x, y]), torch.stack([data, data * 2])),
        ("torch.add(data, other=x)", lambda: torch.add(data, other=x), data * 2),
    ]
    for what, run, expected in cases:
        tried = Tried(what, run)
        wrong = list(tried.same("unit_value", expected))
        if wrong:
            yield wrong[0]
            return
        if not isinstance(tried.value, answer):
            got = type(tried.value).__name__
            yield Failure("type_lost", WRONG_TYPE, {"what": what, "got": got, "expected": "UnitTensor"})
            return
        if getattr(tried.value, "unit", None) != "m":
            yield Failure("unit_lost", LOST, {"what": what, "got": _unit(tried.value)})
            return
    if (x.unit, y.unit) != ("m", "m"):
        yield Failure("unit_changed", LOST, {"what": "x", "got": _unit(x)})


def _refuses_two_units(answer: Any) -> Iterator[Failure]:
    data = torch.tensor([1.0, 2.0], dtype=torch.float64)
    for what, run in (
        ("metres + seconds", lambda: answer(data, "m") + answer(data, "s")),
        ("torch.stack([metres, seconds])", lambda: torch.stack([answer(data, "m"), answer(data, "s")])),
        ("torch.sub(metres, other=seconds)", lambda: torch.sub(answer(data, "m"), other=answer(data, "s"))),
    ):
        tried = Tried(what, run)
        if isinstance(tried.error, RecursionError):
            yield from tried.refused("recursion")
        elif not isinstance(tried.error, ValueError):
            got = type(tried.error).__name__ if tried.error is not None else _unit(tried.value)
            yield Failure("units_mixed", NO_ERROR, {"what": what, "got": got, "expected": "ValueError"})


def _lets_gradients_through(answer: Any) -> Iterator[Failure]:
    data = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    tried = Tried("(answer(data, 'm') ** 2).sum().backward()", lambda: (answer(data, "m") ** 2).sum().backward())
    yield from tried.refused("gradient_lost")
    if tried.error is None and (data.grad is None or not torch.equal(plain(data.grad), 2 * plain(data))):
        yield Failure("gradient_lost", WRONG_VALUE, {"what": "data.grad", "got": data.grad, "expected": [2.0, 4.0]})


def _unit_tensor(answer: Any, draw: Draw) -> Iterator[Failure]:
    yield from first(_keeps_units(answer), _refuses_two_units(answer), _lets_gradients_through(answer))


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
            {
                "en": "An operation after the end of the `with` block is in the log. Leave entering and leaving to"
                " the mode.",
                "zh": "`with` 块结束之后的运算也进了日志。进入和退出请交给模式自己处理。",
            },
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
    with modes_kept():  # an answer that never leaves its mode must not stay in the student's kernel
        found = list(first(_logs(answer), _behaves(answer)))
    yield from found


EXERCISES = (
    Exercise("scalar_tensor", "ScalarTensor", "custom", own=scalar_tensor),
    Exercise("dense_fallback", "DenseScalar", "custom", own=dense_fallback),
    Exercise("unit_tensor", "UnitTensor", "custom", own=_unit_tensor, points=2),
    Exercise("counting_wrapper", "Counting", "custom", own=_counting_wrapper, points=2),
    Exercise("op_log", "OpLog", "custom", own=_op_log),
)
