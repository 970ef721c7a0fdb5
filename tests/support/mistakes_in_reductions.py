"""Mistakes in sums, means and scans: a number for all where each element has its own."""

from __future__ import annotations

import torch
from fn import Fn
from own_mistakes import Mistake, draw

MISTAKES: list[Mistake] = []


def mistake(inputs, *codes):
    def keep(cls):
        MISTAKES.append(Mistake(cls.__name__, cls.apply, inputs, codes, None))
        return cls

    return keep


@mistake(lambda: (draw(4, 3),), "wrong_unclassified", "wrong_derivative")
class GradientAveragedOverRows(Fn):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return (g * x.cos()).mean(0, keepdim=True).expand_as(x)


@mistake(lambda: (draw(4, 3), draw(3, 5, seed=1)), "extra_entries", "wrong_derivative")
class GradOutputSummedOverColumns(Fn):
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g.sum(0, keepdim=True).expand_as(g)
        return g @ w.t(), x.t() @ g


@mistake(lambda: (draw(3, 3),), "transposed_grad", "permuted_entries")
class DeterminantNotTransposed(Fn):
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.linalg.slogdet(a)[1]

    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * torch.linalg.inv(a)


@mistake(lambda: (draw(4, 3),), "missing_factor", "constant_factor", "wrong_derivative")
class NormNotDividedBy(Fn):
    def forward(ctx, a):
        length = a.norm()
        ctx.save_for_backward(a, length)
        return length

    def backward(ctx, g):
        a, _ = ctx.saved_tensors
        return g * a
