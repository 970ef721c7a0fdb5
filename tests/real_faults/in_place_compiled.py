"""A forward that works in place on its own result, compiled: the gradient takes another slot.

Written from the thread's description, in code of this project.
"""

import torch

THREAD, WHEN, VERSIONS = "pytorch/pytorch#180642", "2026-04", "2.11"
MECHANISM = "an alias from before the change becomes an output of its own"
GATE = {"compile": ["aot_eager"], "sizes": ()}


def reference(x, w):
    return x * w + x


class InPlace(torch.autograd.Function):
    """A product, to which the input is added in place."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        y = x * w
        y += x
        return y

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * (w + 1), g * x


def kernel(fault=True):
    return InPlace if fault else reference


def inputs():
    return torch.randn(5), torch.randn(5)
