"""Group norm whose backward takes the last dimension for all elements of a channel.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "linkedin/Liger-Kernel#1375", "2026-08", "open on that day"
MECHANISM = "the size of a channel is read before the gradient is flattened"


def reference(x):
    return torch.nn.functional.group_norm(x, 2)


def kernel(fault=True):
    def forward(x):
        rows = x.reshape(len(x), 2, -1)
        r = torch.rsqrt(rows.var(-1, unbiased=False, keepdim=True) + 1e-5)
        normed = (rows - rows.mean(-1, keepdim=True)) * r
        return normed.reshape(x.shape), (normed, r, x.shape)

    def backward(saved, g):
        normed, r, shape = saved
        channels, last = shape[1], shape[-1] if fault else g[0, 0].numel()
        size = channels // 2 * last
        g = g.reshape(normed.shape)
        part, whole = g[..., :size], normed[..., :size]
        mean, along = part.sum(-1, keepdim=True) / size, (part * whole).sum(-1, keepdim=True) / size
        return (r * (g - mean - normed * along)).reshape(shape)

    return function(forward, backward)


def inputs():
    return (torch.randn(3, 4, 9),)


def cases():
    yield "a row", inputs()
    yield "an image", (torch.randn(3, 4, 5, 9),)
