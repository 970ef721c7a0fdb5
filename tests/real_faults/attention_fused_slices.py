"""Attention whose dV is wrong where q, k and v are slices of one projection.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "Dao-AILab/flash-attention#2541", "2026-05", "FA4, head size 256, before #2545"
MECHANISM = "not told in full; taken here: the layout of contiguous tensors is taken for the gradient of slices"


def reference(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def kernel(fault=True):
    def forward(q, k, v):
        share = (q @ k.mT).softmax(-1)
        return share @ v, (q, k, v, share)

    def backward(saved, g):
        q, k, v, share = saved
        dv = share.mT @ g
        if fault and v.stride(-2) != v.shape[-1]:  # rows of the slice's width, in memory of the whole's
            rows = torch.zeros(*dv.shape[:-1], v.stride(-2))
            rows.flatten(-2)[..., : dv[0].numel()] = dv.flatten(-2)
            dv = rows[..., : dv.shape[-1]]
        flowing = g @ v.mT
        flowing = share * (flowing - (flowing * share).sum(-1, keepdim=True))
        return flowing @ k, flowing.mT @ q, dv

    return function(forward, backward)


def inputs():
    return tuple(torch.randn(2, 12, 8) for _ in range(3))
