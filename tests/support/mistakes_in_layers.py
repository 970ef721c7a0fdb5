"""Mistakes as they are made in layers, losses and cells: written first, tried afterwards."""

from __future__ import annotations

import torch
from own_mistakes import Catalogue, draw
from torch import Tensor

MISTAKES = Catalogue()
case, written = MISTAKES.case, MISTAKES.written


def labels(*values: int) -> Tensor:
    return torch.tensor(values)


# fmt: off
case("AttentionWithoutSoftmaxCoupling",
     "q, k, v: p = torch.softmax(q @ k.t() / math.sqrt(q.shape[-1]), -1); save(q, k, v, p); return p @ v",
     "g: q, k, v, p = saved; dp = g @ v.t(); ds = p * (1 - p) * dp / math.sqrt(q.shape[-1]); "
     "return ds @ k, ds.t() @ q, p.t() @ g", lambda: (draw(3, 4), draw(5, 4, seed=1), draw(5, 2, seed=2)),
     "missing_coupling", "wrong_derivative", "wrong_unclassified",
     right=lambda q, k, v: torch.softmax(q @ k.t() / 2.0, -1) @ v)
case("AttentionScaleOnOneSideOnly",
     "q, k, v: ctx.scale = q.shape[-1] ** -0.5; p = torch.softmax(q @ k.transpose(-1, -2) * ctx.scale, -1); "
     "save(q, k, v, p); return p @ v",
     "grad_out: q, k, v, p = saved; grad_v = p.transpose(-1, -2) @ grad_out; grad_p = grad_out @ v.transpose(-1, -2); "
     "grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True)); "
     "return grad_s @ k * ctx.scale, grad_s.transpose(-1, -2) @ q, grad_v",
     lambda: (draw(3, 4), draw(5, 4, seed=1), draw(5, 2, seed=2)), "swapped_inputs", "wrong_derivative",
     "constant_factor", "wrong_unclassified", "missing_factor")
case("LayerNormForgetsTheMean", "x, weight, bias: mean = x.mean(-1, keepdim=True); "
     "rstd = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt(); xhat = (x - mean) * rstd; "
     "save(xhat, weight, rstd); return xhat * weight + bias", "dy: xhat, weight, rstd = saved; dxhat = dy * weight; "
     "dx = rstd * (dxhat - xhat * (dxhat * xhat).mean(-1, keepdim=True)); return dx, (dy * xhat).sum(0), dy.sum(0)",
     lambda: (draw(4, 6), draw(6, seed=1), draw(6, seed=2)), "missing_coupling", "wrong_derivative")
case("LayerNormWeightGradUsesRawInput", "x, weight, bias: mean = x.mean(-1, keepdim=True); "
     "rstd = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt(); save(x, weight, mean, rstd); "
     "return (x - mean) * rstd * weight + bias",
     "dy: x, weight, mean, rstd = saved; xhat = (x - mean) * rstd; d = dy * weight; "
     "dx = rstd * (d - d.mean(-1, keepdim=True) - xhat * (d * xhat).mean(-1, keepdim=True)); "
     "return dx, (dy * x).sum(0), dy.sum(0)", lambda: (draw(4, 6), draw(6, seed=1), draw(6, seed=2)), "missing_factor",
     "wrong_derivative", "constant_factor")
case("BatchNormStatsOverBatchOnly",
     "x: mean = x.mean((0, 2), keepdim=True); std = x.std((0, 2), unbiased=False, keepdim=True); "
     "y = (x - mean) / std; save(y, std); return y",
     "g: y, std = saved; return (g - g.mean(0, keepdim=True) - y * (g * y).mean(0, keepdim=True)) / std",
     lambda: (draw(5, 3, 2),), "missing_coupling", "wrong_derivative", "missing_entries", "wrong_reduction_dim",
     "wrong_unclassified")
case("ConvBiasMean", "x, w, b: save(x, w); return torch.nn.functional.conv2d(x, w, b)",
     "g: x, w = saved; gx = torch.nn.grad.conv2d_input(x.shape, w, g); "
     "gw = torch.nn.grad.conv2d_weight(x, w.shape, g); return gx, gw, g.mean((0, 2, 3))",
     lambda: (draw(1, 2, 5, 5), draw(3, 2, 3, 3, seed=1), draw(3, seed=2)), "constant_factor", "wrong_reduction_dim",
     "wrong_derivative")
case("ConvWeightFlipped", "x, w: save(x, w); return torch.nn.functional.conv2d(x, w)",
     "g: x, w = saved; gx = torch.nn.functional.conv_transpose2d(g, w); "
     "gw = torch.nn.functional.conv2d(x, g).flip(2, 3); return gx, gw",
     lambda: (draw(1, 1, 6, 6), draw(1, 1, 3, 3, seed=1)), "wrong_derivative")
case("EmbeddingOverwritesRepeats", "index, table: save(index); ctx.rows = table.shape; return table[index]",
     "g: (index,) = saved; out = g.new_zeros(ctx.rows); out[index] = g; return None, out",
     lambda: (labels(0, 2, 2, 1), draw(4, 3)), "missing_entries")
case("GatherGivenBackAtTheFront", "x, index: ctx.size = x.size(); return x.gather(1, index)",
     "g: out = g.new_zeros(ctx.size); out[:, : g.shape[1]] = g; return out, None",
     lambda: (draw(3, 5), torch.tensor([[0, 4], [1, 1], [3, 2]])), "permuted_entries", "wrong_derivative",
     "missing_entries", "extra_entries", "wrong_unclassified")
case("NllSign",
     "logp, target: save(target); ctx.shape = logp.shape; return -logp[torch.arange(len(target)), target].mean()",
     "g: (target,) = saved; out = torch.zeros(ctx.shape, dtype=g.dtype); "
     "out[torch.arange(len(target)), target] = 1 / len(target); return g * out, None",
     lambda: (draw(4, 3), labels(1, 0, 2, 2)), "sign")
case("HuberTargetForgotten", "pred, target: diff = pred - target; save(diff); "
     "return torch.where(diff.abs() < 0.5, 0.5 * diff**2, 0.5 * (diff.abs() - 0.25)).sum()",
     "g: (diff,) = saved; d = g * diff.clamp(-0.5, 0.5); return d, d", lambda: (draw(6), draw(6, seed=1)), "sign",
     "constant_factor")
case("HuberOuterBranchUnscaled", "pred, target: diff = pred - target; save(diff); "
     "return torch.where(diff.abs() < 0.5, 0.5 * diff**2, 0.5 * (diff.abs() - 0.25)).sum()",
     "g: (diff,) = saved; d = g * torch.where(diff.abs() < 0.5, diff, diff.sign()); return d, -d",
     lambda: (draw(6), draw(6, seed=1)), "conditional", "constant_factor", "missing_factor")
case("BinaryCrossEntropyAsIfLogits", "p, y: save(p, y); return -(y * p.log() + (1 - y) * (1 - p).log()).mean()",
     "g: p, y = saved; return g * (p - y) / p.numel(), None",
     lambda: (draw(5, low=0.1, high=0.9), (draw(5, seed=3) > 0).double().detach()), "missing_factor",
     "wrong_derivative", "conditional")
case("LogSumExpSoftmaxOverAll", "x: save(x); return x.logsumexp(1)",
     "g: (x,) = saved; return torch.softmax(x.flatten(), 0).reshape(x.shape) * g[:, None]", lambda: (draw(4, 3),),
     "wrong_derivative", "missing_factor")
case("CumprodDiagonalOnly", "x: y = x.cumprod(0); save(x, y); return y", "g: x, y = saved; return g * y / x",
     lambda: (draw(6, low=0.5, high=2.0),), "missing_coupling", "missing_entries", "missing_factor")
case("CumprodNotReversed", "x: y = x.cumprod(0); save(x, y); return y", "g: x, y = saved; return (g * y).cumsum(0) / x",
     lambda: (draw(6, low=0.5, high=2.0),), "wrong_derivative", "missing_factor", "wrong_unclassified")
case("BatchedProductSummedOverBatch", 'a, b: save(a, b); return torch.einsum("bij,bjk->bik", a, b)',
     'g: a, b = saved; ga = torch.einsum("bik,bjk->bij", g, b); gb = torch.einsum("bij,cik->cjk", a, g); return ga, gb',
     lambda: (draw(2, 3, 4), draw(2, 4, 5, seed=1)), "swapped_inputs", "wrong_derivative", "sign", "constant_factor",
     "wrong_unclassified", "wrong_reduction_dim")
case("EinsumIndicesExchanged", 'a, b: save(a, b); return torch.einsum("ik,kj->ij", a, b)',
     'g: a, b = saved; return torch.einsum("ij,kj->ik", g, b), torch.einsum("ik,ij->jk", a, g)',
     lambda: (draw(3, 3), draw(3, 3, seed=1)), "transposed_grad", "wrong_derivative", "permuted_entries")
case("TanhCellWithoutSlope", "x, h, w, u: new = torch.tanh(w @ x + u @ h); save(x, h, w, u, new); return new",
     "g: x, h, w, u, _new = saved; return w.t() @ g, u.t() @ g, torch.outer(g, x), torch.outer(g, h)",
     lambda: (draw(3), draw(4, seed=1), draw(4, 3, seed=2), draw(4, 4, seed=3)), "missing_factor", "wrong_derivative",
     "wrong_unclassified", "missing_coupling")
case("GateMixedUp", "z, h, n: save(z, h, n); return z * h + (1 - z) * n",
     "g: z, h, n = saved; return g * (h + n), g * z, g * (1 - z)", lambda: (draw(4), draw(4, seed=1), draw(4, seed=2)),
     "wrong_derivative", "missing_factor", "sign", "constant_factor")
