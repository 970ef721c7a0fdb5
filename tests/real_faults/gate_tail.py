"""Gated sum in chunks of 64 rows whose last chunk, where it is not full, drops a term of the gate's gradient.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "fla-org/flash-linear-attention#1142", "2026-08", "closed in that month"
MECHANISM = "a term is computed for full chunks alone"


def reference(x, gate):
    return x * gate.exp() + gate.square()


def kernel(fault=True):
    def forward(x, gate):
        return reference(x, gate), (x, gate)

    def backward(saved, g):
        x, gate = saved
        term = 2 * gate * g
        if fault:
            full = len(x) // 64 * 64
            term = torch.cat((term[:full], 0 * term[full:]))
        return g * gate.exp(), g * x * gate.exp() + term

    return function(forward, backward)


def inputs():
    return torch.randn(128, 4), torch.randn(128, 4)
