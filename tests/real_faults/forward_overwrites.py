"""Cross entropy that writes its gradient into its input, in forward.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "linkedin/Liger-Kernel#343", "2024-11", "open on that day"
MECHANISM = "whoever uses the input again gets the gradient in its place"


def reference(x, target):
    return torch.nn.functional.cross_entropy(x, target, reduction="sum")


def kernel(fault=True):
    def forward(x, target):
        loss = reference(x, target)
        dx = x.softmax(-1) - torch.nn.functional.one_hot(target, x.shape[1])
        if fault:
            x.detach().copy_(dx)
        return loss, (dx,)

    def backward(saved, g):
        return g * saved[0], None

    return function(forward, backward)


def inputs():
    return torch.randn(16, 10), torch.arange(16) % 10
