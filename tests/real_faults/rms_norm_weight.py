"""RMSNorm whose backward returns None for its weight: the norm's parameters never train.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "unslothai/unsloth#4533", "2026-03", "full finetuning, transformers before 4.52"
MECHANISM = "the gradient of the weight is None"


def reference(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def kernel(fault=True):
    def forward(x, w):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return x * r * w, (x, w, r)

    def backward(saved, g):
        x, w, r = saved
        normed, flowing = x * r, g * w
        dx = r * (flowing - normed * (flowing * normed).mean(-1, keepdim=True))
        return dx, None if fault else (g * normed).sum(0)

    return function(forward, backward)


def inputs():
    return torch.randn(8, 64), torch.rand(64)
