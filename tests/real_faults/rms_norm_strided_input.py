"""RMSNorm whose forward copies a strided input, while its backward reads the saved one in order.

Written from the thread's description, in code of this project.
"""

import torch
from fused_kernels import by_pointer
from kernels import function

THREAD, WHEN, VERSIONS = "ByteDance-Seed/VeOmni#958", "2026-07", "review of #958"
MECHANISM = "backward assumes that the columns of the saved input are contiguous"


def reference(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def kernel(fault=True):
    def forward(x):
        return reference(x.contiguous()), (x,)

    def backward(saved, g):
        x = by_pointer(saved[0]) if fault else saved[0]
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        normed = x * r
        return r * (g - normed * (g * normed).mean(-1, keepdim=True))

    return function(forward, backward)


def inputs():
    return (torch.randn(8, 64),)
