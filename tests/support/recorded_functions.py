"""Functions that the tests of recording and of reading the contract look at; line numbers are taken from them."""

# ruff: noqa: RUF059, RET504 - as people write them

from __future__ import annotations

import torch
from fn import Fn
from torch.autograd import Function


class Linear(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight)
        if bias is not None:
            output += bias
        print("forward")
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight.t())
        if ctx.needs_input_grad[1]:
            grad_weight = input.t().mm(grad_output)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        print("backward")
        return grad_input, grad_weight, grad_bias


class Cube(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, power=3):
        return x**power, 3 * x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, power = inputs
        result, dx = output
        ctx.power = power
        ctx.save_for_backward(x, dx)
        ctx.mark_non_differentiable(dx)

    @staticmethod
    def backward(ctx, grad, grad_dx):
        x, dx = ctx.saved_tensors
        return grad * dx, None


Kept = Fn.of("Kept", 'x: ctx.x = x; ctx.y = x.exp(); ctx.name = "kept"; return ctx.y', "g: return g * ctx.y")
Greedy = Fn.of(
    "Greedy",
    "*tensors: save(*tensors); return sum(tensors)",
    "*grads: return tuple(grads[0] for _ in ctx.saved_tensors)",
)


class Careless(Function):
    @staticmethod
    def forward(ctx, x, k):
        y = x * k
        return y

    def backward(ctx, g):
        g *= 2
        h = g.data
        with torch.no_grad():
            h = h + y  # noqa: F821
        return g.mul(missing_name)  # noqa: F821


Silent = Fn.of("Silent", "x: return x * 2", 'g: print("nothing to see")')
Listed = Fn.of("Listed", "x: return [x * 2, x * 3]", "g, h: return g * 2 + h * 3")
Numpy = Fn.of("Numpy", "x: save(x); return x.sin()", "g: return torch.from_numpy(g.numpy()) * ctx.saved_tensors")
NumpyOnce = Fn.of("NumpyOnce", "x: return x * 2", "g: return torch.from_numpy(g.numpy() * 2)", once=True)


class Scale(Function):
    """Old torch: constructor arguments, self, helper method."""

    def __init__(self, factor, offset=1.0):
        super().__init__()
        self.factor = factor
        self.offset = offset  # kept

    def forward(self, x):
        self.save_for_backward(x)
        return x * self.factor + self.offset

    def backward(self, g):
        (x,) = self.saved_variables
        return self._scaled(g)

    def _scaled(self, g):
        return g * self.factor


class OldLinear(Function):
    # bias is an optional argument
    def forward(self, input, weight, bias=None):
        self.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output = output + bias
        return output

    def backward(self, grad_output):
        input, weight, bias = self.saved_tensors
        grad_bias = grad_output.sum(0) if bias is not None else None
        return grad_output.mm(weight), grad_output.t().mm(input), grad_bias


class OldTranspose(Function):
    def __init__(self, dim1, dim2):
        self.dims = dim1, dim2

    def forward(self, *tensors):
        return tuple(t.transpose(*self.dims).clone() for t in tensors)

    def backward(self, *grads):
        return tuple(g.transpose(*self.dims) for g in grads)


class Strange(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @property
    def jvp(self):
        raise RuntimeError("never to be run")

    @staticmethod
    def backward(ctx, g):
        return g * 2
