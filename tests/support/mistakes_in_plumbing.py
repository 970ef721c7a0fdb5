"""Mistakes in shapes, state, arguments and second derivatives: written first, tried afterwards."""

from __future__ import annotations

import torch
from own_mistakes import Catalogue, draw

MISTAKES = Catalogue()
case, written = MISTAKES.case, MISTAKES.written
SEEN: dict[str, torch.Tensor] = {}


# fmt: off
case("BroadcastSummedTwice", "x, scale: save(x, scale); return x * scale",
     "g: x, scale = saved; return g * scale, (g * x).sum(0, keepdim=True) * torch.ones_like(x)",
     lambda: (draw(3, 4), draw(4, seed=1)), "constant_factor", "grad_shape_reduced", "wrong_derivative",
     "missing_factor")
case("KeepdimForgotten", "x: ctx.shape = x.shape; return x.sum(1)", "g: return g.expand(ctx.shape)",
     lambda: (draw(3, 4),), "exception")
case("MaxAlwaysFirst", "x: ctx.shape = x.shape; return x.max(1).values",
     "g: out = g.new_zeros(ctx.shape); out[:, 0] = g; return out", lambda: (draw(4, 3),), "missing_entries",
     "extra_entries", "wrong_unclassified", "wrong_derivative")
case("NormalisesInPlace", "x: x -= x.mean(); return x * 1.0", "g: return g - g.mean()", lambda: (draw(3, 4),),
     "mutates_input")
case("FlagsWithoutNones", "x, alpha, inplace=False: ctx.alpha = alpha; return x * alpha", "g: return g * ctx.alpha",
     lambda: (draw(4), 3.0, True), "exception")
case("SumAndDifference", "a, b: return a + b, a - b", "g_sum, g_diff: return g_sum, g_sum",
     lambda: (draw(4), draw(4, seed=1)), "output_grad_ignored")
case("SumAndDifferenceSign", "a, b: return a + b, a - b", "g_sum, g_diff: return g_sum + g_diff, g_sum + g_diff",
     lambda: (draw(4), draw(4, seed=1)), "sign", "wrong_derivative")
case("ReluOnTheGradient", "x: save(x); return x * x",
     "g: (x,) = saved; return 2 * x * torch.nn.functional.leaky_relu(g, 0.2)", lambda: (draw(5),),
     "nonlinear_in_grad_output")
case("ItemInBackward", "x: save(x); return x * x.sum()", "g: (x,) = saved; return g * x.sum().item() + (g * x).sum()",
     lambda: (draw(4),), "double_backward_wrong")
case("NumpyBehind", "x: save(x); return x.sinh()",
     "g: (x,) = saved; return g * torch.from_numpy(np.cosh(x.detach().numpy()))", lambda: (draw(4),),
     "double_backward_wrong")
case("ComplexExpNoConj", "z: w = z.exp(); save(w); return w", "g: (w,) = saved; return g * w",
     lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),), "missing_conj", "wrong_derivative")
case("AbsSquareHalved", "z: save(z); return z.real**2 + z.imag**2", "g: (z,) = saved; return g * z",
     lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),), "constant_factor")
case("ClampedWithWrongBound", "x: save(x); return x.clamp(-0.3, 0.3)", "g: (x,) = saved; return g * (x < 0.3)",
     lambda: (draw(6),), "wrong_derivative", "conditional", "extra_entries")
case("ReshapeInsteadOfTranspose", "x: return x.t() * 2", "g: return 2 * g.reshape(g.shape[1], g.shape[0])",
     lambda: (draw(2, 3),), "wrong_unclassified", "transposed_grad")
