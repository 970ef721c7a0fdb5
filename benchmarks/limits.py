"""What a check costs at its limits: very many elements, wrong and right ones, and the search for second derivatives.

    python benchmarks/limits.py [wrong] [sum] [outputs] [order2]

Each case runs in a process of its own and prints CPU seconds and the most memory that the process had, imports
included. ``wrong``: 10^6 elements, right and wrong; ``sum``: 10^7 elements into one number; ``outputs``: two inputs to
10^6 outputs; ``order2``: runs of forward and backward that first and second derivatives take, counted.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import torch
from torch.autograd import Function

import nbautograd
from nbautograd.core.checking.problem import Problem

CASES = ("wrong", "sum", "outputs", "order2")


class Cube(Function):
    """Right, one element at a time."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class CubeWrong(Cube):
    """Off by a factor everywhere."""

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x**2 * g


class SquaresSummed(Function):
    """Many elements into one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x**2).sum()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Spread(Function):
    """Two elements into a million."""

    @staticmethod
    def forward(ctx, x):
        t = torch.linspace(0, 1, 10**6, dtype=x.dtype)
        ctx.save_for_backward(x, t)
        return x[0] * t.sin() + x[0] * x[1] * t.cos()

    @staticmethod
    def backward(ctx, g):
        x, t = ctx.saved_tensors
        return torch.stack([(g * (t.sin() + x[1] * t.cos())).sum(), (g * x[0] * t.cos()).sum()])


class Decay(Function):
    """An explicit Euler integration of 200 steps with its adjoint, 36 entries."""

    @staticmethod
    def forward(ctx, y, a):
        ctx.save_for_backward(y, a)
        for _ in range(200):
            y = y - 0.01 * a * y.sin()
        return y

    @staticmethod
    def backward(ctx, g):
        y, a = ctx.saved_tensors
        path = [y]
        for _ in range(200):
            path.append(path[-1] - 0.01 * a * path[-1].sin())
        grad_a = torch.zeros_like(a)
        for y in reversed(path[:-1]):
            grad_a = grad_a - 0.01 * g * y.sin()
            g = g - 0.01 * g * a * y.cos()
        return g, grad_a


def measured(name, fn, inputs, **options):
    """Check once and print what it took."""
    nbautograd.gradcheck(Cube, torch.ones(3, dtype=torch.float64, requires_grad=True))  # what is imported late
    start = time.process_time()
    report = nbautograd.gradcheck(fn, inputs, **options)
    seconds, most = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{name:24s} {report.verdict:12s} {seconds:7.1f} s CPU {most:7.0f} MiB", flush=True)


def draw(*shape):
    """Random inputs that are the same each time."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()


def runs(fn, inputs, **options):
    """How often forward and backward are run by a check, several points at once counted as one."""
    count, plain = [0], Problem.evaluate

    def evaluate(self, given):
        count[0] += 1
        return plain(self, given)

    Problem.evaluate = evaluate
    try:
        start = time.process_time()
        report = nbautograd.gradcheck(fn, inputs, **options)
    finally:
        Problem.evaluate = plain
    return count[0], time.process_time() - start, report


def one(case):
    """Run a case in this process."""
    if case == "right":
        measured("10^6 right", Cube, draw(10**6), order=1)
    elif case == "wrong":
        measured("10^6 wrong", CubeWrong, draw(10**6), order=1)
    elif case == "sum":
        measured("10^7 into a sum", SquaresSummed, draw(10**7))
    elif case == "outputs":
        measured("2 to 10^6 outputs", Spread, draw(2))
    else:
        nbautograd.gradcheck(Cube, draw(3))  # what is imported late
        for name, fn, inputs in (("Cube 3x4", Cube, draw(3, 4)), ("Decay 2x6", Decay, (draw(6), draw(6)))):
            first, second = runs(fn, inputs, order=1), runs(fn, inputs)
            ratio = second[1] / max(first[1], 1e-9)
            print(f"{name:12s} order=1 {first[1]:.2f} s CPU; by default {second[1]:.2f} s, {ratio:.1f} times as much")


def main():
    """Run the named cases, or all."""
    if sys.argv[1:2] == ["--one"]:
        return one(sys.argv[2])
    for case in sys.argv[1:] or CASES:
        for each in ("right", "wrong") if case == "wrong" else (case,):
            subprocess.run([sys.executable, __file__, "--one", each], check=True)
    return None


if __name__ == "__main__":
    main()
