"""Mistakes in custom Functions, one per kind, and correct Functions that look suspicious; each with its diagnosis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fn import Fn
from torch import Tensor
from torch.autograd.function import once_differentiable

BUFFER: list[Tensor] = []
SCALE = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)


def draw(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 42)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    return values.requires_grad_()


@dataclass(frozen=True)
class Mistake:
    name: str
    fn: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]
    codes: tuple[str, ...]
    right: Callable[..., Any] | None = None


MISTAKES: list[Mistake] = []
CORRECT: list[Mistake] = []


def mistake(
    inputs: Callable[[], tuple[Any, ...]], *codes: str, right: Callable[..., Any] | None = None, call: Any = None
) -> Callable[[type], type]:
    def keep(cls: Any) -> type:
        target = MISTAKES if codes else CORRECT
        target.append(Mistake(cls.__name__, call or cls.apply, inputs, codes, right))
        return cls  # type: ignore[no-any-return]

    return keep


@mistake(
    lambda: (draw(3, 5), draw(5, 5, seed=1)),
    "transposed_grad",
    "wrong_derivative",
    "permuted_entries",
    right=lambda x, w: x @ w.t(),
)
class AffineTransposedWeight(Fn):
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.t()

    def backward(ctx, grad_out):
        x, w = ctx.saved_tensors
        grad_x = grad_out @ w
        grad_w = x.t() @ grad_out
        return grad_x, grad_w


@mistake(lambda: (draw(4), draw(4, seed=1)), "swapped_inputs", "wrong_derivative", right=lambda a, b: a * b)
class ProductSwapped(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return a * g, b * g


@mistake(lambda: (draw(4),), "wrong_derivative", right=lambda x: (x.sin(), x.exp()))
class TwoOutputsSwapped(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin(), x.exp()

    def backward(ctx, g_exp, g_sin):
        (x,) = ctx.saved_tensors
        return g_sin * x.cos() + g_exp * x.exp()


@mistake(lambda: (draw(5),), "sign", right=lambda x: -x.exp())
class MinusForgotten(Fn):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return -y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


@mistake(
    lambda: (draw(2, 3),), "constant_factor", "wrong_derivative", "missing_factor", right=lambda x: (x**2).sum() / 2
)
class HalfForgotten(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**2).sum() / 2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


@mistake(lambda: (draw(3, 4),), "constant_factor", "missing_factor", "wrong_derivative", right=lambda x: x.mean(0))
class RowMeanUndivided(Fn):
    def forward(ctx, x):
        ctx.rows = x.shape[0]
        return x.mean(0)

    def backward(ctx, g):
        return g.unsqueeze(0).expand(ctx.rows, -1)


@mistake(
    lambda: (draw(6),),
    "extra_entries",
    "missing_coupling",
    "wrong_unclassified",
    "wrong_derivative",
    right=lambda x: x * 3,
)
class SumOfGradOutput(Fn):
    def forward(ctx, x):
        return x * 3

    def backward(ctx, g):
        return 3 * g.sum().expand(g.shape)


@mistake(lambda: (draw(5),), "ignores_grad_output", right=lambda x: x.sigmoid())
class SigmoidAlone(Fn):
    def forward(ctx, x):
        s = x.sigmoid()
        ctx.save_for_backward(s)
        return s

    def backward(ctx, g):
        (s,) = ctx.saved_tensors
        return s * (1 - s)


@mistake(lambda: (draw(5),), "nonlinear_in_grad_output", right=lambda x: 2 * x)
class Normalised(Fn):
    def forward(ctx, x):
        return 2 * x

    def backward(ctx, g):
        return 2 * g / (g.norm() + 1e-12)


@mistake(lambda: (draw(5), draw(5, seed=1)), "none_gradient", "zero_gradient", right=lambda a, b: a * b)
class OneForgotten(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(b)
        return a * b

    def backward(ctx, g):
        (b,) = ctx.saved_tensors
        return g * b, None


@mistake(lambda: (draw(7, seed=3),), "missing_factor", "wrong_derivative", right=lambda x: (3 * x).tanh() / 3)
class TanhNotSquared(Fn):
    def forward(ctx, x):
        y = (3 * x).tanh() / 3
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - 3 * y)


@mistake(lambda: (draw(8, low=0.5, high=3.0),), "missing_factor", "wrong_derivative", right=lambda x: x.log() ** 2)
class LogInnerForgotten(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.log() ** 2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x.log()


@mistake(lambda: (draw(9, seed=5),), "extra_entries", "conditional", "missing_factor", right=lambda x: x.clamp(min=0))
class ReluWithoutMask(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    def backward(ctx, g):
        return g


@mistake(
    lambda: (draw(10, seed=6),),
    "wrong_derivative",
    "wrong_unclassified",
    "conditional",
    right=lambda x: torch.where(x.abs() < 0.4, x, x.detach() * 0),
)
class WindowInverted(Fn):
    def forward(ctx, x):
        mask = x.abs() < 0.4
        ctx.save_for_backward(mask)
        return x * mask

    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * ~mask


@mistake(lambda: (draw(10, seed=6),), "conditional", "wrong_derivative", right=lambda x: torch.where(x > 0, x, 2 * x))
class OneBranchWrong(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, 2 * x)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.where(x > 0, torch.ones_like(x), 3 * torch.ones_like(x))


@mistake(lambda: (draw(5),), "missing_coupling", "missing_entries", right=lambda x: x.softmax(0))
class SoftmaxDiagonal(Fn):
    def forward(ctx, x):
        p = x.softmax(0)
        ctx.save_for_backward(p)
        return p

    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return g * p * (1 - p)


@mistake(
    lambda: (draw(3, 3),),
    "wrong_reduction_dim",
    "transposed_grad",
    "wrong_derivative",
    "permuted_entries",
    right=lambda x: x.sum(1),
)
class RowSumSpreadWrongly(Fn):
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(1)

    def backward(ctx, g):
        return g.expand(ctx.shape)


@mistake(lambda: (draw(9),), "permuted_entries", "wrong_derivative", right=lambda x: x.roll(2))
class RollNotUndone(Fn):
    def forward(ctx, x):
        return x.roll(2)

    def backward(ctx, g):
        return g


@mistake(lambda: (draw(2, 6),), "permuted_entries", right=lambda x: x.reshape(3, 4).t().reshape(12))
class OrderLost(Fn):
    def forward(ctx, x):
        return x.reshape(3, 4).t().reshape(12)

    def backward(ctx, g):
        return g.reshape(2, 6)


@mistake(lambda: (draw(40, 3),), "wrong_derivative", "missing_entries", "constant_factor", right=lambda x: x * 2)
class OneCornerWrong(Fn):
    def forward(ctx, x):
        return x * 2

    def backward(ctx, g):
        grad = 2 * g
        grad[17, 1] = 0.3 * g[17, 1]
        return grad


@mistake(lambda: (draw(6, low=0.5, high=2.0),), "constant_factor", "wrong_derivative", right=lambda x: x.rsqrt())
class EpsilonOnlyBehind(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.rsqrt()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -0.5 * g * (x + 1e-4) ** -1.5


@mistake(lambda: (draw(6),), "mutates_grad_output", right=lambda x: 5 * x)
class ScalesInPlace(Fn):
    def forward(ctx, x):
        return 5 * x

    def backward(ctx, g):
        return g.mul_(5)


@mistake(lambda: (draw(6),), "mutates_saved", "nondeterministic_backward", right=lambda x: x**2)
class SavedInPlace(Fn):
    def forward(ctx, x):
        ctx.double = 2 * x
        return x**2

    def backward(ctx, g):
        ctx.double.mul_(g)
        return ctx.double


@mistake(lambda: (draw(6),), "shared_state", right=lambda x: x**2)
class KeptOnTheClass(Fn):
    last: Any = None

    def forward(ctx, x):
        KeptOnTheClass.last = x.detach()
        return x**2

    def backward(ctx, g):
        return 2 * g * KeptOnTheClass.last


@mistake(lambda: (draw(6),), "grad_buffer_reused", "shared_state", right=lambda x: 4 * x)
class OneBuffer(Fn):
    def forward(ctx, x):
        return 4 * x

    def backward(ctx, g):
        if not BUFFER or BUFFER[0].shape != g.shape:
            BUFFER[:] = [torch.empty_like(g)]
        return torch.mul(g, 4, out=BUFFER[0])


@mistake(lambda: (draw(6),), "nondeterministic_backward", right=lambda x: 4 * x)
class DropsInBackward(Fn):
    def forward(ctx, x):
        return 4 * x

    def backward(ctx, g):
        return 4 * g * (torch.rand_like(g) > 0.1)


@mistake(lambda: (draw(6),), "hidden_input")
class HiddenScale(Fn):
    def forward(ctx, x):
        return x * SCALE

    def backward(ctx, g):
        return g * SCALE.detach()


@mistake(lambda: (draw(3, 4),), "wrong_noncontiguous_grad", right=lambda x: x * 2)
class ReadsMemoryOfGrad(Fn):
    def forward(ctx, x):
        ctx.shape = x.shape
        return x * 2

    def backward(ctx, g):
        flat = torch.as_strided(g, (g.numel(),), (1,)) if 0 not in g.stride() else g.reshape(-1)
        return 2 * flat.reshape(ctx.shape)


@mistake(lambda: (draw(3, 4),), "wrong_noncontiguous_input", right=lambda x: x**2)
class ReadsMemoryOfInput(Fn):
    def forward(ctx, x):
        flat = torch.as_strided(x, (x.numel(),), (1,)).reshape(x.shape)
        ctx.save_for_backward(x)
        return flat**2

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


@mistake(lambda: (draw(4),), "undefined_grad", right=lambda x: (x * 2, x * 3))
class NoneNotHandled(Fn):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, g, h):
        return g * 2 + h * 3


@mistake(lambda: (draw(4), draw(4, seed=1)), "needs_input_grad_wrong", right=lambda a, b: a * b)
class WrongIndexNeeded(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        ga = g * b if ctx.needs_input_grad[0] else None
        gb = g * a if ctx.needs_input_grad[0] else None
        return ga, gb


@mistake(lambda: (draw(4),), "nondiff_marked_wrongly")
class MarkedByMistake(Fn):
    def forward(ctx, x):
        y, z = x * 2, x.sin()
        ctx.mark_non_differentiable(z)
        ctx.save_for_backward(x)
        return y, z

    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * 2 + h * x.cos()


@mistake(lambda: (draw(4),), "exception", right=lambda x: x.exp())
class ForwardsVariable(Fn):
    def forward(ctx, x):
        result = x.exp()
        return result  # noqa: RET504

    def backward(ctx, g):
        return g * result  # noqa: F821


@mistake(lambda: (draw(4),), "exception", right=lambda x: x.exp())
class NothingOnCtx(Fn):
    def forward(ctx, x):
        return x.exp()

    def backward(ctx, g):
        return g * ctx.result


@mistake(lambda: (draw(4),), "backward_never_called", call=lambda x: NeverApplied.forward(None, x))
class NeverApplied(Fn):
    def forward(ctx, x):
        return x * 3

    def backward(ctx, g):
        return g


@mistake(lambda: (draw(4),), "nonfinite", right=lambda x: x.abs() ** 1.5)
class LogOfNegative(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs() ** 1.5

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 1.5 * x**0.5


@mistake(lambda: (draw(4),), "double_backward_wrong", right=lambda x: x.exp())
class IntermediateOnCtx(Fn):
    def forward(ctx, x):
        ctx.slope = 3 * x**2
        return x**3

    def backward(ctx, g):
        return g * ctx.slope


@mistake(lambda: (draw(4),), "double_backward_wrong")
class DetachInBackward(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.detach().cos()


@mistake(lambda: (draw(4),), "output_not_tensor_tuple")
class InADict(Fn):
    def forward(ctx, x):
        return {"y": x * 2}

    def backward(ctx, g):
        return g * 2


# ------------------------------------------------------------------------------------------- nothing wrong with these


@mistake(lambda: (draw(3, 2), draw(4, 2, seed=1), draw(4, seed=2)))
class Affine(Fn):
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return x @ w.t() + b

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.t() @ x, g.sum(0)


@mistake(lambda: (draw(6),))
class NumpyOnce(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.sin(x.detach().numpy()))

    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(g.numpy() * np.cos(x.numpy()))


@mistake(lambda: (draw(6),))
class DropoutWithMask(Fn):
    def forward(ctx, x):
        mask = (torch.rand_like(x) > 0.3).double()
        ctx.save_for_backward(mask)
        return x * mask / 0.7

    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask / 0.7


@mistake(lambda: (draw(6), 2.5))
class NoneHandled(Fn):
    def forward(x, scale):
        return x * scale

    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.scale = inputs[1]

    def backward(ctx, g):
        return (None, None) if g is None else (g * ctx.scale, None)


@mistake(lambda: (draw(4),))
class InPlaceMarked(Fn):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(3)

    def backward(ctx, g):
        return g * 3


@mistake(lambda: (draw(4),))
class CubeWithSlope(Fn):
    def forward(x):
        return x**3, 3 * x**2

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])

    def backward(ctx, g, h):
        x, slope = ctx.saved_tensors
        return g * slope + h * 6 * x


def in_second_order(mistake: Mistake) -> bool:
    """Return whether first derivatives are right and second ones are not."""
    return mistake.codes == ("double_backward_wrong",)
