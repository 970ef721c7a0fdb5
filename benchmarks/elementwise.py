"""Full Jacobians with verdicts of elementwise Functions beside torch's fast mode, from 100 to 100,000 elements.

    python benchmarks/elementwise.py [--repeat 7] [elements ...]

Measured as ``gradcheck.py`` does: medians of CPU time, alternating, each tool as often in a round as fills 25 ms.
"least" compares the least times instead.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings

import gradcheck
import torch
from torch.autograd import Function

LEAST = 25.0  # ms that a tool runs in each round


class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


class Relu(Function):
    """Some of many random elements lie so close to the kink that they need a second look."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * x


class Gelu(Function):
    """Its derivative is about zero for some of many random elements: they need a second look too."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.gelu(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (0.5 * (1 + torch.erf(x / 2**0.5)) + x * torch.exp(-x * x / 2) / (2 * torch.pi) ** 0.5)


class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


FUNCTIONS = {
    "exp": (gradcheck.Exp, 1),
    "tanh": (Tanh, 1),
    "relu": (Relu, 1),
    "square": (Square, 1),
    "gelu": (Gelu, 1),
    "a * b": (Product, 2),
}


def cpu(tool: str, name: str, elements: int, runs: int) -> float:
    """CPU ms of one run, from so many in a row."""
    fn, count = FUNCTIONS[name]
    cases = [(fn.apply, tuple(gradcheck.random(elements) for _ in range(count))) for _ in range(runs)]
    start = time.process_time()
    for case in cases:
        gradcheck.TOOLS[tool](*case)
    return 1e3 * (time.process_time() - start) / runs


def measure(name: str, elements: int, repeat: int) -> tuple[dict[str, float], dict[str, float]]:
    """Medians and least times by tool."""
    tools = ("blocks", "torch fast")
    for tool in tools:
        cpu(tool, name, elements, 2)
    runs = {tool: max(1, min(50, math.ceil(LEAST / cpu(tool, name, elements, 1)))) for tool in tools}
    times = {tool: [] for tool in tools}
    for _ in range(repeat):
        for tool in tools:
            times[tool].append(cpu(tool, name, elements, runs[tool]))
    return {t: statistics.median(each) for t, each in times.items()}, {t: min(each) for t, each in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("elements", nargs="*", type=int, default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for tool in ("blocks", "torch fast"):
        cpu(tool, "exp", 100, 100)  # the first hundred runs of a process are slower than all that follow
    for elements in options.elements:
        for name in FUNCTIONS:
            median, least = measure(name, elements, options.repeat)
            ratio, best = (each["blocks"] / each["torch fast"] for each in (median, least))
            ours, theirs = median["blocks"], median["torch fast"]
            times = f"verdicts {ours:7.2f} ms, torch fast {theirs:7.2f} ms"
            print(f"{elements:8,d} {name:8s} {times}: {ratio:.2f}x (least {best:.2f}x)", flush=True)


if __name__ == "__main__":
    main()
