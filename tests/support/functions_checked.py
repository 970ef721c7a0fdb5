"""Functions that the checker's tests check: right ones and wrong ones."""

from __future__ import annotations

import torch
from fn import Fn


class Exp(Fn):
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class Square(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class CubedWrong(Fn):
    """Its backward claims 3 x where 3 x² is right."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x * grad


class Linear(Fn):
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight)
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_bias = grad_output.sum(0) if bias is not None else None
        return grad_output.mm(weight.t()), input.t().mm(grad_output), grad_bias


class LinearWrong(Linear):
    @staticmethod
    def backward(ctx, grad_output):
        input, weight, _ = ctx.saved_tensors
        return grad_output.mm(weight.t()), input.mm(grad_output), None


class Softmax(Fn):
    """Its backward is diagonal, as if rows did not couple."""

    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y * (1 - y)


class Offset(Fn):
    """One entry of the gradient is off by 1e-5, relative."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gradient = grad * x.cos()
        factor = torch.ones_like(gradient)
        factor.view(-1)[7] = 1 + 1e-5
        return gradient * factor


class Coupled(Fn):
    """Dense, and one entry of its Jacobian is wrong."""

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + x.sum()

    def backward(ctx, grad):
        gradient = grad + grad.sum()
        wrong = torch.zeros_like(gradient)
        wrong[11] = grad[1234]
        return gradient + wrong


class Relu(Fn):
    """``at_zero`` is what backward says at the kink."""

    at_zero = 0.0

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x > 0) + Relu.at_zero * (x == 0))


class RoundStraightThrough(Fn):
    def forward(ctx, x):
        return (4 * x).round() / 4

    def backward(ctx, grad):
        return grad


class ClampNoMask(Fn):
    """All inputs may lie where the function is flat; the gradient is wrong there, not a surrogate."""

    def forward(ctx, x):
        return x.clamp(-1, 1)

    def backward(ctx, grad):
        return grad


class Raises(Fn):
    def forward(ctx, x):
        return x * 2

    def backward(ctx, grad):
        raise ValueError("no luck today")


class ForwardRaises(Fn):
    def forward(ctx, x):
        raise ZeroDivisionError("in the user's own forward")

    def backward(ctx, grad):
        return grad


class OwnJvp(Fn):
    """Square with its own forward-mode derivative, off by ``factor``."""

    factor = 1.0

    def forward(x):
        return x * x

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

    def jvp(ctx, tangent):
        return OwnJvp.factor * 2 * ctx.saved_tensors[0] * tangent


class NumpySin(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(__import__("numpy").sin(x.detach().numpy()))

    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos()


class TwoOutputs(Fn):
    """An index output first, then the values; a flag and a float among the arguments."""

    def forward(ctx, x, scale, flag):
        values, indices = (x * scale).sort()
        ctx.mark_non_differentiable(indices)
        ctx.save_for_backward(indices)
        ctx.scale = scale
        return indices, values

    def backward(ctx, _, grad):
        (indices,) = ctx.saved_tensors
        gradient = torch.zeros_like(grad).scatter_(0, indices, grad)
        return gradient * ctx.scale, None, None


class MaskedMeanWrong(Fn):
    """Divided by how many elements there are, not by how many the mask lets through."""

    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return (x * mask).sum() / mask.sum()

    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g * mask / mask.numel(), None


class AttentionWrong(Fn):
    """Its scores get the mean of dp in place of its sum weighted with p."""

    def forward(ctx, q, k, v):
        p = (q @ k.T).softmax(-1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        dv = p.T @ g
        dp = g @ v.T
        ds = p * (dp - dp.mean(-1, keepdim=True))
        return ds @ k, ds.T @ q, dv
