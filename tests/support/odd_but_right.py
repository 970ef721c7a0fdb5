"""Correct Functions that look odd, each of which a hasty check would accuse."""

from __future__ import annotations

import torch
from fn import Fn
from own_mistakes import Catalogue, draw
from torch import Tensor

CORRECT = Catalogue()
case, written = CORRECT.case, CORRECT.written


def empty() -> Tensor:
    return torch.empty(0, 3, dtype=torch.float64, requires_grad=True)


# fmt: off
case("ExtraNones", "x: return 2 * x", "g: return 2 * g, None, None", lambda: (draw(4),))
case("ReturnsAView", "x: return x.t()", "g: return g.t()", lambda: (draw(3, 4),))
case("ExpandsItsGradient", "x: ctx.shape = x.shape; return x.sum()", "g: return g.expand(ctx.shape)",
     lambda: (draw(3, 4),))
case("OnceOnly", "x: ctx.kept = x.sin(); return x.cos()", "g: return -g * ctx.kept", lambda: (draw(3, 4),), once=True)
case("ThroughNumpy", "x: save(x); return torch.as_tensor(x.detach().numpy() ** 2)",
     "g: (x,) = saved; return torch.as_tensor(2 * x.detach().numpy() * g.numpy())", lambda: (draw(5),), once=True)


@written(lambda: (draw(5),))
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


case("GivenATransposedInput", "x: save(x); return x.cos()", "g: (x,) = saved; return -g * x.sin()",
     lambda: (draw(4, 3).detach().t().requires_grad_(),))
case("InSinglePrecision", "x: y = x.tanh(); save(y); return y", "g: (y,) = saved; return g * (1 - y * y)",
     lambda: (draw(4, 3).detach().float().requires_grad_(),))
case("InHalfPrecision", "x: save(x); return x * x", "g: (x,) = saved; return 2 * x * g",
     lambda: (draw(4, 3).detach().to(torch.bfloat16).requires_grad_(),))
case("Masked", "x, mask: save(mask); return x.masked_fill(mask, 0.0)",
     "g: (mask,) = saved; return g.masked_fill(mask, 0.0), None",
     lambda: (draw(4, 3), torch.tensor([[True, False, True]] * 4)))
case("SelectsRows", "x, index, dim: save(index); ctx.dim, ctx.shape = dim, x.shape; return x.index_select(dim, index)",
     "g: (index,) = saved; return g.new_zeros(ctx.shape).index_add(ctx.dim, index, g), None, None",
     lambda: (draw(5, 3), torch.tensor([0, 2, 2]), 0))
case("OfAScalar", "x: save(x); return x**3", "g: (x,) = saved; return 3 * x**2 * g", lambda: (draw(),))
case("OfNothing", "x: return 2 * x", "g: return 2 * g", lambda: (empty(),))
case("SkipsWhatNobodyNeeds", "a, b: save(a, b); return a * b",
     "g: a, b = saved; grad_a = g * b if ctx.needs_input_grad[0] else None; "
     "grad_b = g * a if ctx.needs_input_grad[1] else None; return grad_a, grad_b", lambda: (draw(4), draw(4, seed=1)))
case("HandlesMissingGrads",
     "x: ctx.set_materialize_grads(False); values, places = x.max(1); ctx.mark_non_differentiable(places); "
     "save(places); ctx.width = x.shape[1]; return values, places",
     "g, _: if g is None: return None; (places,) = saved; "
     "return g.new_zeros(len(g), ctx.width).scatter(1, places[:, None], g[:, None])", lambda: (draw(4, 3),))
# As fused kernels do, it marks what it returns beside the result, and ignores the gradient of that.
case("ReturnsStatisticsToLookAt",
     "x: mean = x.mean(1, keepdim=True); ctx.mark_non_differentiable(mean); return x - mean, mean",
     "g, _: return g - g.mean(1, keepdim=True)", lambda: (draw(4, 3),))
# Half precision holds what it is used for exactly.
case("KeepsSignsInFewBytes", "x: save(x.sign().half()); return x.abs()",
     "g: (signs,) = saved; return g * signs.to(g.dtype)", lambda: (draw(4, 3),))
case("SumsToTheShapeOfBias", "x, bias: ctx.shape = bias.shape; return x + bias",
     "g: return g, g.sum_to_size(ctx.shape)", lambda: (draw(4, 3), draw(3, seed=1)))


@written(lambda: (draw(4),))
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


case("RecomputesInBackward", "x, w: save(x, w); return torch.relu(x @ w)",
     "g: x, w = saved; masked = g * (x @ w > 0); return masked @ w.t(), x.t() @ masked",
     lambda: (draw(3, 4), draw(4, 2, seed=1)))
case("ReversesTheGradientOnNothing", "x, strength=1.5: ctx.strength = strength; return -strength * x",
     "g: return -ctx.strength * g", lambda: (draw(6),))
case("Reshapes", "x, shape: ctx.shape = x.shape; return x.reshape(shape).clone()",
     "g: return g.reshape(ctx.shape), None", lambda: (draw(3, 4), (2, 6)))


@written(
    lambda: (draw(3), draw(3, seed=1)), call=lambda a, b: TwoInOne.apply(a, b)[0] * TwoInOne.apply(b, a)[1]
)
class TwoInOne(Fn):
    def forward(ctx, a, b):
        return a + b, a - b

    def backward(ctx, plus, minus):
        return plus + minus, plus - minus


case("OfComplexNumbers", "z: save(z); return z * z.conj()", "g: (z,) = saved; return 2 * g.real * z",
     lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),))
case("InPlaceOnACopy", "x: y = x.clone(); y.mul_(3).add_(1); return y", "g: out = g.clone(); out *= 3; return out",
     lambda: (draw(4),))
case("WithItsOwnJvp", "x: y = x.sqrt(); save(y); ctx.save_for_forward(y); return y",
     "g: (y,) = saved; return g / (2 * y)", lambda: (draw(5, low=0.5, high=2.0),),
     jvp="tangent: (y,) = saved; return tangent / (2 * y)")
