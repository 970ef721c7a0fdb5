"""What a method can have done with ctx, from its bytecode; and that nothing on ctx is missed where it cannot tell."""

from __future__ import annotations

import functools

import pytest
import torch

from nbautograd.core.recording import log
from nbautograd.core.recording.ctx_use import used_of_ctx


def test_names_that_are_touched():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.scale = ctx.needs_input_grad
        return x

    assert used_of_ctx(forward.__code__) == {"save_for_backward", "scale", "needs_input_grad"}


def passed_on(ctx, x):
    setattr(ctx, "kept", 1)  # noqa: B010
    return x * 2


def renamed(ctx, x):
    other = ctx
    other.kept = 1
    return x * 2


def closed_over(ctx, x):
    def later():
        ctx.kept = 1

    later()
    return x * 2


def together(ctx, x):
    pair = x, ctx
    pair[1].kept = 1
    return x * 2


def decorated(ctx, x):
    return x * 2


@pytest.mark.parametrize("forward", [passed_on, renamed, closed_over, together])
def test_any_name_once_ctx_gets_away(forward):
    assert used_of_ctx(forward.__code__) is None


def keeping(function):
    @functools.wraps(function)
    def wrapped(ctx, *args):
        ctx.kept = 1
        return function(ctx, *args)

    return wrapped


@pytest.mark.parametrize("forward", [passed_on, renamed, closed_over, together, keeping(decorated)])
@pytest.mark.parametrize("kind", [staticmethod, lambda f: classmethod(lambda cls, ctx, x: f(ctx, x)), lambda f: f])
def test_nothing_on_ctx_is_missed(forward, kind):
    cls = type(
        "Made", (torch.autograd.Function,), {"forward": kind(forward), "backward": staticmethod(lambda ctx, g: g)}
    )
    with log.recording(cls) as calls:
        cls.apply(torch.ones(2, requires_grad=True))
    assert calls[0].ctx.attributes["kept"].repr == "1"
