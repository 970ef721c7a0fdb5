"""Backward in blocks of 64 whose last block is added twice where the size is no multiple.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "mlc-ai/TIRx-kernels#136", "2026-08", "before the merge of #136"
MECHANISM = "a division rounds down where it should round up, so that a sentinel is a block that exists"


def reference(x, w):
    return x @ w


def kernel(fault=True):
    def forward(x, w):
        return x @ w, (x, w)

    def backward(saved, g):
        x, w = saved
        dw = x.T @ g
        sentinel = len(x) // 64 if fault else -(-len(x) // 64)
        if sentinel * 64 < len(x):
            dw = dw + x[sentinel * 64 :].T @ g[sentinel * 64 :]
        return g @ w.T, dw

    return function(forward, backward)


def inputs():
    return torch.randn(128, 8), torch.randn(8, 4)
