"""What recording costs: an instrumented Function beside the bare one, alternating in one process.

``python benchmarks/recording.py`` prints, per style, size and level, the median over rounds of (recorded time / bare
time) of one forward and backward, and the bare time. The last column pairs bare with bare: the noise of the machine.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Callable

import torch

from nbautograd.core.recording import log

SIZES = (1, 1_000, 1_000_000)
LEVELS = ("off", "paused", "shapes", "summary", "values")  # paused: at level "summary", inside ``log.paused()``


def combined() -> type:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    return Mul


def with_setup_context() -> type:
    class Mul(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    return Mul


def step(cls: type, size: int) -> Callable[[], None]:
    x, y = torch.randn(size, requires_grad=True), torch.randn(size, requires_grad=True)
    g = torch.ones(size)

    def once() -> None:
        torch.autograd.grad(cls.apply(x, y), (x, y), g)

    return once


def timed(once: Callable[[], None], repeats: int) -> float:
    start = time.thread_time_ns()
    for _ in range(repeats):
        once()
    return (time.thread_time_ns() - start) / repeats / 1000


def paired(first: Callable[[], None], second: Callable[[], None], repeats: int, rounds: int) -> tuple[float, float]:
    """Median of second / first over alternating rounds, and the median of first in microseconds."""
    timed(first, repeats), timed(second, repeats)
    ratios, bare = [], []
    for i in range(rounds):
        if i % 2:
            b, a = timed(second, repeats), timed(first, repeats)
        else:
            a, b = timed(first, repeats), timed(second, repeats)
        ratios.append(b / a)
        bare.append(a)
    return statistics.median(ratios), statistics.median(bare)


def main(rounds: int) -> None:
    torch.set_num_threads(1)
    print(f"{'style':14}{'size':>9}{'bare us':>9}" + "".join(f"{level:>9}" for level in LEVELS) + f"{'bare':>9}")
    for style in (combined, with_setup_context):
        for size in SIZES:
            repeats = max(3, min(400, 400_000 // size))
            bare = step(style(), size)
            row = []
            for level in LEVELS:
                cls = style()
                pausing = log.paused() if level == "paused" else contextlib.nullcontext()
                with log.recording(cls, level="summary" if level == "paused" else level), pausing:
                    ratio, us = paired(bare, step(cls, size), repeats, rounds)
                row.append(ratio)
                log.clear()
            noise, us = paired(bare, step(style(), size), repeats, rounds)
            cells = "".join(f"{ratio:9.2f}" for ratio in (*row, noise))
            print(f"{style.__name__[:13]:14}{size:9}{us:9.1f}{cells}", flush=True)


if __name__ == "__main__":
    main(rounds=int(sys.argv[1]) if len(sys.argv) > 1 else 21)
