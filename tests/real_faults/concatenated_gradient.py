"""An operation whose backward takes grad_output for contiguous: a concatenation after it sends a slice.

Written from the thread's description, in code of this project.
"""

import torch
from fused_kernels import by_pointer
from kernels import function

THREAD, WHEN, VERSIONS = "pytorch/pytorch#194719", "2026-08", "any; documented since #195210"
MECHANISM = "grad_output is a narrow view and is read in order"


def reference(x):
    return x.sin()


def kernel(fault=True):
    def forward(x):
        return x.sin(), (x,)

    def backward(saved, g):
        return saved[0].cos() * (by_pointer(g) if fault else g)

    return function(forward, backward)


def inputs():
    return (torch.randn(6, 10),)
