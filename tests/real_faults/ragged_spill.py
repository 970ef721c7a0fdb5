"""Backward over ragged sequences in blocks of eight rows without a guard at the end of a sequence.

Written from the thread's description, in code of this project.
"""

import itertools

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "tile-ai/tilelang#2010", "2026-04", "review of #2010"
MECHANISM = "the last block of a sequence writes over the first rows of the next"


def reference(x, starts):
    bounds = starts.tolist()
    return torch.cat([x[a:b] - x[a:b].mean(0) for a, b in itertools.pairwise(bounds)])


def kernel(fault=True):
    def forward(x, starts):
        return reference(x, starts), (starts,)

    def backward(saved, g):
        bounds = saved[0].tolist()
        dx = torch.zeros_like(g)
        for a, b in reversed(list(itertools.pairwise(bounds))):  # in whichever order the launches run
            end = min(a + -(-(b - a) // 8) * 8, len(g)) if fault else b
            dx[a:end] = g[a:end] - g[a:b].mean(0)
        return dx, None

    return function(forward, backward)


def inputs():
    return torch.randn(32, 6), torch.tensor([0, 8, 24, 32])


def cases():
    yield "aligned", inputs()
    yield "ragged", (torch.randn(32, 6), torch.tensor([0, 5, 12, 32]))
