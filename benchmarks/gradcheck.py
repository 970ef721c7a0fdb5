"""nbautograd.gradcheck beside torch.autograd.gradcheck, slow and fast: CPU time and peak memory in the same run.

    python benchmarks/gradcheck.py [--repeat 5] [--memory] [case ...]

Each round runs all tools one after another on fresh copies of the same inputs, on one thread, each as often as it takes
to fill 25 ms, as timeit does: a tool that takes 2 ms would else mostly show what the tool before it left in the caches.
The table shows medians of CPU time per run. "blocks" is full Jacobians with verdicts: both, every entry compared, what
each witness said. "whole" is the whole report: gradcheck with all its probes, findings and second derivatives, which
torch's modes do not look at. The ratios are of full Jacobians with verdicts: torch's slow mode over "blocks", and
"blocks" over torch's fast mode.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch.autograd import Function

import nbautograd
from nbautograd.core.checking.problem import Problem
from nbautograd.core.checking.run import GradcheckRun

LEAST = 25.0  # ms that a tool runs in each round
Case = tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class KillHead(Function):
    """Zeroes the first half of the columns."""

    @staticmethod
    def forward(ctx, x):
        mask = torch.ones_like(x)
        mask[:, : x.shape[1] // 2] = 0
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class Conv(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.conv2d(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return torch.nn.grad.conv2d_input(x.shape, weight, grad), torch.nn.grad.conv2d_weight(x, weight.shape, grad)


class Numpy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.tanh(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(grad.numpy() * (1 - np.tanh(x.numpy()) ** 2))


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


CASES: dict[str, Callable[[], Case]] = {
    "linear 20x20 30x20": lambda: (Linear.apply, (random(20, 20), random(30, 20))),
    "linear 64": lambda: (Linear.apply, (random(64, 64), random(64, 64))),
    "exp 1,000": lambda: (Exp.apply, (random(1000),)),
    "exp 10,000": lambda: (Exp.apply, (random(10000),)),
    "KillHead 10x20": lambda: (KillHead.apply, (random(10, 20),)),
    "conv2d": lambda: (Conv.apply, (random(2, 3, 12, 12), random(4, 3, 3, 3))),
    "numpy 20x40": lambda: (Numpy.apply, (random(20, 40),)),
}


def blocks(fn: Callable[..., torch.Tensor], inputs: tuple[torch.Tensor, ...]) -> None:
    run = GradcheckRun(Problem(fn, inputs), None, None, None)
    with run.problem.session():
        run.find_blocks()
    assert {b.verdict for b in run.blocks.values()} == {"match"}


TOOLS: dict[str, Callable[..., object]] = {
    "blocks": blocks,
    "whole": lambda fn, inputs: nbautograd.gradcheck(fn, inputs),
    "torch fast": lambda fn, inputs: torch.autograd.gradcheck(fn, inputs, fast_mode=True),
    "torch slow": lambda fn, inputs: torch.autograd.gradcheck(fn, inputs),
}


def cpu(tool: str, name: str, runs: int) -> float:
    """CPU ms of one run, from so many in a row."""
    cases = [CASES[name]() for _ in range(runs)]
    start = time.process_time()
    for case in cases:
        TOOLS[tool](*case)
    return 1e3 * (time.process_time() - start) / runs


def runs_in(least: float, tool: str, name: str) -> int:
    """How many runs fill so many ms; the first run is a warm-up that does not count."""
    cpu(tool, name, 1)
    return max(1, min(50, math.ceil(least / cpu(tool, name, 1))))


def memory(name: str, tool: str) -> float:
    """Peak memory in MB that a tool adds on one case, in a process of its own."""
    command = [sys.executable, __file__, "--alone", tool, name]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def alone(name: str, tool: str) -> None:
    """Run one tool twice, on a small case to load everything and on the real one; print by how much the peak grew."""
    TOOLS[tool](Exp.apply, (random(3),))
    case = CASES[name]()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew; ru_maxrss would be the parent's
    before = resident("VmRSS")
    TOOLS[tool](*case)
    print(resident("VmHWM") - before)


def resident(field: str) -> float:
    """A size of this process in MB, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(names: list[str], repeat: int, with_memory: bool) -> None:
    print(f"{'CPU ms, medians':20s}" + "".join(f"{tool:>12s}" for tool in TOOLS) + "  slow/blocks  blocks/fast")
    ratios = []
    for name in names:
        runs = {tool: 1 if tool == "torch slow" else runs_in(LEAST, tool, name) for tool in TOOLS}
        rounds = repeat if name not in ("linear 64", "exp 10,000") else max(1, repeat // 2)
        times = {tool: [] for tool in TOOLS}
        for _ in range(rounds):
            for tool in TOOLS:
                times[tool].append(cpu(tool, name, runs[tool]))
        median = {tool: statistics.median(each) for tool, each in times.items()}
        ratios.append(median["torch slow"] / median["blocks"])
        fast = median["blocks"] / median["torch fast"]
        print(f"{name:20s}" + "".join(f"{median[t]:12.2f}" for t in TOOLS) + f"{ratios[-1]:12.0f}x{fast:12.1f}x")
        if with_memory:
            print(f"{'  peak MB':20s}" + "".join(f"{memory(name, tool):12.0f}" for tool in TOOLS))
    print(f"geometric mean of slow/blocks: {math.exp(statistics.fmean(map(math.log, ratios))):.0f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="also peak memory, each in a process of its own")
    parser.add_argument("--alone", metavar="TOOL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if options.alone:
        alone(options.cases[0], options.alone)
    else:
        measure(options.cases or list(CASES), options.repeat, options.memory)


if __name__ == "__main__":
    main()
