"""Mistakes in shapes, state, arguments and second derivatives: written first, tried afterwards."""

from __future__ import annotations

import numpy as np
import torch
from fn import Fn
from own_mistakes import Mistake, draw

MISTAKES: list[Mistake] = []
SEEN: dict[str, torch.Tensor] = {}


def mistake(inputs, *codes, right=None, call=None):
    def keep(cls):
        MISTAKES.append(Mistake(cls.__name__, call or cls.apply, inputs, codes, right))
        return cls

    return keep


@mistake(
    lambda: (draw(3, 4), draw(4, seed=1)), "constant_factor", "grad_shape_reduced", "wrong_derivative", "missing_factor"
)
class BroadcastSummedTwice(Fn):
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, (g * x).sum(0, keepdim=True) * torch.ones_like(x)


@mistake(lambda: (draw(4, 4), draw(4, 1, seed=1)), "wrong_reduction_dim", "transposed_grad", "permuted_entries")
class ColumnBiasReducedOverRows(Fn):
    def forward(ctx, x, bias):
        return x + bias

    def backward(ctx, g):
        return g, g.sum(0)[:, None]


@mistake(lambda: (draw(3, 4),), "exception")
class KeepdimForgotten(Fn):
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum(1)

    def backward(ctx, g):
        return g.expand(ctx.shape)


@mistake(lambda: (draw(3, 4),), "wrong_derivative", "missing_factor", "constant_factor", "missing_coupling")
class NormSquaredInstead(Fn):
    def forward(ctx, x):
        n = x.norm(dim=1)
        ctx.save_for_backward(x, n)
        return n

    def backward(ctx, g):
        x, _n = ctx.saved_tensors
        return g.unsqueeze(1) * x


@mistake(lambda: (draw(3, 4),), "constant_factor", "wrong_derivative")
class VarianceDividedByN(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.var(1)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g[:, None] * 2 * (x - x.mean(1, keepdim=True)) / x.shape[1]


@mistake(lambda: (draw(4, 3),),
         "missing_entries", "extra_entries", "permuted_entries", "wrong_derivative")  # fmt: skip
class MaxAlwaysFirst(Fn):
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.max(1).values

    def backward(ctx, g):
        out = g.new_zeros(ctx.shape)
        out[:, 0] = g
        return out


@mistake(lambda: (draw(3, 4),), "extra_entries", "conditional", "missing_coupling", "missing_factor")
class DropoutMaskUnused(Fn):
    def forward(ctx, x):
        mask = (torch.rand(x.shape) > 0.4).double()
        ctx.save_for_backward(mask)
        return x * mask / 0.6

    def backward(ctx, g):
        return g / 0.6


@mistake(
    lambda: (draw(12),),
    "shared_state",
    "nondeterministic_backward",
    "missing_entries",
    "extra_entries",
    "conditional",
    "wrong_derivative",
)
class DropoutMaskDrawnAgain(Fn):
    def forward(ctx, x):
        return x * (torch.rand(x.shape) > 0.5)

    def backward(ctx, g):
        return g * (torch.rand(g.shape) > 0.5)


@mistake(lambda: (draw(5), draw(5, seed=1)), "shared_state")
class KeptInAModuleDict(Fn):
    def forward(ctx, a, b):
        SEEN["a"], SEEN["b"] = a.detach(), b.detach()
        return a * b

    def backward(ctx, g):
        return g * SEEN["b"], g * SEEN["a"]


@mistake(lambda: (draw(5),), "mutates_saved", "nondeterministic_backward")
class ScalesSavedMask(Fn):
    def forward(ctx, x):
        ctx.slope = torch.where(x > 0, 1.0, 0.1).double()
        return x * ctx.slope

    def backward(ctx, g):
        ctx.slope *= g
        return ctx.slope


@mistake(lambda: (draw(3, 4),), "mutates_input")
class NormalisesInPlace(Fn):
    def forward(ctx, x):
        x -= x.mean()
        return x * 1.0

    def backward(ctx, g):
        return g - g.mean()


@mistake(lambda: (draw(4), None), "exception")
class OptionalBiasTouched(Fn):
    def forward(ctx, x, bias=None):
        ctx.save_for_backward(x, bias)
        return 3 * x if bias is None else 3 * x + bias

    def backward(ctx, g):
        _x, bias = ctx.saved_tensors
        return 3 * g, g.sum(bias.shape)


@mistake(lambda: (draw(4), 3.0, True), "exception")
class FlagsWithoutNones(Fn):
    def forward(ctx, x, alpha, inplace=False):
        ctx.alpha = alpha
        return x * alpha

    def backward(ctx, g):
        return g * ctx.alpha


@mistake(lambda: (draw(4), 3.0), "exception", "constant_factor", "missing_factor")
class AlphaFromNowhere(Fn):
    def forward(ctx, x, alpha):
        return x * alpha

    def backward(ctx, g):
        return g * ctx.alpha, None


@mistake(lambda: (draw(4), 3.0), "wrong_derivative")
class AlphaIgnored(Fn):
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return torch.sin(x) * alpha

    def backward(ctx, g):
        return g * ctx.alpha**2, None


@mistake(lambda: (draw(4),), "exception")
class SavedInTheWrongOrder(Fn):
    def forward(ctx, x):
        y, index = x.topk(2)
        ctx.save_for_backward(index)
        ctx.n = x.numel()
        return y

    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.n).scatter(0, g, index)


@mistake(lambda: (draw(4), draw(4, seed=1)), "output_grad_ignored")
class SumAndDifference(Fn):
    def forward(ctx, a, b):
        return a + b, a - b

    def backward(ctx, g_sum, g_diff):
        return g_sum, g_sum


@mistake(lambda: (draw(4), draw(4, seed=1)), "sign", "wrong_derivative")
class SumAndDifferenceSign(Fn):
    def forward(ctx, a, b):
        return a + b, a - b

    def backward(ctx, g_sum, g_diff):
        return g_sum + g_diff, g_sum + g_diff


@mistake(lambda: (draw(5),), "nonlinear_in_grad_output")
class ReluOnTheGradient(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * torch.nn.functional.leaky_relu(g, 0.2)


@mistake(lambda: (draw(5, low=0.2, high=1.0),), "ignores_grad_output")
class LossGradAlone(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.log() ** 2).mean()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x.log() / x / x.numel()


@mistake(lambda: (draw(4),), "double_backward_wrong")
class ItemInBackward(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sum()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.sum().item() + (g * x).sum()


@mistake(lambda: (draw(4),), "double_backward_wrong")
class PowerKeptOnCtx(Fn):
    def forward(ctx, x):
        ctx.square = x**2
        return x**3

    def backward(ctx, g):
        return 3 * g * ctx.square


@mistake(lambda: (draw(4),), "double_backward_wrong")
class NumpyBehind(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sinh()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * torch.from_numpy(np.cosh(x.detach().numpy()))


@mistake(
    lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),), "missing_conj", "wrong_derivative"
)
class ComplexExpNoConj(Fn):
    def forward(ctx, z):
        w = z.exp()
        ctx.save_for_backward(w)
        return w

    def backward(ctx, g):
        (w,) = ctx.saved_tensors
        return g * w


@mistake(lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),), "constant_factor")
class AbsSquareHalved(Fn):
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z.real**2 + z.imag**2

    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return g * z


@mistake(lambda: (draw(4),), "wrong_derivative", "missing_factor", "wrong_unclassified")
class SwishTermMissing(Fn):
    def forward(ctx, x):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, s)
        return x * s

    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s)


@mistake(lambda: (draw(3, 4),), "wrong_noncontiguous_grad", "fails_noncontiguous_grad")
class FlatMemoryOfGrad(Fn):
    def forward(ctx, x):
        return 5 * x

    def backward(ctx, g):
        return 5 * torch.as_strided(g, g.shape, (4, 1))


@mistake(lambda: (draw(6),), "wrong_derivative", "conditional", "extra_entries")
class ClampedWithWrongBound(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-0.3, 0.3)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x < 0.3)


@mistake(lambda: (draw(6),), "missing_entries", "conditional")
class HardTanhForgetsNegativeSide(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-0.9, 0.9)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ((x > 0) & (x < 0.9))


@mistake(lambda: (draw(2, 3),), "permuted_entries", "transposed_grad")
class ReshapeInsteadOfTranspose(Fn):
    def forward(ctx, x):
        return x.t() * 2

    def backward(ctx, g):
        return 2 * g.reshape(g.shape[1], g.shape[0])
