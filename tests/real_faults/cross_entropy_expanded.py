"""Cross entropy whose backward takes one number a row from a gradient that is one number in all.

Written from the thread's description, in code of this project.
"""

import torch
from kernels import function

THREAD, WHEN, VERSIONS = "ROCm/TransformerEngine#623", "2026-06", "before the merge of #623"
MECHANISM = "an expanded grad_output is read with a row stride of one"


def reference(x, target):
    return torch.nn.functional.cross_entropy(x, target, reduction="none")


def kernel(fault=True):
    def forward(x, target):
        return reference(x, target), (x.softmax(-1), target)

    def backward(saved, g):
        share, target = saved
        if fault:  # what lies behind the only element is anything: here zero
            memory = torch.zeros_like(share[:, 0])
            known = g.untyped_storage().nbytes() // g.element_size() - g.storage_offset()
            memory[:known] = g.as_strided((min(known, len(g)),), (1,))
            g = memory
        return g[:, None] * (share - torch.nn.functional.one_hot(target, share.shape[1])), None

    return function(forward, backward)


def inputs():
    return torch.randn(16, 10), torch.arange(16) % 10
