"""A backward that torch.compile drops under torch.func.grad.

Written from the thread's description, in code of this project.
"""

import torch

THREAD, WHEN, VERSIONS = "pytorch/pytorch#193279", "2026-08", "2.13 and before"
MECHANISM = "Dynamo inlines forward and differentiates that"
GATE = {"compile": ["aot_eager"], "sizes": ()}


def reference(x):
    return x + (x.round() - x).detach()


class Rounded(torch.autograd.Function):
    """Round, straight through."""

    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g


def kernel(fault=True):
    return Rounded if fault else reference


def inputs():
    return (torch.randn(4, 32),)
