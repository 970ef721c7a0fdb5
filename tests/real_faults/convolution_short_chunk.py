"""Causal convolution that hands a state on: in a chunk shorter than its width the state's gradient slips.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "fla-org/flash-linear-attention#1140", "2026-08", "closed in that month"
MECHANISM = "the first slot of the state is clamped to zero, which shifts all of it"


def reference(x):
    """Return the last three rows of a chunk, zeros before it: the state that is handed on."""
    return torch.nn.functional.pad(x, (0, 0, 3, 0))[-3:]


def kernel(fault=True):
    def forward(x):
        return reference(x), (x.shape,)

    def backward(saved, g):
        rows, columns = saved[0]
        dx = g.new_zeros(rows, columns)
        for slot in range(3):
            row = (max(0, rows - 3) if fault else rows - 3) + slot
            if 0 <= row < rows:
                dx[row] = g[slot]
        return dx

    return function(forward, backward)


def inputs():
    return (torch.randn(16, 8),)
