"""Chunked loss that returns zero gradients where the first chunk has no label at all.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "unslothai/unsloth#5230", "2026-04", "2026.4.8"
MECHANISM = "not told in full; taken here: a chunk without labels clears what the others computed"


def reference(x, target):
    return torch.nn.functional.cross_entropy(x, target, reduction="sum")


def kernel(fault=True):
    def forward(x, target):
        return reference(x, target), (x, target)

    def backward(saved, g):
        x, target = saved
        wanted = (target >= 0)[:, None]
        dx = g * (x.softmax(-1) - torch.nn.functional.one_hot(target.clamp_min(0), x.shape[1])) * wanted
        return dx * bool(wanted[:4].any()) if fault else dx, None

    return function(forward, backward)


def inputs():
    return torch.randn(16, 10), torch.arange(16) % 10


def cases():
    yield "all labels", inputs()
    yield "the last answer alone", (inputs()[0], torch.tensor([-100] * 12 + [3, 1, 4, 1]))
