"""Time a kernel check's sweep of 40 shapes of a 4,096-wide RMSNorm beside one eager forward and backward at each shape.

Usage: python benchmarks/kernel.py [ROWS]
"""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor

import nbautograd

WIDTH = 4096
SHAPES = [(rows, WIDTH + d) for rows in (1, 15, 16, 17, 31, 32, 33, 64) for d in (-1, 0, 1, 2, 64)]


def eager(x: Tensor, w: Tensor) -> Tensor:
    """RMSNorm as it is written with torch's operations."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


class RMSNorm(torch.autograd.Function):
    """The same with a backward by hand."""

    @staticmethod
    def forward(ctx, x, w):
        """Normalise in float32."""
        wide = x.float()
        r = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, w, r)
        return (wide * r * w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        """Return both gradients, computed in float32."""
        x, w, r = ctx.saved_tensors
        scaled, gw = x.float() * r, g.float() * w.float()
        dx = r * (gw - scaled * (gw * scaled).mean(-1, keepdim=True))
        return dx.to(x.dtype), (g.float() * scaled).sum(0).to(w.dtype)


def inputs(rows: int, width: int) -> tuple[Tensor, Tensor]:
    """Random inputs in bfloat16."""
    return (
        torch.randn(rows, width, dtype=torch.bfloat16, requires_grad=True),
        torch.randn(width, dtype=torch.bfloat16, requires_grad=True),
    )


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of this thread that a run takes."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


def step(x: Tensor, w: Tensor) -> None:
    """One eager forward and backward."""
    y = eager(x, w)
    torch.autograd.grad(y, (x, w), torch.ones_like(y))


def main() -> None:
    """Print the ratio, of several rounds in alternation."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    torch.manual_seed(0)
    assert len(SHAPES) == 40
    base = inputs(4, 64)
    options = {"budget": None}
    nbautograd.compare(RMSNorm, eager, base, sizes=SHAPES[:1], **options)  # imports, and torch's first calls
    ratios = []
    for _ in range(rounds):
        bare = sum(min(seconds(lambda s=s: step(*inputs(*s))) for _ in range(3)) for s in SHAPES)
        alone = seconds(lambda: nbautograd.compare(RMSNorm, eager, base, sizes=(), **options))
        swept = seconds(lambda: nbautograd.compare(RMSNorm, eager, base, sizes=SHAPES, **options))
        ratios.append((swept - alone) / bare)
        print(f"eager {bare * 1e3:.0f} ms, sweep {(swept - alone) * 1e3:.0f} ms, ratio {ratios[-1]:.1f}", flush=True)
    print(
        f"median ratio {statistics.median(ratios):.1f}; Python {platform.python_version()}, torch {torch.__version__}"
    )


if __name__ == "__main__":
    main()
