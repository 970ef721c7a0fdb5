"""Functions that the checker's tests check: right ones and wrong ones."""

from __future__ import annotations

from fn import Fn

Exp = Fn.of("Exp", "x: y = x.exp(); save(y); return y", "grad: return grad * ctx.saved_tensors[0]")
Square = Fn.of("Square", "x: save(x); return x * x", "grad: (x,) = saved; return 2 * x * grad")
# Its backward claims 3 x where 3 x² is right.
CubedWrong = Fn.of("CubedWrong", "x: save(x); return x**3", "grad: (x,) = saved; return 3 * x * grad")
Linear = Fn.of("Linear", "input, weight, bias=None: save(input, weight, bias); output = input.mm(weight); "
    "if bias is not None: output += bias.unsqueeze(0).expand_as(output); return output",
    "grad_output: input, weight, bias = saved; "
    "grad_bias = grad_output.sum(0) if bias is not None else None; "
    "return grad_output.mm(weight.t()), input.t().mm(grad_output), grad_bias")  # fmt: skip
LinearWrong = Linear.of("LinearWrong", backward="grad_output: input, weight, _ = saved; "
    "return grad_output.mm(weight.t()), input.mm(grad_output), None")  # fmt: skip
# Its backward is diagonal, as if rows did not couple.
Softmax = Fn.of("Softmax", "x: y = x.softmax(-1); save(y); return y", "grad: (y,) = saved; return grad * y * (1 - y)")
# One entry of the gradient is off by 1e-5, relative.
Offset = Fn.of("Offset", "x: save(x); return x.sin()",
    "grad: (x,) = saved; gradient = grad * x.cos(); factor = torch.ones_like(gradient); "
    "factor.view(-1)[7] = 1 + 1e-5; return gradient * factor")  # fmt: skip
# Dense, and one entry of its Jacobian is wrong.
Coupled = Fn.of("Coupled", "x: save(x); return x + x.sum()",
    "grad: gradient = grad + grad.sum(); wrong = torch.zeros_like(gradient); wrong[11] = grad[1234]; "
    "return gradient + wrong")  # fmt: skip


class Relu(Fn):
    """``at_zero`` is what backward says at the kink."""

    at_zero = 0.0

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x > 0) + Relu.at_zero * (x == 0))


RoundStraightThrough = Fn.of("RoundStraightThrough", "x: return (4 * x).round() / 4", "grad: return grad")
# All inputs may lie where the function is flat; the gradient is wrong there, not a surrogate.
ClampNoMask = Fn.of("ClampNoMask", "x: return x.clamp(-1, 1)", "grad: return grad")
Raises = Fn.of("Raises", "x: return x * 2", 'grad: raise ValueError("no luck today")')


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


NumpySin = Fn.of("NumpySin", 'x: save(x); return torch.from_numpy(__import__("numpy").sin(x.detach().numpy()))',
    "grad: return grad * ctx.saved_tensors[0].cos()")  # fmt: skip
# An index output first, then the values; a flag and a float among the arguments.
TwoOutputs = Fn.of("TwoOutputs",
    "x, scale, flag: values, indices = (x * scale).sort(); ctx.mark_non_differentiable(indices); "
    "save(indices); ctx.scale = scale; return indices, values",
    "_, grad: (indices,) = saved; gradient = torch.zeros_like(grad).scatter_(0, indices, grad); "
    "return gradient * ctx.scale, None, None")  # fmt: skip
# Its scores get the mean of dp in place of its sum weighted with p.
AttentionWrong = Fn.of("AttentionWrong", "q, k, v: p = (q @ k.T).softmax(-1); save(q, k, v, p); return p @ v",
    "g: q, k, v, p = saved; dv = p.T @ g; dp = g @ v.T; ds = p * (dp - dp.mean(-1, keepdim=True)); "
    "return ds @ k, ds.T @ q, dv")  # fmt: skip
