"""Exercises of notebook 12, extending torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from nbautograd.course.draw import Draw
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.tried import NO_ERROR, WRONG_TYPE, WRONG_VALUE, Tried, first, plain

# scalar_tensor


class _Other:
    """A second type that overrides: it can add itself to a ScalarTensor, as long as it is asked in time."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
        if any(isinstance(a, Tensor) for a in args):
            return "asked too late"
        return next(a.answer for a in args if isinstance(a, _Other))


def _dense(n: int, value: float) -> Tensor:
    return value * torch.eye(n)


def _means(answer: Any) -> Iterator[Failure]:
    for what, run in (
        ("torch.mean(ScalarTensor(5, 2))", lambda: torch.mean(answer(5, 2))),
        ("torch.mean(input=ScalarTensor(5, 2))", lambda: torch.mean(input=answer(5, 2))),
    ):
        tried = Tried(what, run)
        yield from tried.refused("mean_raised" if "input=" not in what else "kwargs_lost")
        if tried.error is None and tried.value != 0.4:
            yield Failure("mean_wrong", WRONG_VALUE, {"what": what, "got": tried.value, "expected": 0.4})


def _adds_alike(answer: Any) -> Iterator[Failure]:
    tried = Tried("torch.add(ScalarTensor(2, 2), ScalarTensor(2, 3))", lambda: torch.add(answer(2, 2), answer(2, 3)))
    yield from tried.refused("add_raised")
    if tried.error is None:
        got = type(tried.value).__name__
        if not isinstance(tried.value, answer):
            yield Failure("add_not_scalar", WRONG_TYPE, {"what": tried.what, "got": got, "expected": "ScalarTensor"})
        elif (tried.value.n, tried.value.value) != (2, 5):
            got = f"ScalarTensor({tried.value.n}, {tried.value.value})"
            yield Failure("add_wrong", WRONG_VALUE, {"what": tried.what, "got": got, "expected": "ScalarTensor(2, 5)"})
    sizes = Tried("torch.add(ScalarTensor(2, 2), ScalarTensor(3, 2))", lambda: torch.add(answer(2, 2), answer(3, 2)))
    if not isinstance(sizes.error, (ValueError, RuntimeError)):
        got = type(sizes.error or sizes.value).__name__
        yield Failure("sizes_ignored", NO_ERROR, {"what": sizes.what, "got": got, "expected": "ValueError"})


def _adds_mixed(answer: Any) -> Iterator[Failure]:
    ones = torch.ones(2, 2)
    for what, run in (
        ("torch.add(ScalarTensor(2, 3), ones)", lambda: torch.add(answer(2, 3), ones)),
        ("torch.add(ones, ScalarTensor(2, 3))", lambda: torch.add(ones, answer(2, 3))),
    ):
        yield from Tried(what, run).same("mixed_add", _dense(2, 3) + ones)


def _leaves_the_rest(answer: Any) -> Iterator[Failure]:
    unknown = Tried("torch.mul(ScalarTensor(2, 3), 3)", lambda: torch.mul(answer(2, 3), 3))
    if not isinstance(unknown.error, TypeError) or "torch.mul" not in str(unknown.error):
        got = type(unknown.value if unknown.error is None else unknown.error).__name__
        what = "a TypeError of torch" if unknown.error is None else "torch's own TypeError about torch.mul"
        yield Failure("unknown_not_refused", NO_ERROR, {"what": unknown.what, "got": got, "expected": what})
    stranger: Any = _Other("other's answer")
    other = Tried("torch.add(ScalarTensor(2, 3), other)", lambda: torch.add(answer(2, 3), stranger))
    if other.value != "other's answer":
        yield Failure(
            "types_ignored",
            {
                "en": "`other` is of a type that you do not know, and that knows how to add itself to yours. It was"
                " never asked: what does `types` tell you, and what do you return then?",
                "zh": "`other` 是你不认识的类型，它知道怎样与你的对象相加，却没有机会回答。"
                "`types` 告诉了你什么？这时该返回什么？",
            },
        )


def _scalar_tensor(answer: Any, draw: Draw) -> Iterator[Failure]:
    """A type that torch does not know, with mean and add of its own."""
    yield from first(_means(answer), _adds_alike(answer), _adds_mixed(answer), _leaves_the_rest(answer))


# dense_fallback


def _fallback_cases(s: Any, t: Any) -> list[tuple[str, str, Callable[[], Any], Callable[[Tensor, Tensor], Tensor]]]:
    ones = torch.ones(2, 2)
    return [
        ("positional", "torch.mul(s, t)", lambda: torch.mul(s, t), lambda a, b: a * b),
        ("positional", "torch.mul(s, 3)", lambda: torch.mul(s, 3), lambda a, b: a * 3),
        ("list_left_out", "torch.stack([s, t])", lambda: torch.stack([s, t]), lambda a, b: torch.stack([a, b])),
        ("list_left_out", "torch.cat((s, ones, t))", lambda: torch.cat((s, ones, t)),
         lambda a, b: torch.cat((a, ones, b))),
        ("keyword_left_out", "torch.sub(ones, other=s)", lambda: torch.sub(ones, other=s), lambda a, b: ones - a),
        ("keyword_left_out", "torch.sum(s, dim=0)", lambda: torch.sum(s, dim=0), lambda a, b: a.sum(dim=0)),
        ("list_left_out", "torch.stack(tensors=[s, t])", lambda: torch.stack(tensors=[s, t]),
         lambda a, b: torch.stack([a, b])),
        ("list_left_out", "torch.einsum('ij,jk', [s, t])", lambda: torch.einsum("ij,jk", [s, t]), lambda a, b: a @ b),
    ]  # fmt: skip


def _dense_fallback(answer: Any, draw: Draw) -> Iterator[Failure]:
    """Whatever is not handled is done on tensors, wherever in the arguments the objects stand."""
    s, t = answer(2, 3.0), answer(2, -1.5)
    handled = Tried("torch.mean(s)", lambda: torch.mean(s))
    yield from handled.refused("handled_lost")
    if handled.error is None and (isinstance(handled.value, Tensor) or handled.value != 1.5):
        shown = {"what": "torch.mean(s)", "got": handled.value, "expected": "the 1.5 of the table"}
        yield Failure("handled_lost", WRONG_VALUE, shown)
        return
    for code, what, run, truth in _fallback_cases(s, t):
        failures = list(Tried(what, run).same(code, truth(_dense(2, 3.0), _dense(2, -1.5))))
        if failures:
            found = failures[0]
            yield Failure("recursion" if found.code == "recursion" else code, found.sentence, found.params)
            return
    given = [s, t]
    torch.stack(given)
    if any(a is not b for a, b in zip(given, (s, t), strict=True)):
        yield Failure(
            "changes_the_list",
            {
                "en": "The list that the caller gave to torch.stack holds other things afterwards. It is the caller's:"
                " make a new one.",
                "zh": "调用者传给 torch.stack 的列表，调用之后里面的东西变了。列表属于调用者，请另建一个。",
            },
        )


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


EXERCISES = (
    Exercise("scalar_tensor", "ScalarTensor", "custom", own=_scalar_tensor),
    Exercise("dense_fallback", "DenseScalar", "custom", own=_dense_fallback),
    Exercise("unit_tensor", "UnitTensor", "custom", own=_unit_tensor, points=2),
)
