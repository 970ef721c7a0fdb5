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
case("ColumnBiasReducedOverRows", "x, bias: return x + bias", "g: return g, g.sum(0)[:, None]",
     lambda: (draw(4, 4), draw(4, 1, seed=1)), "wrong_reduction_dim", "transposed_grad", "permuted_entries")
case("KeepdimForgotten", "x: ctx.shape = x.shape; return x.sum(1)", "g: return g.expand(ctx.shape)",
     lambda: (draw(3, 4),), "exception")
case("NormSquaredInstead", "x: n = x.norm(dim=1); save(x, n); return n", "g: x, _n = saved; return g.unsqueeze(1) * x",
     lambda: (draw(3, 4),), "wrong_derivative", "missing_factor", "constant_factor", "missing_coupling")
case("VarianceDividedByN", "x: save(x); return x.var(1)",
     "g: (x,) = saved; return g[:, None] * 2 * (x - x.mean(1, keepdim=True)) / x.shape[1]", lambda: (draw(3, 4),),
     "constant_factor", "wrong_derivative")
case("MaxAlwaysFirst", "x: ctx.shape = x.shape; return x.max(1).values",
     "g: out = g.new_zeros(ctx.shape); out[:, 0] = g; return out", lambda: (draw(4, 3),), "missing_entries",
     "extra_entries", "permuted_entries", "wrong_derivative")
case("DropoutMaskUnused", "x: mask = (torch.rand(x.shape) > 0.4).double(); save(mask); return x * mask / 0.6",
     "g: return g / 0.6", lambda: (draw(3, 4),), "extra_entries", "conditional", "missing_coupling", "missing_factor")
case("DropoutMaskDrawnAgain", "x: return x * (torch.rand(x.shape) > 0.5)", "g: return g * (torch.rand(g.shape) > 0.5)",
     lambda: (draw(12),), "shared_state", "nondeterministic_backward", "missing_entries", "extra_entries",
     "conditional", "wrong_derivative")
case("KeptInAModuleDict", 'a, b: SEEN["a"], SEEN["b"] = a.detach(), b.detach(); return a * b',
     'g: return g * SEEN["b"], g * SEEN["a"]', lambda: (draw(5), draw(5, seed=1)), "shared_state")
case("ScalesSavedMask", "x: ctx.slope = torch.where(x > 0, 1.0, 0.1).double(); return x * ctx.slope",
     "g: ctx.slope *= g; return ctx.slope", lambda: (draw(5),), "mutates_saved", "nondeterministic_backward")
case("NormalisesInPlace", "x: x -= x.mean(); return x * 1.0", "g: return g - g.mean()", lambda: (draw(3, 4),),
     "mutates_input")
case("OptionalBiasTouched", "x, bias=None: save(x, bias); return 3 * x if bias is None else 3 * x + bias",
     "g: _x, bias = saved; return 3 * g, g.sum(bias.shape)", lambda: (draw(4), None), "exception")
case("FlagsWithoutNones", "x, alpha, inplace=False: ctx.alpha = alpha; return x * alpha", "g: return g * ctx.alpha",
     lambda: (draw(4), 3.0, True), "exception")
case("AlphaFromNowhere", "x, alpha: return x * alpha", "g: return g * ctx.alpha, None", lambda: (draw(4), 3.0),
     "exception", "constant_factor", "missing_factor")
case("AlphaIgnored", "x, alpha: ctx.alpha = alpha; return torch.sin(x) * alpha", "g: return g * ctx.alpha**2, None",
     lambda: (draw(4), 3.0), "wrong_derivative")
case("SavedInTheWrongOrder", "x: y, index = x.topk(2); save(index); ctx.n = x.numel(); return y",
     "g: (index,) = saved; return g.new_zeros(ctx.n).scatter(0, g, index)", lambda: (draw(4),), "exception")
case("SumAndDifference", "a, b: return a + b, a - b", "g_sum, g_diff: return g_sum, g_sum",
     lambda: (draw(4), draw(4, seed=1)), "output_grad_ignored")
case("SumAndDifferenceSign", "a, b: return a + b, a - b", "g_sum, g_diff: return g_sum + g_diff, g_sum + g_diff",
     lambda: (draw(4), draw(4, seed=1)), "sign", "wrong_derivative")
case("ReluOnTheGradient", "x: save(x); return x * x",
     "g: (x,) = saved; return 2 * x * torch.nn.functional.leaky_relu(g, 0.2)", lambda: (draw(5),),
     "nonlinear_in_grad_output")
case("LossGradAlone", "x: save(x); return (x.log() ** 2).mean()", "g: (x,) = saved; return 2 * x.log() / x / x.numel()",
     lambda: (draw(5, low=0.2, high=1.0),), "ignores_grad_output")
case("ItemInBackward", "x: save(x); return x * x.sum()", "g: (x,) = saved; return g * x.sum().item() + (g * x).sum()",
     lambda: (draw(4),), "double_backward_wrong")
case("PowerKeptOnCtx", "x: ctx.square = x**2; return x**3", "g: return 3 * g * ctx.square", lambda: (draw(4),),
     "double_backward_wrong")
case("NumpyBehind", "x: save(x); return x.sinh()",
     "g: (x,) = saved; return g * torch.from_numpy(np.cosh(x.detach().numpy()))", lambda: (draw(4),),
     "double_backward_wrong")
case("ComplexExpNoConj", "z: w = z.exp(); save(w); return w", "g: (w,) = saved; return g * w",
     lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),), "missing_conj", "wrong_derivative")
case("AbsSquareHalved", "z: save(z); return z.real**2 + z.imag**2", "g: (z,) = saved; return g * z",
     lambda: (torch.complex(draw(4), draw(4, seed=1)).detach().requires_grad_(),), "constant_factor")
case("SwishTermMissing", "x: s = torch.sigmoid(x); save(x, s); return x * s", "g: x, s = saved; return g * (s + x * s)",
     lambda: (draw(4),), "wrong_derivative", "missing_factor", "wrong_unclassified")
case("FlatMemoryOfGrad", "x: return 5 * x", "g: return 5 * torch.as_strided(g, g.shape, (4, 1))", lambda: (draw(3, 4),),
     "wrong_noncontiguous_grad", "fails_noncontiguous_grad")
case("ClampedWithWrongBound", "x: save(x); return x.clamp(-0.3, 0.3)", "g: (x,) = saved; return g * (x < 0.3)",
     lambda: (draw(6),), "wrong_derivative", "conditional", "extra_entries")
case("HardTanhForgetsNegativeSide", "x: save(x); return x.clamp(-0.9, 0.9)",
     "g: (x,) = saved; return g * ((x > 0) & (x < 0.9))", lambda: (draw(6),), "missing_entries", "conditional")
case("ReshapeInsteadOfTranspose", "x: return x.t() * 2", "g: return 2 * g.reshape(g.shape[1], g.shape[0])",
     lambda: (draw(2, 3),), "permuted_entries", "transposed_grad")
