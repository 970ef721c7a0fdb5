"""Exercises of notebook 16, dispatch and modes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from nbautograd.core.torch_private.tensors import modes_restored
from nbautograd.course.draw import InputGenerator
from nbautograd.course.exercise import Exercise, Failure
from nbautograd.course.exercises.tried import Check, Tried, in_turn

Program = Callable[[Any], Any]

# What is computed with a matrix of positive numbers and of as many rows as columns, and the failure when it goes wrong.
# One of each line: what comes by below autograd are lists, keywords, several results, views, things written in place.
PROGRAMS: dict[str, tuple[str, Program]] = {
    "x + 1": ("wrong_result", lambda x: x + 1),
    "torch.relu(x - 1)": ("wrong_result", lambda x: torch.relu(x - 1)),
    "x.exp() * x": ("wrong_result", lambda x: x.exp() * x),
    "x @ x.t()": ("wrong_result", lambda x: x @ x.t()),
    "torch.where(x > 1, x, -x)": ("wrong_result", lambda x: torch.where(x > 1, x, -x)),
    "x.clone().mul_(2)": ("wrong_result", lambda x: x.clone().mul_(2)),
    "x.tanh().log().abs()": ("wrong_result", lambda x: x.tanh().log().abs()),
    "torch.stack([x, x])": ("list_left_out", lambda x: torch.stack([x, x])),
    "torch.cat((x, x * 2))": ("list_left_out", lambda x: torch.cat((x, x * 2))),
    "x[x.argsort(0)[0]]": ("list_left_out", lambda x: x[x.argsort(0)[0]]),
    "x.sum(dim=0, keepdim=True)": ("kwargs_lost", lambda x: x.sum(dim=0, keepdim=True)),
    "torch.add(x, x, alpha=3)": ("kwargs_lost", lambda x: torch.add(x, x, alpha=3)),
    "torch.searchsorted(x, x, sorter=x.argsort())": (
        "kwargs_lost", lambda x: torch.searchsorted(x, x, sorter=x.argsort()),
    ),
    "torch.max(x, dim=0)": ("tuple_not_wrapped", lambda x: torch.max(x, dim=0)),
    "x.split(1)": ("tuple_not_wrapped", lambda x: x.split(1)),
}  # fmt: skip


def _matrix(draw: InputGenerator) -> Tensor:
    n = draw.choice(range(2, 6))
    return draw.uniform(0.1, 2.0, n, n)


def _computes(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for what, (code, run) in PROGRAMS.items():
        data = _matrix(draw)
        expected, tried = run(data.clone()), Tried(what, run, answer(data))
        yield from tried.refused(code)
        if tried.error is not None:
            return
        alone = isinstance(expected, Tensor)
        parts, right = ([tried.value], [expected]) if alone else (list(tried.value), list(expected))
        for found, one in zip(parts, right, strict=True):
            if not isinstance(found, answer):
                shown = {"what": what, "got": type(found).__name__, "expected": "Counting"}
                yield Failure("result_not_wrapped" if alone else "tuple_not_wrapped", "course.wrong_type", shown)
            elif not torch.equal(found.inner, one):
                yield Failure(
                    code,
                    "course.wrong_value",
                    {"what": what, "got": found.inner.tolist(), "expected": one.tolist()},
                )


def _counts(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    in_turn = 2 * draw.some(list(PROGRAMS), len(PROGRAMS))
    for chosen in (["x + 1", "x.exp() * x"], in_turn[::3], in_turn[1::3], in_turn[2::3]):
        data = _matrix(draw)
        x = answer(data)
        answer.counts.clear()
        _all_of(chosen, x)
        expected = Counter(_right_log(partial(_all_of, chosen, data)))
        if dict(answer.counts) != dict(expected):
            what = f"after {'; '.join(chosen)}: Counting.counts"
            shown = {"what": what, "got": dict(answer.counts), "expected": dict(expected)}
            yield Failure("counts_wrong", "course.wrong_value", shown)


def _all_of(chosen: Iterable[str], x: Any) -> None:
    for what in chosen:
        PROGRAMS[what][1](x)


def _differentiates(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    cases: dict[str, Program] = {
        "(x * x).sum().backward()": lambda x: (x * x).sum(),
        "torch.cat([x, x.exp()]).sum().backward()": lambda x: torch.cat([x, x.exp()]).sum(),
    }
    for what, run in cases.items():
        data = _matrix(draw)
        (expected,) = torch.autograd.grad(run(leaf := data.clone().requires_grad_()), leaf)
        x = answer(data).requires_grad_()
        tried = Tried(what, lambda run, x: run(x).backward(), run, x)
        yield from tried.refused("backward_raised")
        if tried.error is None:
            got = getattr(x.grad, "inner", None)
            if got is None or not torch.allclose(got, expected):
                shown = {"what": f"{what}: x.grad.inner", "got": got, "expected": expected.tolist()}
                yield Failure("backward_raised", "course.wrong_value", shown)


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


# one step of a program for a mode, from one square matrix to another
STEPS: dict[str, Program] = {
    "x = torch.add(x, x, alpha=3)": lambda x: torch.add(x, x, alpha=3),
    "x = x @ x": lambda x: x @ x,
    "x = x.exp()": lambda x: x.exp(),
    "x = x.sin() * x": lambda x: x.sin() * x,
    "x = x.t().clone()": lambda x: x.t().clone(),
    "x = x.sigmoid() / 2": lambda x: x.sigmoid() / 2,
    "x = x.clone().sub_(1)": lambda x: x.clone().sub_(1),
    "x = torch.cat([x, x])[::2]": lambda x: torch.cat([x, x])[::2],
    "x = x.sort(0)[0]": lambda x: x.sort(0)[0],
}


def _program(draw: InputGenerator) -> tuple[str, Callable[[], Tensor]]:
    """Draw a few steps: their text, and what makes the sum of the result anew."""
    names = [draw.choice(list(STEPS)) for _ in range(3)]
    data = _matrix(draw)

    def forward() -> Tensor:
        x = data.clone().requires_grad_()
        for name in names:
            x = STEPS[name](x)
        return x.sum()

    return f"{'; '.join(names)}; x.sum()", forward


def _logs(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for _ in range(4):
        yield from _one_log(answer, *_program(draw))


def _one_log(answer: Any, text: str, forward: Callable[[], Tensor]) -> Iterator[Failure]:
    what = f"{text}.backward()"
    expected = _right_log(lambda: forward().backward())
    with answer() as log:
        tried = Tried(what, lambda: forward().backward())
    yield from tried.refused("op_raised")
    if log is None:
        yield Failure("with_gives_nothing", "course.n16.no_self", {"name": "OpLog"})
        return
    names = list(log.names)
    if tried.error is None and (names != expected or not all(isinstance(name, str) for name in names)):
        before = _right_log(forward)
        if len(names) > len(expected) and names[-len(expected) :] == expected:
            yield Failure("logs_shared", "course.n16.left_over", {"got": names[: len(names) - len(expected)][:12]})
            return
        begins = names[: len(before)] == before and len(names) <= len(before) + 1
        code = "backward_not_seen" if begins else "names_wrong" if names else "nothing_logged"
        yield Failure(
            code,
            "course.wrong_value",
            {"what": f"{what}: log.names", "got": names[:12], "expected": expected[:12]},
        )


def _behaves(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    x, after = _matrix(draw), _matrix(draw)
    (one, outer), (two, inner) = ((name, PROGRAMS[name][1]) for name in draw.some(list(PROGRAMS), 2))
    with answer() as first_log:
        y = torch.add(x, x, alpha=3)
        outer(x)
        with answer() as second_log:
            inner(x)
        outer(x)
    after.cosh()
    if not torch.equal(y, torch.add(x, x, alpha=3)):
        shown = {"what": "torch.add(x, x, alpha=3)", "got": y.tolist(), "expected": (4 * x).tolist()}
        yield Failure("kwargs_lost", "course.wrong_value", shown)
        return
    if "aten.cosh.default" in [*first_log.names, *second_log.names]:
        yield Failure("never_ends", "course.n16.never_ends")
        return
    alone = _right_log(lambda: inner(x))
    if list(second_log.names) != alone:
        shown = {"what": f"with OpLog() inside another: {two}", "got": list(second_log.names)[:9], "expected": alone}
        yield Failure("logs_shared", "course.wrong_value", shown)
        return
    around = _right_log(lambda: outer(x))
    expected = ["aten.add.Tensor", *around, *alone, *around]
    if list(first_log.names) != expected:
        shown = {"what": f"{one}; with OpLog(): {two}; {one}", "got": list(first_log.names)[:12], "expected": expected}
        yield Failure("outer_log_wrong", "course.wrong_value", shown)


def _leaving(*checks: Check) -> Check:
    def own(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
        with modes_restored():  # an answer that never leaves its mode must not stay in the student's kernel
            found = list(in_turn(*checks)(answer, draw))
        yield from found

    return own


# nan_watch


def _watched_cases() -> list[tuple[str, str, Callable[[], Any], str | None]]:
    ones, inf = torch.ones(2, dtype=torch.float64), math.inf
    bad = torch.tensor([1.0, inf], dtype=torch.float64)

    def distance() -> None:
        x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
        (x * x).sum().sqrt().exp().backward()

    return [
        ("blames_nobody_wrongly", "(ones + 1).log().sum()", lambda: (ones + 1).log().sum(), None),
        ("blames_nobody_wrongly", "(1e308 * ones).neg()", lambda: (1e308 * ones).neg(), None),
        ("op_raised", "ones[:0].exp()", lambda: ones[:0].exp(), None),
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


# operations that make something infinite, or none at all, of ones or of zeros, and how they are called down there
CULPRITS: dict[str, tuple[str, Callable[[Tensor], Any]]] = {
    "(ones - 1).log()": ("aten.log.default", lambda ones: (ones - 1).log()),
    "(ones - 1).reciprocal()": ("aten.reciprocal.default", lambda ones: (ones - 1).reciprocal()),
    "(ones - 1).rsqrt()": ("aten.rsqrt.default", lambda ones: (ones - 1).rsqrt()),
    "(ones * 2).acos()": ("aten.acos.default", lambda ones: (ones * 2).acos()),
    "(ones * 900).cosh()": ("aten.cosh.default", lambda ones: (ones * 900).cosh()),
    "(ones * 900).sinh()": ("aten.sinh.default", lambda ones: (ones * 900).sinh()),
    "ones / (ones - 1)": ("aten.div.Tensor", lambda ones: ones / (ones - 1)),
    "(-ones).pow(0.5)": ("aten.pow.Tensor_Scalar", lambda ones: (-ones).pow(0.5)),
    "ones.erfinv()": ("aten.erfinv.default", lambda ones: ones.erfinv()),
    "ones.logit()": ("aten.logit.default", lambda ones: ones.logit()),
    "(ones - 1).digamma()": ("aten.digamma.default", lambda ones: (ones - 1).digamma()),
    "(ones - 1).lgamma()": ("aten.lgamma.default", lambda ones: (ones - 1).lgamma()),
    "ones.atanh()": ("aten.atanh.default", lambda ones: ones.atanh()),
    "(ones * 1e200).mul_(1e200)": ("aten.mul_.Tensor", lambda ones: (ones * 1e200).mul_(1e200)),
}
FOLLOWERS: dict[str, Callable[[Tensor], Any]] = {
    "* 0": lambda x: x * 0,
    ".softmax(0)": lambda x: x.softmax(0),
    ".sum()": lambda x: x.sum(),
    ".log()": lambda x: x.log(),
    ".cumsum(0)": lambda x: x.cumsum(0),
}


def _drawn_cases(draw: InputGenerator) -> Iterator[tuple[str, str, Callable[[], Any], str | None]]:
    """Yield culprits with something behind them, and innocents: the same behind an infinity that was there before."""
    for _ in range(4):
        made, (name, culprit) = draw.choice(list(CULPRITS.items()))
        then, follower = draw.choice(list(FOLLOWERS.items()))
        ones = torch.ones(draw.choice(range(1, 5)), 2, dtype=torch.float64)
        bad = torch.where(draw.uniform(0, 1, *ones.shape) < 0.5, torch.nan, torch.inf)
        yield (
            "not_the_first", f"({made}){then}",
            partial(lambda culprit, follower, x: follower(culprit(x)), culprit, follower, ones), name,
        )  # fmt: skip
        yield "innocent_blamed", f"bad{then}, bad of NaN and inf", partial(follower, bad), None
        yield "list_left_out", "torch.cat([ones, bad])", partial(torch.cat, [ones, bad]), None


def _finds_the_first(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    for code, what, run, expected in (*_watched_cases(), *_drawn_cases(draw)):
        with answer() as watch:
            left = getattr(watch, "first", None)
            tried = Tried(what, run)
        yield from tried.refused("op_raised")
        if watch is None:
            yield Failure("with_gives_nothing", "course.n16.no_self", {"name": "NanWatch"})
            return
        if left is not None:
            yield Failure("watch_shared", "course.n16.shared", {"got": repr(left)})
            return
        if watch.first != expected:
            named = expected is not None and watch.first is not None and code != "not_the_first"
            told = {"what": what, "got": repr(watch.first), "expected": repr(expected)}
            yield Failure(
                "names_wrong" if named else code, "course.n16.blamed" if expected is None else "course.n16.missed", told
            )
            return


def _number(run: Callable[[], Tensor]) -> float:
    return run().item()


def _changes_nothing(answer: Any, draw: InputGenerator) -> Iterator[Failure]:
    ones = torch.ones(2, dtype=torch.float64)
    programs = [("torch.add(ones, ones, alpha=3).sum()", lambda: torch.add(ones, ones, alpha=3).sum())]
    for what, forward in (*programs, *(_program(draw) for _ in range(3))):
        expected = _number(forward)
        with answer() as watch:
            tried = Tried(f"{what}.item()", _number, forward)
        yield from tried.refused("op_raised")
        if tried.error is None and not math.isclose(tried.value, expected, rel_tol=1e-9):
            code = "kwargs_lost" if "alpha" in what else "result_changed"
            yield Failure(code, "course.wrong_value", {"what": tried.what, "got": tried.value, "expected": expected})
            return
    (ones - 1).log()
    if watch.first is not None:
        yield Failure("never_ends", "course.n16.never_ends")


EXERCISES = (
    Exercise("counting_wrapper", "Counting", "custom", own=in_turn(_computes, _counts, _differentiates), points=2),
    Exercise("op_log", "OpLog", "custom", own=_leaving(_logs, _behaves)),
    # whether it leaves comes first: modes that stay make each other's work grow without bound
    Exercise("nan_watch", "NanWatch", "custom", own=_leaving(_changes_nothing, _finds_the_first), points=2),
)
