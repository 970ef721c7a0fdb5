"""RMSNorm whose backward reshapes its gradient and reads columns next to each other.

Written from the thread's description, in code of this project.
"""

import torch
from fused_kernels import by_pointer
from kernels import function

THREAD, WHEN, VERSIONS = "unslothai/unsloth#10617", "2026-09", "before the merge of #10617"
MECHANISM = "grad_output is read as if its columns were contiguous"


def reference(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def kernel(fault=True):
    def forward(x):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x * r, (x, r)

    def backward(saved, g):
        x, r = saved
        normed, g = x * r, by_pointer(g) if fault else g
        return r * (g - normed * (g * normed).mean(-1, keepdim=True))

    return function(forward, backward)


def inputs():
    return (torch.randn(8, 64),)
