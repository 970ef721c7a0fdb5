"""Correct Functions that look odd, each of which a hasty check would accuse."""

from __future__ import annotations

import torch
from fn import Fn
from own_mistakes import Mistake, draw
from torch import Tensor
from torch.autograd.function import once_differentiable

CORRECT: list[Mistake] = []


def correct(inputs, call=None):
    def keep(cls):
        CORRECT.append(Mistake(cls.__name__, call or cls.apply, inputs, ()))
        return cls

    return keep


def empty() -> Tensor:
    return torch.empty(0, 3, dtype=torch.float64, requires_grad=True)


@correct(lambda: (draw(4),))
class ExtraNones(Fn):
    def forward(ctx, x):
        return 2 * x

    def backward(ctx, g):
        return 2 * g, None, None


@correct(lambda: (draw(3, 4),))
class ReturnsAView(Fn):
    def forward(ctx, x):
        return x.t()

    def backward(ctx, g):
        return g.t()


@correct(lambda: (draw(3, 4),))
class ExpandsItsGradient(Fn):
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    def backward(ctx, g):
        return g.expand(ctx.shape)


@correct(lambda: (draw(3, 4),))
class OnceOnly(Fn):
    def forward(ctx, x):
        ctx.kept = x.sin()
        return x.cos()

    @once_differentiable
    def backward(ctx, g):
        return -g * ctx.kept


@correct(lambda: (draw(5),))
class ThroughNumpy(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.as_tensor(x.detach().numpy() ** 2)

    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.as_tensor(2 * x.detach().numpy() * g.numpy())


@correct(lambda: (draw(5),))
class WithVmapRule(Fn):
    def forward(x):
        return x.exp()

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y

    def vmap(info, in_dims, x):
        return WithVmapRule.apply(x), in_dims[0]


@correct(lambda: (draw(4, 3).detach().t().requires_grad_(),))
class GivenATransposedInput(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.cos()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g * x.sin()


@correct(lambda: (draw(4, 3).detach().float().requires_grad_(),))
class InSinglePrecision(Fn):
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


@correct(lambda: (draw(4, 3).detach().to(torch.bfloat16).requires_grad_(),))
class InHalfPrecision(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


@correct(lambda: (draw(4, 3), torch.tensor([[True, False, True]] * 4)))
class Masked(Fn):
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x.masked_fill(mask, 0.0)

    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g.masked_fill(mask, 0.0), None


@correct(lambda: (draw(5, 3), torch.tensor([0, 2, 2]), 0))
class SelectsRows(Fn):
    def forward(ctx, x, index, dim):
        ctx.save_for_backward(index)
        ctx.dim, ctx.shape = dim, x.shape
        return x.index_select(dim, index)

    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g.new_zeros(ctx.shape).index_add(ctx.dim, index, g), None, None


@correct(lambda: (draw(),))
class OfAScalar(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


@correct(lambda: (empty(),))
class OfNothing(Fn):
    def forward(ctx, x):
        return 2 * x

    def backward(ctx, g):
        return 2 * g


@correct(lambda: (draw(4), draw(4, seed=1)))
class SkipsWhatNobodyNeeds(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        grad_a = g * b if ctx.needs_input_grad[0] else None
        grad_b = g * a if ctx.needs_input_grad[1] else None
        return grad_a, grad_b


@correct(lambda: (draw(4, 3),))
class HandlesMissingGrads(Fn):
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        values, places = x.max(1)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(places)
        ctx.width = x.shape[1]
        return values, places

    def backward(ctx, g, _):
        if g is None:
            return None
        (places,) = ctx.saved_tensors
        return g.new_zeros(len(g), ctx.width).scatter(1, places[:, None], g[:, None])


@correct(lambda: (draw(4, 3),))
class ReturnsStatisticsToLookAt(Fn):
    """As fused kernels do, it marks what it returns beside the result, and ignores the gradient of that."""

    def forward(ctx, x):
        mean = x.mean(1, keepdim=True)
        ctx.mark_non_differentiable(mean)
        return x - mean, mean

    def backward(ctx, g, _):
        return g - g.mean(1, keepdim=True)


@correct(lambda: (draw(4, 3),))
class KeepsSignsInFewBytes(Fn):
    """Half precision holds what it is used for exactly."""

    def forward(ctx, x):
        ctx.save_for_backward(x.sign().half())
        return x.abs()

    def backward(ctx, g):
        (signs,) = ctx.saved_tensors
        return g * signs.to(g.dtype)


@correct(lambda: (draw(4, 3), draw(3, seed=1)))
class SumsToTheShapeOfBias(Fn):
    def forward(ctx, x, bias):
        ctx.shape = bias.shape
        return x + bias

    def backward(ctx, g):
        return g, g.sum_to_size(ctx.shape)


@correct(lambda: (draw(4),))
class DifferentiatesInside(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**2).sin()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            z = x if x.requires_grad else x.detach().requires_grad_()
            (inner,) = torch.autograd.grad((z**2).sin(), z, g, create_graph=True)
        return inner


@correct(lambda: (draw(3, 4), draw(4, 2, seed=1)))
class RecomputesInBackward(Fn):
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.relu(x @ w)

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        masked = g * (x @ w > 0)
        return masked @ w.t(), x.t() @ masked


@correct(lambda: (draw(6),))
class ReversesTheGradientOnNothing(Fn):
    def forward(ctx, x, strength=1.5):
        ctx.strength = strength
        return -strength * x

    def backward(ctx, g):
        return -ctx.strength * g


@correct(lambda: (draw(3, 4), (2, 6)))
class Reshapes(Fn):
    def forward(ctx, x, shape):
        ctx.shape = x.shape
        return x.reshape(shape).clone()

    def backward(ctx, g):
        return g.reshape(ctx.shape), None


@correct(lambda: (draw(3), draw(3, seed=1)), lambda a, b: TwoInOne.apply(a, b)[0] * TwoInOne.apply(b, a)[1])
class TwoInOne(Fn):
    def forward(ctx, a, b):
        return a + b, a - b

    def backward(ctx, plus, minus):
        return plus + minus, plus - minus


@correct(lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),))
class OfComplexNumbers(Fn):
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z.conj()

    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return 2 * g.real * z


@correct(lambda: (draw(4),))
class InPlaceOnACopy(Fn):
    def forward(ctx, x):
        y = x.clone()
        y.mul_(3).add_(1)
        return y

    def backward(ctx, g):
        out = g.clone()
        out *= 3
        return out


@correct(lambda: (draw(5, low=0.5, high=2.0),))
class WithItsOwnJvp(Fn):
    def forward(ctx, x):
        y = x.sqrt()
        ctx.save_for_backward(y)
        ctx.save_for_forward(y)
        return y

    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g / (2 * y)

    def jvp(ctx, tangent):
        (y,) = ctx.saved_tensors
        return tangent / (2 * y)
