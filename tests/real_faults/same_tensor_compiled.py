"""One tensor as two inputs, compiled: one of the two gradients is lost.

Written from the thread's description, in code of this project.
"""

import torch

THREAD, WHEN, VERSIONS = "pytorch/pytorch#183604", "2026-05", "2.11"
MECHANISM = "Dynamo takes the two inputs for one"
GATE = {"compile": ["aot_eager"], "sizes": ()}


def reference(a, b):
    return a * b + a


class Product(torch.autograd.Function):
    """A product whose two inputs may be one tensor."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b + a

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * (b + 1), g * a


def kernel(fault=True):
    return Product if fault else reference


def inputs():
    return torch.randn(5), torch.randn(5)
