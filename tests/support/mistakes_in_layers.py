"""Mistakes as they are made in layers, losses and cells: written first, tried afterwards."""

from __future__ import annotations

import math

import torch
from fn import Fn
from own_mistakes import Mistake, draw
from torch import Tensor

MISTAKES: list[Mistake] = []


def mistake(inputs, *codes, right=None, call=None):
    def keep(cls):
        MISTAKES.append(Mistake(cls.__name__, call or cls.apply, inputs, codes, right))
        return cls

    return keep


def labels(*values: int) -> Tensor:
    return torch.tensor(values)


@mistake(
    lambda: (draw(3, 4), draw(5, 4, seed=1), draw(5, 2, seed=2)),
    "missing_coupling", "wrong_derivative", "wrong_unclassified",
    right=lambda q, k, v: torch.softmax(q @ k.t() / 2.0, -1) @ v,
)  # fmt: skip
class AttentionWithoutSoftmaxCoupling(Fn):
    def forward(ctx, q, k, v):
        p = torch.softmax(q @ k.t() / math.sqrt(q.shape[-1]), -1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    def backward(ctx, g):
        q, k, v, p = ctx.saved_tensors
        dp = g @ v.t()
        ds = p * (1 - p) * dp / math.sqrt(q.shape[-1])
        return ds @ k, ds.t() @ q, p.t() @ g


@mistake(
    lambda: (draw(3, 4), draw(5, 4, seed=1), draw(5, 2, seed=2)),
    "swapped_inputs", "wrong_derivative", "constant_factor", "wrong_unclassified", "missing_factor",
)  # fmt: skip
class AttentionScaleOnOneSideOnly(Fn):
    def forward(ctx, q, k, v):
        ctx.scale = q.shape[-1] ** -0.5
        p = torch.softmax(q @ k.transpose(-1, -2) * ctx.scale, -1)
        ctx.save_for_backward(q, k, v, p)
        return p @ v

    def backward(ctx, grad_out):
        q, k, v, p = ctx.saved_tensors
        grad_v = p.transpose(-1, -2) @ grad_out
        grad_p = grad_out @ v.transpose(-1, -2)
        grad_s = p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        return grad_s @ k * ctx.scale, grad_s.transpose(-1, -2) @ q, grad_v


@mistake(lambda: (draw(4, 6), draw(6, seed=1), draw(6, seed=2)), "missing_coupling", "wrong_derivative")
class LayerNormForgetsTheMean(Fn):
    def forward(ctx, x, weight, bias):
        mean = x.mean(-1, keepdim=True)
        rstd = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        xhat = (x - mean) * rstd
        ctx.save_for_backward(xhat, weight, rstd)
        return xhat * weight + bias

    def backward(ctx, dy):
        xhat, weight, rstd = ctx.saved_tensors
        dxhat = dy * weight
        dx = rstd * (dxhat - xhat * (dxhat * xhat).mean(-1, keepdim=True))
        return dx, (dy * xhat).sum(0), dy.sum(0)


@mistake(
    lambda: (draw(4, 6), draw(6, seed=1), draw(6, seed=2)), "missing_factor", "wrong_derivative", "constant_factor"
)
class LayerNormWeightGradUsesRawInput(Fn):
    def forward(ctx, x, weight, bias):
        mean = x.mean(-1, keepdim=True)
        rstd = (x.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        ctx.save_for_backward(x, weight, mean, rstd)
        return (x - mean) * rstd * weight + bias

    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        xhat = (x - mean) * rstd
        d = dy * weight
        dx = rstd * (d - d.mean(-1, keepdim=True) - xhat * (d * xhat).mean(-1, keepdim=True))
        return dx, (dy * x).sum(0), dy.sum(0)


@mistake(
    lambda: (draw(5, 3, 2),),
    "missing_coupling",
    "wrong_derivative",
    "missing_entries",
    "wrong_reduction_dim",
    "wrong_unclassified",
)
class BatchNormStatsOverBatchOnly(Fn):
    def forward(ctx, x):
        mean = x.mean((0, 2), keepdim=True)
        std = x.std((0, 2), unbiased=False, keepdim=True)
        y = (x - mean) / std
        ctx.save_for_backward(y, std)
        return y

    def backward(ctx, g):
        y, std = ctx.saved_tensors
        return (g - g.mean(0, keepdim=True) - y * (g * y).mean(0, keepdim=True)) / std


@mistake(
    lambda: (draw(1, 2, 5, 5), draw(3, 2, 3, 3, seed=1), draw(3, seed=2)),
    "constant_factor",
    "wrong_reduction_dim",
    "wrong_derivative",
)
class ConvBiasMean(Fn):
    def forward(ctx, x, w, b):
        ctx.save_for_backward(x, w)
        return torch.nn.functional.conv2d(x, w, b)

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = torch.nn.grad.conv2d_input(x.shape, w, g)
        gw = torch.nn.grad.conv2d_weight(x, w.shape, g)
        return gx, gw, g.mean((0, 2, 3))


@mistake(lambda: (draw(1, 1, 6, 6), draw(1, 1, 3, 3, seed=1)), "wrong_derivative")  # with 2 channels more is wrong
class ConvWeightFlipped(Fn):
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.nn.functional.conv2d(x, w)

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = torch.nn.functional.conv_transpose2d(g, w)
        gw = torch.nn.functional.conv2d(x, g).flip(2, 3)
        return gx, gw


@mistake(lambda: (labels(0, 2, 2, 1), draw(4, 3)), "missing_entries")
class EmbeddingOverwritesRepeats(Fn):
    def forward(ctx, index, table):
        ctx.save_for_backward(index)
        ctx.rows = table.shape
        return table[index]

    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        out = g.new_zeros(ctx.rows)
        out[index] = g
        return None, out


@mistake(
    lambda: (draw(3, 5), torch.tensor([[0, 4], [1, 1], [3, 2]])),
    "permuted_entries",
    "wrong_derivative",
    "missing_entries",
    "extra_entries",
    "wrong_unclassified",
)
class GatherGivenBackAtTheFront(Fn):
    def forward(ctx, x, index):
        ctx.size = x.size()
        return x.gather(1, index)

    def backward(ctx, g):
        out = g.new_zeros(ctx.size)
        out[:, : g.shape[1]] = g
        return out, None


@mistake(lambda: (draw(4, 3), labels(1, 0, 2, 2)), "sign")
class NllSign(Fn):
    def forward(ctx, logp, target):
        ctx.save_for_backward(target)
        ctx.shape = logp.shape
        return -logp[torch.arange(len(target)), target].mean()

    def backward(ctx, g):
        (target,) = ctx.saved_tensors
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        out[torch.arange(len(target)), target] = 1 / len(target)
        return g * out, None


@mistake(lambda: (draw(6), draw(6, seed=1)), "sign", "constant_factor")
class HuberTargetForgotten(Fn):
    def forward(ctx, pred, target):
        diff = pred - target
        ctx.save_for_backward(diff)
        return torch.where(diff.abs() < 0.5, 0.5 * diff**2, 0.5 * (diff.abs() - 0.25)).sum()

    def backward(ctx, g):
        (diff,) = ctx.saved_tensors
        d = g * diff.clamp(-0.5, 0.5)
        return d, d


@mistake(lambda: (draw(6), draw(6, seed=1)), "conditional", "constant_factor", "missing_factor")
class HuberOuterBranchUnscaled(Fn):
    def forward(ctx, pred, target):
        diff = pred - target
        ctx.save_for_backward(diff)
        return torch.where(diff.abs() < 0.5, 0.5 * diff**2, 0.5 * (diff.abs() - 0.25)).sum()

    def backward(ctx, g):
        (diff,) = ctx.saved_tensors
        d = g * torch.where(diff.abs() < 0.5, diff, diff.sign())
        return d, -d


@mistake(lambda: (draw(5, low=0.1, high=0.9), (draw(5, seed=3) > 0).double().detach()),
         "missing_factor", "wrong_derivative",
         "conditional")  # fmt: skip
class BinaryCrossEntropyAsIfLogits(Fn):
    def forward(ctx, p, y):
        ctx.save_for_backward(p, y)
        return -(y * p.log() + (1 - y) * (1 - p).log()).mean()

    def backward(ctx, g):
        p, y = ctx.saved_tensors
        return g * (p - y) / p.numel(), None


@mistake(
    lambda: (draw(4, 3),),
    "wrong_derivative",
    "missing_factor",
)
class LogSumExpSoftmaxOverAll(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.logsumexp(1)

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.softmax(x.flatten(), 0).reshape(x.shape) * g[:, None]


@mistake(lambda: (draw(6, low=0.5, high=2.0),), "missing_coupling", "missing_entries", "missing_factor")
class CumprodDiagonalOnly(Fn):
    def forward(ctx, x):
        y = x.cumprod(0)
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y / x


@mistake(
    lambda: (draw(6, low=0.5, high=2.0),),
    "wrong_derivative",
    "missing_factor",
    "wrong_unclassified",
)
class CumprodNotReversed(Fn):
    def forward(ctx, x):
        y = x.cumprod(0)
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y).cumsum(0) / x


@mistake(lambda: (draw(2, 3, 4), draw(2, 4, 5, seed=1)),
         "swapped_inputs", "wrong_derivative", "sign", "constant_factor",
         "wrong_unclassified", "wrong_reduction_dim")  # fmt: skip
class BatchedProductSummedOverBatch(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.einsum("bij,bjk->bik", a, b)

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        ga = torch.einsum("bik,bjk->bij", g, b)
        gb = torch.einsum("bij,cik->cjk", a, g)
        return ga, gb


@mistake(lambda: (draw(3, 3), draw(3, 3, seed=1)), "transposed_grad", "wrong_derivative", "permuted_entries")
class EinsumIndicesExchanged(Fn):
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return torch.einsum("ik,kj->ij", a, b)

    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return torch.einsum("ij,kj->ik", g, b), torch.einsum("ik,ij->jk", a, g)


@mistake(lambda: (draw(3), draw(4, seed=1), draw(4, 3, seed=2), draw(4, 4, seed=3)),
         "missing_factor", "wrong_derivative",
         "wrong_unclassified", "missing_coupling")  # fmt: skip
class TanhCellWithoutSlope(Fn):
    def forward(ctx, x, h, w, u):
        new = torch.tanh(w @ x + u @ h)
        ctx.save_for_backward(x, h, w, u, new)
        return new

    def backward(ctx, g):
        x, h, w, u, _new = ctx.saved_tensors
        return w.t() @ g, u.t() @ g, torch.outer(g, x), torch.outer(g, h)


@mistake(
    lambda: (draw(4), draw(4, seed=1), draw(4, seed=2)), "wrong_derivative", "missing_factor", "sign", "constant_factor"
)
class GateMixedUp(Fn):
    def forward(ctx, z, h, n):
        ctx.save_for_backward(z, h, n)
        return z * h + (1 - z) * n

    def backward(ctx, g):
        z, h, n = ctx.saved_tensors
        return g * (h + n), g * z, g * (1 - z)
