"""A trace sees the calls of torch of one method, and changes neither what it gives nor what it raises."""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading

import numpy as np
import pytest
import torch
from fn import Fn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode

from nbautograd.core.checking.repair.bounds import UsageMeter
from nbautograd.core.explaining.watch import Watch
from nbautograd.core.trace import Trace


class Doubled(TorchFunctionMode):
    """A mode of the user's: sums are twice as large."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return 2 * result if func is torch.sum else result


class Logged(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Named(torch.Tensor):
    """A subclass with answers of its own."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.exp:
            return "asked"
        return super().__torch_function__(func, types, args, kwargs or {})


Inner = Fn.of("Inner", "x: save(x); return x**2", "g: (x,) = saved; return 2 * x * g")


def enters_modes(x):
    with Doubled(), Logged():
        return torch.sum(x)


def subclass(x):
    return torch.exp(x.as_subclass(Named)), x.as_subclass(Named) * 2


def transforms(x):
    return torch.func.vmap(torch.func.grad(lambda t: (t**2).sum()))(x)


def nested(x):
    with torch.enable_grad():
        inner = x.detach().requires_grad_()
        return torch.autograd.grad(Inner.apply(inner).sum(), inner)[0]


def by_numpy(x):
    return torch.from_numpy(np.sin(x.detach().numpy()))


def into_memory(x):
    out = torch.empty_like(x)
    torch.mul(x, 2, out=out)
    x.numpy()[:] = 1
    return out, x


def under_a_device(x):
    with torch.device("meta"):
        return torch.ones(2) * 2


def raises(x):
    return x.view(-7)


def caught(x):
    try:
        x @ torch.ones(99)
    except RuntimeError as error:
        return str(error), torch.ones(2) * 3
    return None


def is_asked(x):
    return torch.is_grad_enabled(), x.requires_grad, x.shape


def outcome(method, x):
    """What a method gives, or raises."""
    try:
        return method(x)
    except Exception as error:
        return type(error), str(error)


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        alike = type(a) is type(b) and a.shape == b.shape and a.dtype == b.dtype and a.requires_grad == b.requires_grad
        return alike and a.device == b.device and (a.device.type == "meta" or torch.equal(a, b))
    return all(map(same, a, b)) if isinstance(a, tuple) else a == b


@pytest.mark.parametrize(
    ("method", "calls"),
    [
        (enters_modes, ["return torch.sum(x)"]),
        (subclass, ["return torch.exp(x.as_subclass(Named)), x.as_subclass(Named) * 2"]),
        (transforms, []),
        (nested, ["return torch.autograd.grad(Inner.apply(inner).sum(), inner)[0]"]),
        (by_numpy, ["return torch.from_numpy(np.sin(x.detach().numpy()))"]),
        (into_memory, ["torch.mul(x, 2, out=out)"]),
        (under_a_device, ["return torch.ones(2) * 2"]),
        (raises, []),
        (caught, ["return str(error), torch.ones(2) * 3"]),
        (is_asked, ["return torch.is_grad_enabled(), x.requires_grad, x.shape"]),
    ],
)
def test_a_method_does_under_a_trace_what_it_does_without(method, calls: list[str]) -> None:
    rows, first = inspect.getsourcelines(method)
    plain, lines = outcome(method, torch.arange(6.0).reshape(2, 3)), list[str]()
    stack = list(_get_current_function_mode_stack())

    def look(call):
        lines.append(rows[call.frame.f_lineno - first].strip())
        return call.result

    looked = Trace(method.__code__, after=look)
    with looked:
        traced = outcome(method, torch.arange(6.0).reshape(2, 3))
    assert list(_get_current_function_mode_stack()) == stack
    assert same(plain, traced)
    assert set(calls) <= set(lines)
    assert looked.frame is not None


def test_compiled_code_gives_the_same_and_the_line_of_its_call() -> None:
    compiled = torch.compile(lambda t: t.sin() * 2, backend="eager", fullgraph=True)

    def method(x):
        y = x + 1
        return compiled(y)

    lines, x = list[int](), torch.arange(3.0)
    plain = method(x)
    with Trace(method.__code__, lambda frame: lines.append(frame.f_lineno)):
        assert torch.equal(method(x), plain)
    assert torch.equal(method(x), plain)
    assert lines[0] == method.__code__.co_firstlineno + 1


def test_each_turn_of_a_loop_and_each_helper_is_a_call_of_its_line() -> None:
    def helper(t):
        return t * 2 + 1

    def method(x):
        for _ in range(3):
            x = x + 1
        y = helper(x)
        return [row * 2 for row in y]

    lines = list[int]()
    with Trace(method.__code__, lambda frame: lines.append(frame.f_lineno - method.__code__.co_firstlineno)) as trace:
        method(torch.ones(2))
    assert lines[:5] == [2, 2, 2, 3, 3]
    assert set(lines[5:]) == {4}
    assert trace.frame.f_lineno == method.__code__.co_firstlineno + 4  # where it ended


def test_another_thread_and_what_runs_outside_the_method_are_not_seen() -> None:
    seen = list[int]()

    def method(x):
        thread = threading.Thread(target=lambda: torch.ones(3) * 2)
        thread.start()
        thread.join()

    with Trace(method.__code__, lambda frame: seen.append(frame.f_lineno)):
        torch.ones(2) * 2
        method(torch.ones(2))
    assert seen == []


def test_a_debugger_sees_the_method_as_ever() -> None:
    def method(x):
        return x * 2

    def follow(frame, event, arg):
        events.append(event) if frame.f_code is method.__code__ else None
        return follow

    events, before = list[str](), sys.gettrace()
    sys.settrace(follow)
    try:
        with Trace(method.__code__):
            method(torch.ones(2))
            assert sys.gettrace() is follow
    finally:
        sys.settrace(before)
    assert events == ["call", "line", "return"]


@pytest.mark.parametrize(
    "modes", [[Watch().on()], 2 * [UsageMeter()]], ids=["watch", "a backward inside of another one"]
)
def test_what_is_compiled_runs_under_our_modes_and_other_threads_keep_their_compiler(modes) -> None:
    compiled = torch.compile(lambda t: t.sin() * 2, backend="eager", fullgraph=True)
    x = torch.arange(3.0, requires_grad=True)
    plain = compiled(x + 1)
    with contextlib.ExitStack() as stack:
        for mode in modes:
            stack.enter_context(mode)
        assert torch.equal(compiled(x + 1), plain)
        assert torch._dynamo.eval_frame._stance.stance == "default"
    assert torch.equal(compiled(x + 1), plain)
    assert list(_get_current_function_mode_stack()) == []
