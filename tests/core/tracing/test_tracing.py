"""Tracing ``__torch_function__`` and ``__torch_dispatch__``: nothing changes, everything is written down."""

from __future__ import annotations

import gc
import inspect
import traceback
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from said import pattern, says
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import nbautograd
from nbautograd.core.tracing.dispatches import Dispatch
from nbautograd.core.tracing.log import dispatches, mark, trace, untrace
from nbautograd.core.tracing.spying import KEPT_DISPATCHES
from nbautograd.errors import CallError

HANDLED: dict[Any, Any] = {}


@contextmanager
def tracing(*classes: type) -> Iterator[list[Dispatch]]:
    """What went through some classes, once the block is over."""
    since, log = mark(), list[Dispatch]()
    for cls in classes:
        trace(cls)
    try:
        yield log
    finally:
        log += dispatches(*classes, since=since)
        for cls in classes:
            untrace(cls)


def scalar_type() -> type:
    class Scalar:
        def __init__(self, n: int, value: float) -> None:
            self.n, self.value = n, value

        def __repr__(self) -> str:
            raise AssertionError("tracing may not call the user's __repr__")

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in HANDLED:
                return NotImplemented
            return HANDLED[func](*args, **(kwargs or {}))

    return Scalar


def half(x: Any, *, dim: int = 0) -> float:
    return float(x.value) * 0.5 * (1 + dim)


HANDLED[torch.mean] = half
HANDLED[torch.add] = lambda a, b: torch.add(torch.eye(a.n) * a.value, b)


def test_what_was_asked_and_who_answered() -> None:
    cls = scalar_type()
    with tracing(cls) as log:
        assert torch.mean(cls(2, 3.0), dim=1) == 3.0  # type: ignore[call-overload]
    (seen,) = log
    assert (seen.func, seen.owner, seen.types, seen.protocol) == (
        "torch.mean",
        "Scalar",
        ("Scalar",),
        "__torch_function__",
    )
    assert [v.repr for v in seen.args] == ["<Scalar n=2 value=3.0>"]
    assert [(v.name, v.repr) for v in seen.kwargs] == [("dim", "1")]
    assert (seen.outcome, seen.handler, seen.result and seen.result.repr) == ("returned", "half", "3.0")
    assert seen.handler_line == half.__code__.co_firstlineno


def test_an_unanswered_call_stays_torchs_own_error() -> None:
    cls = scalar_type()
    with pytest.raises(TypeError) as bare:
        torch.mul(cls(2, 3.0), 3)  # type: ignore[arg-type]
    with tracing(cls) as log, pytest.raises(TypeError) as traced:
        torch.mul(cls(2, 3.0), 3)  # type: ignore[arg-type]
    assert str(traced.value) == str(bare.value)
    assert [(d.outcome, d.result) for d in log] == [("NotImplemented", None)]


def test_an_error_shows_the_users_frames_only() -> None:
    cls = scalar_type()

    def names(error: BaseException) -> list[str]:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)]

    with pytest.raises(TypeError) as bare:
        torch.mean(cls(2, 3.0), dtype=torch.float32)  # type: ignore[call-overload]
    with tracing(cls) as log, pytest.raises(TypeError) as traced:
        torch.mean(cls(2, 3.0), dtype=torch.float32)  # type: ignore[call-overload]
    assert names(traced.value) == names(bare.value)
    assert log[0].outcome == "raised"
    assert log[0].exception.startswith("TypeError: ")


class Unit(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs)


def test_a_subclass_computes_the_same_and_keeps_its_gradient() -> None:
    def run() -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.linspace(0, 1, 5, dtype=torch.float64).as_subclass(Unit).requires_grad_()
        y = (x * 2 + 1).sin()[1:]
        y.sum().backward()
        assert type(y) is Unit
        return y.detach().as_subclass(torch.Tensor), x.grad.as_subclass(torch.Tensor)

    bare = run()
    with tracing(Unit) as log:
        traced = run()
    assert all(torch.equal(a, b) for a, b in zip(bare, traced, strict=True))
    assert "torch.Tensor.mul" in [d.func for d in log]
    first = next(d for d in log if d.func == "torch.Tensor.mul")
    assert first.args[0].repr.startswith("float64 5")
    assert first.args[1].repr == "2"


class Outer(torch.Tensor):
    """A wrapper that answers every operation on what it holds; it counts them."""

    asked = 0

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Outer:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined, no-any-return]
            cls, inner.shape, dtype=inner.dtype, dispatch_sizes_strides_policy="sizes"
        )

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    def __repr__(self) -> str:  # type: ignore[override]
        raise AssertionError("tracing may not call the user's __repr__")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.asked += 1
        if func is torch.ops.aten.sym_size.default:
            return list(args[0].inner.shape)
        result = func(*[a.inner if isinstance(a, Outer) else a for a in args], **(kwargs or {}))
        return Outer(result) if isinstance(result, torch.Tensor) else result


def test_a_wrapper_is_described_without_asking_it_anything() -> None:
    def asked() -> int:
        Outer.asked = 0
        x = Outer(torch.ones(2, 3))
        torch.relu(x + 1)
        return Outer.asked

    bare = asked()
    with tracing(Outer) as log:
        assert asked() == bare
    assert len(log) == bare
    added = next(d for d in log if d.func == "aten.add.Tensor")
    assert added.protocol == "__torch_dispatch__"
    assert added.args[0].repr == "<Outer inner=float32 2×3>"


def test_modes_are_traced_and_calls_nest() -> None:
    class Dispatching(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    class Calling(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with tracing(Dispatching, Calling) as log, Dispatching(), Calling():
        torch.ones(2).add(1)
    by_name = {d.func: d for d in log}
    assert list(by_name) == ["torch.ones", "aten.ones.default", "torch.Tensor.add", "aten.add.Tensor"]
    assert by_name["aten.add.Tensor"].parent == by_name["torch.Tensor.add"].index
    assert by_name["torch.ones"].parent is None


def test_the_class_is_the_same_again_afterwards() -> None:
    cls = scalar_type()
    before = vars(cls)["__torch_function__"]
    source = inspect.getsource(cls.__torch_function__)  # type: ignore[attr-defined]
    trace(cls)
    assert trace(cls) is cls
    method = cls.__torch_function__  # type: ignore[attr-defined]
    assert (method.__name__, method.__qualname__) == (before.__func__.__name__, before.__func__.__qualname__)
    assert inspect.getsource(method) == source
    assert inspect.signature(method) == inspect.signature(before.__func__.__get__(cls))
    untrace(cls)
    assert vars(cls)["__torch_function__"] is before


def test_a_method_set_meanwhile_stays() -> None:
    cls = scalar_type()
    trace(cls)
    cls.__torch_function__ = classmethod(lambda *a, **k: 5)  # type: ignore[attr-defined]
    untrace(cls)
    assert torch.mean(cls(1, 1.0)) == 5  # type: ignore[arg-type]


def test_a_static_method_runs_untouched_and_the_log_says_so() -> None:
    class Static:
        @staticmethod
        def __torch_function__(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> int:
            return 3

    assert torch.mean(trace(Static)()) == 3  # type: ignore[call-overload]
    log = dispatches(Static)
    assert len(log) == 0
    (problem,) = log.problems
    assert (problem.message_id, problem.params["owner"]) == ("tracing.other_kind", "Static")


def test_recursion_ends_as_it_would_and_is_one_finding() -> None:
    class Loops:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with pytest.raises(RecursionError):
        torch.stack([trace(Loops)(), Loops()])  # type: ignore[list-item]
    log = dispatches(Loops)
    assert len(log) > 50
    shown = log._repr_mimebundle_()["text/plain"]
    assert says(shown, "tracing.recursion", owner="Loops")
    assert len(shown.splitlines()) < 12


def test_neither_the_class_nor_what_it_met_stays_alive() -> None:
    cls = scalar_type()
    trace(cls)
    met = cls(2, 3.0)
    torch.mean(met)  # type: ignore[call-overload]
    gone = [weakref.ref(cls), weakref.ref(met)]
    del cls, met
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_the_ring_is_bounded_and_says_what_it_dropped() -> None:
    cls = scalar_type()
    since = mark()
    trace(cls)
    met = cls(2, 3.0)
    for _ in range(KEPT_DISPATCHES + 10):
        torch.mean(met)  # type: ignore[call-overload]
    log = dispatches(cls, since=since)
    assert (len(log), log.dropped) == (KEPT_DISPATCHES, 10)


@pytest.mark.parametrize("wrong", [torch.nn.Linear, 3, torch.Tensor.add])
def test_what_cannot_be_traced_is_answered_with_advice(wrong: Any) -> None:
    with pytest.raises(CallError, match=pattern("tracing.no_override")):
        nbautograd.trace(wrong)
