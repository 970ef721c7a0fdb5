"""Causal convolution over ragged sequences whose weight gradient counts each sequence once for each batch.

Written from the thread's description, in code of this project.
"""

import itertools

import torch
from kernels import function

THREAD, WHEN, VERSIONS = (
    "fla-org/flash-linear-attention#955",
    "2026-06",
    "cu_seqlens together with a batch of more than one",
)
MECHANISM = "not told in full; taken here: the weight gradients of all sequences are added for each row"


def reference(x, w, starts):
    flat, bounds = x.reshape(-1, x.shape[-1]), starts.tolist()
    out = []
    for a, b in itertools.pairwise(bounds):
        padded = torch.nn.functional.pad(flat[a:b], (0, 0, 1, 0))
        out.append(padded[1:] * w[0] + padded[:-1] * w[1])
    return torch.cat(out).reshape(x.shape)


def kernel(fault=True):
    def forward(x, w, starts):
        return reference(x, w, starts), (x.detach(), w.detach(), starts)

    def backward(saved, g):
        x, w, starts = saved
        with torch.enable_grad():
            x, w = x.requires_grad_(), w.requires_grad_()
            dx, dw = torch.autograd.grad(reference(x, w, starts), (x, w), g)
        return dx, dw * (len(x) if fault else 1), None

    return function(forward, backward)


def inputs():
    return torch.randn(1, 24, 6), torch.randn(2, 6), torch.tensor([0, 5, 12, 24])


def cases():
    yield "batch of one", inputs()
    yield "batch of two", (torch.randn(2, 12, 6), torch.randn(2, 6), torch.tensor([0, 5, 12, 24]))
