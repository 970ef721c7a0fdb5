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
     "missing_coupling", "wrong_derivative", "wrong_unclassified")
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
case("BatchNormStatsOverBatchOnly",
     "x: mean = x.mean((0, 2), keepdim=True); std = x.std((0, 2), unbiased=False, keepdim=True); "
     "y = (x - mean) / std; save(y, std); return y",
     "g: y, std = saved; return (g - g.mean(0, keepdim=True) - y * (g * y).mean(0, keepdim=True)) / std",
     lambda: (draw(5, 3, 2),), "missing_coupling", "wrong_derivative", "missing_entries", "wrong_reduction_dim",
     "wrong_unclassified")
case("EmbeddingOverwritesRepeats", "index, table: save(index); ctx.rows = table.shape; return table[index]",
     "g: (index,) = saved; out = g.new_zeros(ctx.rows); out[index] = g; return None, out",
     lambda: (labels(0, 2, 2, 1), draw(4, 3)), "missing_entries")
case("GatherGivenBackAtTheFront", "x, index: ctx.size = x.size(); return x.gather(1, index)",
     "g: out = g.new_zeros(ctx.size); out[:, : g.shape[1]] = g; return out, None",
     lambda: (draw(3, 5), torch.tensor([[0, 4], [1, 1], [3, 2]])), "permuted_entries", "wrong_derivative",
     "missing_entries", "extra_entries", "wrong_unclassified")
case("HuberOuterBranchUnscaled", "pred, target: diff = pred - target; save(diff); "
     "return torch.where(diff.abs() < 0.5, 0.5 * diff**2, 0.5 * (diff.abs() - 0.25)).sum()",
     "g: (diff,) = saved; d = g * torch.where(diff.abs() < 0.5, diff, diff.sign()); return d, -d",
     lambda: (draw(6), draw(6, seed=1)), "wrong_derivative", "constant_factor", "missing_factor")
case("LogSumExpSoftmaxOverAll", "x: save(x); return x.logsumexp(1)",
     "g: (x,) = saved; return torch.softmax(x.flatten(), 0).reshape(x.shape) * g[:, None]", lambda: (draw(4, 3),),
     "wrong_derivative", "missing_factor")
case("CumprodNotReversed", "x: y = x.cumprod(0); save(x, y); return y", "g: x, y = saved; return (g * y).cumsum(0) / x",
     lambda: (draw(6, low=0.5, high=2.0),), "wrong_derivative", "missing_factor", "wrong_unclassified")
case("BatchedProductSummedOverBatch", 'a, b: save(a, b); return torch.einsum("bij,bjk->bik", a, b)',
     'g: a, b = saved; ga = torch.einsum("bik,bjk->bij", g, b); gb = torch.einsum("bij,cik->cjk", a, g); return ga, gb',
     lambda: (draw(2, 3, 4), draw(2, 4, 5, seed=1)), "swapped_inputs", "wrong_derivative", "sign", "constant_factor",
     "wrong_unclassified", "wrong_reduction_dim")
case("EinsumIndicesExchanged", 'a, b: save(a, b); return torch.einsum("ik,kj->ij", a, b)',
     'g: a, b = saved; return torch.einsum("ij,kj->ik", g, b), torch.einsum("ik,ij->jk", a, g)',
     lambda: (draw(3, 3), draw(3, 3, seed=1)), "transposed_grad", "wrong_derivative", "wrong_unclassified")
case("TanhCellWithoutSlope", "x, h, w, u: new = torch.tanh(w @ x + u @ h); save(x, h, w, u, new); return new",
     "g: x, h, w, u, _new = saved; return w.t() @ g, u.t() @ g, torch.outer(g, x), torch.outer(g, h)",
     lambda: (draw(3), draw(4, seed=1), draw(4, 3, seed=2), draw(4, 4, seed=3)), "missing_factor", "wrong_derivative",
     "wrong_unclassified", "missing_coupling")
case("GateMixedUp", "z, h, n: save(z, h, n); return z * h + (1 - z) * n",
     "g: z, h, n = saved; return g * (h + n), g * z, g * (1 - z)", lambda: (draw(4), draw(4, seed=1), draw(4, seed=2)),
     "wrong_derivative", "missing_factor", "sign", "constant_factor")
