"""Exercises of notebook 12, extending torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import handle_torch_function, has_torch_function

from nbautograd.core.pytrees import tensors
from nbautograd.course.attempt import plain
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.tried import Tried, in_turn

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


POINTS = 3  # how often one and the same thing is asked, each time with other numbers


def _numbers(draw: InputGenerator) -> tuple[int, int]:
    return draw.choice(range(2, 7)), draw.choice([*range(-9, 0), *range(1, 10)])


def _dense(n: int, value: float) -> Tensor:
    return value * torch.eye(n)


def _means(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for _ in range(POINTS):
        n, value = _numbers(draw)
        expected = value / n
        for what, run in (
            (f"torch.mean(ScalarTensor({n}, {value}))", lambda s: torch.mean(s)),
            (f"torch.mean(input=ScalarTensor({n}, {value}))", lambda s: torch.mean(input=s)),
        ):
            tried = Tried(what, run, answer(n, value))
            yield from tried.refused("mean_raised" if "input=" not in what else "kwargs_lost")
            if tried.error is None and not _is_number(tried.value, expected):
                yield Failure(
                    "mean_wrong", "course.wrong_value", {"what": what, "got": tried.value, "expected": expected}
                )


def _is_number(found: Any, expected: float) -> bool:
    return (
        not isinstance(found, bool) and isinstance(found, (int, float, Tensor)) and abs(float(found) - expected) < 1e-6
    )


def _adds_alike(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for by_name in (False, True, False):
        n, a = _numbers(draw)
        b = draw.choice(range(-9, 10))
        names = ("input=", "other=") if by_name else ("", "")
        what = f"torch.add({names[0]}ScalarTensor({n}, {a}), {names[1]}ScalarTensor({n}, {b}))"
        tried = Tried(what, _added, answer(n, a), answer(n, b), by_name)
        yield from tried.refused("kwargs_lost" if by_name else "add_raised")
        if tried.error is not None:
            continue
        got = type(tried.value).__name__
        if not isinstance(tried.value, answer):
            yield Failure("add_not_scalar", "course.wrong_type", {"what": what, "got": got, "expected": "ScalarTensor"})
        elif (tried.value.n, tried.value.value) != (n, a + b):
            got = f"ScalarTensor({tried.value.n}, {tried.value.value})"
            yield Failure(
                "add_wrong",
                "course.wrong_value",
                {"what": what, "got": got, "expected": f"ScalarTensor({n}, {a + b})"},
            )
    n, value = _numbers(draw)
    for one, two in ((n, n + 1), (n + 2, n)):
        what = f"torch.add(ScalarTensor({one}, {value}), ScalarTensor({two}, {value}))"
        sizes = Tried(what, torch.add, answer(one, value), answer(two, value))
        if not isinstance(sizes.error, (ValueError, RuntimeError)):
            got = type(sizes.error or sizes.value).__name__
            yield Failure("sizes_ignored", "course.no_error", {"what": what, "got": got, "expected": "ValueError"})


def _added(a: Any, b: Any, by_name: bool) -> Any:
    return torch.add(input=a, other=b) if by_name else torch.add(a, b)


def _adds_mixed(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for by_name in (False, True):
        n, value = _numbers(draw)
        tensor = draw.integers(-9, 10, n, n).float()
        names = ("input=", "other=") if by_name else ("", "")
        for left in (True, False):
            who = (f"ScalarTensor({n}, {value})", "tensor")
            what = f"torch.add({names[0]}{who[not left]}, {names[1]}{who[left]})"
            given = [answer(n, value), tensor] if left else [tensor, answer(n, value)]
            tried = Tried(what, _added, *given, by_name)
            yield from tried.same("mixed_add", _dense(n, value) + tensor)


# functions that nobody has put into the table, each with what it is called with after the object
NOT_IN_THE_TABLE: dict[Any, tuple[Any, ...]] = {
    torch.mul: (3,), torch.sub: (1,), torch.sum: (), torch.exp: (), torch.neg: (), torch.matmul: (torch.ones(2, 2),),
    torch.abs: (), torch.div: (2,), torch.trace: (), torch.maximum: (torch.ones(2, 2),), torch.std: (), torch.prod: (),
}  # fmt: skip


def _leaves_the_rest(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for function in draw.some(list(NOT_IN_THE_TABLE), POINTS):
        name = f"torch.{function.__name__}"
        given = "".join(f", {'tensor' if isinstance(x, Tensor) else x}" for x in NOT_IN_THE_TABLE[function])
        what = f"{name}(ScalarTensor(2, 3){given})"
        unknown = Tried(what, function, answer(2, 3), *NOT_IN_THE_TABLE[function])
        if not isinstance(unknown.error, TypeError) or name not in str(unknown.error):
            got = type(unknown.value if unknown.error is None else unknown.error).__name__
            expected = "a TypeError of torch" if unknown.error is None else f"torch's own TypeError about {name}"
            yield Failure("unknown_not_refused", "course.no_error", {"what": what, "got": got, "expected": expected})
    n, value = _numbers(draw)
    said = f"{draw.choice(range(1000))} is other's answer"
    stranger: Any = _Other(said)
    other = Tried("torch.add(s, other)", lambda: torch.add(answer(n, value), stranger))
    if other.value != said:
        yield Failure("types_ignored", "course.n12.stranger")


def _is_a_tensor(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    if issubclass(answer, Tensor):
        yield Failure("is_a_tensor", "course.n12.a_tensor", {"name": answer.__name__})


# dense_fallback


def grid(rows: Any) -> Tensor:
    """Put tensors in a list of lists together, as a library on top of torch does, which asks as torch does."""
    flat = [item for row in rows for item in row]
    if has_torch_function(flat):
        return handle_torch_function(grid, flat, rows=rows)
    return torch.cat([torch.cat(list(row), 1) for row in rows])


Case = tuple[str, str, Callable[[Any, Any, Tensor], Any]]  # the failure's code, the call as text, and the call
CASES: tuple[Case, ...] = (
    ("positional", "torch.mul(s, t)", lambda s, t, x: torch.mul(s, t)),
    ("positional", "torch.mul(s, 3)", lambda s, t, x: torch.mul(s, 3)),
    ("list_left_out", "torch.stack([s, t])", lambda s, t, x: torch.stack([s, t])),
    ("list_left_out", "torch.cat((s, x, t))", lambda s, t, x: torch.cat((s, x, t))),
    ("keyword_left_out", "torch.sub(x, other=s)", lambda s, t, x: torch.sub(x, other=s)),
    ("keyword_left_out", "torch.sum(s, dim=0)", lambda s, t, x: torch.sum(s, dim=0)),
    ("keyword_left_out", "torch.where(condition=x > 0, input=s, other=t)",
     lambda s, t, x: torch.where(condition=x > 0, input=s, other=t)),
    ("list_left_out", "torch.stack(tensors=[s, t])", lambda s, t, x: torch.stack(tensors=[s, t])),
    ("list_left_out", "torch.einsum('ij,jk', [s, t])", lambda s, t, x: torch.einsum("ij,jk", [s, t])),
    ("list_left_out", "grid([[s, x], [t, s]])", lambda s, t, x: grid([[s, x], [t, s]])),
    ("list_left_out", "grid(rows=([s, t], (x, s)))", lambda s, t, x: grid(rows=([s, t], (x, s)))),
)  # fmt: skip


def _dense_fallback(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    """Whatever is not handled is done on tensors, wherever in the arguments the objects stand."""
    yield from (told := list(_is_a_tensor(answer, draw)))
    if told:
        return
    for code, what, run in CASES:
        n, a = _numbers(draw)
        b, x = a + draw.choice([-2.5, -1.5, 1.5, 2.5]), draw.normal(n, n).float()
        s, t = answer(n, float(a)), answer(n, b)
        yield from _still_in_the_table(s)
        right = run(_dense(n, a), _dense(n, b), x)
        for found in Tried(what, run, s, t, x).same(code, right):
            yield Failure("recursion" if found.code == "recursion" else code, found.sentence, found.params)
            return


def _still_in_the_table(s: Any) -> Iterator[Failure]:
    expected = s.value / s.n
    by_name = Tried("torch.mean(input=s)", lambda: torch.mean(input=s))
    yield from by_name.refused("handled_lost")
    handled = Tried("torch.mean(s)", lambda: torch.mean(s))
    yield from handled.refused("handled_lost")
    if handled.error is None and (isinstance(handled.value, Tensor) or handled.value != expected):
        shown = {"what": "torch.mean(s)", "got": handled.value, "expected": f"the {expected:.4g} of the table"}
        yield Failure("handled_lost", "course.wrong_value", shown)


# unit_tensor


def _unit(value: Any) -> str:
    return repr(getattr(value, "unit", None)) if isinstance(value, Tensor) else type(value).__name__


UNITS = ("m", "s", "kg", "A", "K", "mol", "cd", "Hz")
# what may be computed with a quantity x, another one y of the same unit, and a plain tensor
KEPT: dict[str, Callable[[Any, Any, Tensor], Any]] = {
    "x + y": lambda x, y, data: x + y,
    "x[1:]": lambda x, y, data: x[1:],
    "x * 2": lambda x, y, data: x * 2,
    "x.sum()": lambda x, y, data: x.sum(),
    "torch.stack([x, y])": lambda x, y, data: torch.stack([x, y]),
    "torch.add(data, other=x)": lambda x, y, data: torch.add(data, other=x),
    "data - x": lambda x, y, data: data - x,
    "torch.cat(tensors=(data, y))": lambda x, y, data: torch.cat(tensors=(data, y)),
    "grid([[x[None], data[None]]])": lambda x, y, data: grid([[x[None], data[None]]]),
    "x.sort()": lambda x, y, data: x.sort(),
    "torch.max(x, dim=0)": lambda x, y, data: torch.max(x, dim=0),
    "x.split(1)": lambda x, y, data: x.split(1),
    "torch.unbind(x)": lambda x, y, data: torch.unbind(x),
    "torch.broadcast_tensors(x, y)": lambda x, y, data: torch.broadcast_tensors(x, y),
    "x.abs().mean()": lambda x, y, data: x.abs().mean(),
    "x.neg().exp()": lambda x, y, data: x.neg().exp(),
    "x.clone().add_(y)": lambda x, y, data: x.clone().add_(y),
}  # fmt: skip


def _keeps_units(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for what, run in KEPT.items():
        unit, size = draw.choice(UNITS), draw.choice(range(2, 6))
        data, more, bare = draw.normal(size), draw.normal(size), draw.normal(size)
        x, y = answer(data, unit), answer(more, unit)
        expected = list(tensors(run(data, more, bare)))
        tried = Tried(what, run, x, y, bare)
        found = [tried.value] if len(expected) == 1 else list(tensors(tried.value))
        if tried.error is not None or len(found) != len(expected):
            yield from tried.refused("unit_value")
            yield Failure("unit_value", "course.wrong_type", _types(what, tried.value, f"{len(expected)} tensors"))
            return
        for part, right in zip(found, expected, strict=True):
            yield from _quantity(answer, what, part, right, unit)
        if (x.unit, y.unit) != (unit, unit):
            yield Failure("unit_changed", "course.n12.lost", {"what": "x", "got": _unit(x)})
            return


def _quantity(answer: Any, what: str, found: Any, right: Tensor, unit: str) -> Iterator[Failure]:
    """Check one result: its numbers, its type and its unit; of whole numbers, which are places, only the numbers."""
    tried = Tried(what, lambda: found)
    yield from tried.same("unit_value", right)
    if not right.is_floating_point() or not isinstance(found, Tensor):
        return
    if not isinstance(found, answer):
        yield Failure("type_lost", "course.wrong_type", _types(what, found, "UnitTensor"))
    elif getattr(found, "unit", None) != unit:
        yield Failure("unit_lost", "course.n12.lost", {"what": what, "got": _unit(found)})


def _types(what: str, found: Any, expected: str) -> dict[str, str]:
    return {"what": what, "got": type(found).__name__, "expected": expected}


MIXED: dict[str, Callable[[Any, Any], Any]] = {
    "x + y": lambda x, y: x + y,
    "torch.stack([x, x, y])": lambda x, y: torch.stack([x, x, y]),
    "torch.sub(x, other=y)": lambda x, y: torch.sub(x, other=y),
    "torch.stack(tensors=(x, y))": lambda x, y: torch.stack(tensors=(x, y)),
    "grid([[x[None]], [y[None]]])": lambda x, y: grid([[x[None]], [y[None]]]),
    "x.clone().mul_(y)": lambda x, y: x.clone().mul_(y),
}


def _refuses_two_units(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for what, run in MIXED.items():
        one, two = draw.some(list(UNITS), 2)
        data = draw.normal(draw.choice(range(2, 6)))
        tried = Tried(what, run, answer(data, one), answer(data, two))
        if isinstance(tried.error, RecursionError):
            yield from tried.refused("recursion")
        elif not isinstance(tried.error, ValueError):
            got = type(tried.error).__name__ if tried.error is not None else _unit(tried.value)
            shown = {"what": f"x in {one}, y in {two}: {what}", "got": got, "expected": "ValueError"}
            yield Failure("units_mixed", "course.no_error", shown)


def _lets_gradients_through(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    data, unit = draw.normal(draw.choice(range(2, 6))).requires_grad_(), draw.choice(UNITS)
    what = f"(UnitTensor(data, {unit!r}) ** 2).sum().backward()"
    tried = Tried(what, lambda: (answer(data, unit) ** 2).sum().backward())
    yield from tried.refused("gradient_lost")
    if tried.error is None and (data.grad is None or not torch.allclose(plain(data.grad), 2 * plain(data))):
        expected = (2 * plain(data)).tolist()
        yield Failure(
            "gradient_lost", "course.wrong_value", {"what": "data.grad", "got": data.grad, "expected": expected}
        )


EXERCISES = (
    Exercise(
        "scalar_tensor", "ScalarTensor", "custom",
        own=in_turn(_is_a_tensor, _means, _adds_alike, _adds_mixed, _leaves_the_rest),
    ),
    Exercise("dense_fallback", "DenseScalar", "custom", own=_dense_fallback),
    Exercise(
        "unit_tensor", "UnitTensor", "custom", points=2,
        own=in_turn(_keeps_units, _refuses_two_units, _lets_gradients_through),
    ),
)  # fmt: skip
