"""Functions that a script in a fresh process can import: what torch.compile keeps, and what it changes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Kept(torch.autograd.Function):
    """A backward that is the derivative of forward."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        """Multiply a sine."""
        return x.sin() * weight

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep both."""
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        """Return both gradients."""
        x, weight = ctx.saved_tensors
        return grad_output * x.cos() * weight, grad_output * x.sin()


class Straight(Kept):
    """A gradient that is not the derivative of forward, and is meant."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor) -> Tensor:
        """Multiply rounded numbers."""
        return x.round() * weight

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        """Go straight through the rounding."""
        x, weight = ctx.saved_tensors
        return grad_output * weight, grad_output * x.round()


class WithCtx(torch.autograd.Function):
    """The same as ``Kept`` in the style that torch.func.grad does not take."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        """Multiply a sine."""
        ctx.save_for_backward(x, weight)
        return x.sin() * weight

    backward = Kept.backward


class Tripled(torch.autograd.Function):
    """Three times its input, in its place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Multiply in place."""
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        """Return three times the gradient."""
        return 3 * grad_output


class Repeated(torch.autograd.Function):
    """One tensor as both outputs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        """Double."""
        y = 2 * x
        return y, y

    @staticmethod
    def backward(ctx: Any, first: Tensor, second: Tensor) -> Tensor:
        """Return the gradient of both."""
        return 2 * first + 2 * second


def eager(x: Tensor, weight: Tensor) -> Tensor:
    """Compute what ``Kept`` does."""
    return x.sin() * weight


def straight(x: Tensor, weight: Tensor) -> Tensor:
    """Compute what ``Straight`` does, with its gradient."""
    return ((x.round() - x).detach() + x) * weight


@torch.library.custom_op("compiled_functions::times", mutates_args=())
def times(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply a sine, in an operation of its own."""
    return x.sin() * weight


@times.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("compiled_functions::no_fake", mutates_args=())
def no_fake(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply a sine, in an operation of whose shapes torch.compile knows nothing."""
    return x.sin() * weight


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_output: Tensor) -> Any:
    return Kept.backward(ctx, grad_output)


times.register_autograd(Kept.backward, setup_context=_setup)
no_fake.register_autograd(_backward, setup_context=_setup)
