"""Attention whose backward reads grad_output with the strides of the output.

Written from the thread's description, in code of this project.
"""

import torch
from fused_kernels import by_pointer
from kernels import function

THREAD, WHEN, VERSIONS = "ROCm/aotriton#236", "2026-09", "0.13b"
MECHANISM = "grad_output is indexed by the strides of another tensor"


def reference(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def kernel(fault=True):
    def forward(q, k, v):
        share = (q @ k.mT).softmax(-1)
        return share @ v, (q, k, v, share)

    def backward(saved, g):
        q, k, v, share = saved
        read = g if not fault else by_pointer(g)  # the output is contiguous
        flowing = read @ v.mT
        flowing = share * (flowing - (flowing * share).sum(-1, keepdim=True))
        # the phase of dq has the right strides
        ours = g @ v.mT
        ours = share * (ours - (ours * share).sum(-1, keepdim=True))
        return ours @ k, flowing.mT @ q, share.mT @ read

    return function(forward, backward)


def inputs():
    return tuple(torch.randn(2, 12, 8) for _ in range(3))
